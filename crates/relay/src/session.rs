//! What is kept of a relay session.

use crate::code::Code;
use crate::random::{self, NoRandomness, hex};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// A relay session: a code and an MCP session id, mapped both ways.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The code.
    pub code: Code,
    /// The MCP session that was made with it. Others can be bound to the code later.
    pub mcp_id: Box<str>,
    /// What the session is called where the code must not stand.
    pub mark: Box<str>,
    /// The SHA-256 of the worker's token.
    pub token_digest: Box<str>,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// When it ends unless it is used, in milliseconds since 1970.
    pub until: u64,
    /// True once a worker has shown the token: from then on answers need it.
    pub tokened: bool,
    /// The page's own tools, a JSON array, if it has told of any.
    pub tools: Option<Box<str>>,
}

/// A new session and the token of its worker, which is kept nowhere.
#[derive(Debug)]
pub struct NewSession {
    /// What is kept.
    pub record: SessionRecord,
    /// What the page is given.
    pub worker_token: String,
}

impl SessionRecord {
    /// A session with a code of its own, for this MCP session or a new one, good for so many milliseconds.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn make(mcp_id: Option<&str>, now: u64, ttl_ms: u64) -> Result<NewSession, NoRandomness> {
        let worker_token = random::worker_token()?;
        let mcp_id = mcp_id.map_or_else(random::uuid, |id| Ok(id.to_owned()))?;
        let record = Self {
            code: Code::new()?,
            mcp_id: mcp_id.into(),
            mark: hex(&random::bytes::<8>()?).into(),
            token_digest: token_digest(&worker_token),
            created: now,
            until: now.saturating_add(ttl_ms),
            tokened: false,
            tools: None,
        };
        Ok(NewSession { record, worker_token })
    }

    /// True while it may be used.
    #[must_use]
    pub fn is_live(&self, now: u64) -> bool {
        now < self.until
    }

    /// True for the token that its worker was given.
    #[must_use]
    pub fn is_token(&self, token: &str) -> bool {
        verify_slices_are_equal(token_digest(token).as_bytes(), self.token_digest.as_bytes()).is_ok()
    }
}

fn token_digest(token: &str) -> Box<str> {
    hex(digest(&SHA256, token.as_bytes()).as_ref()).into()
}

/// What an MCP session is called where its id must not stand: a part of its SHA-256, which cannot be turned back.
#[must_use]
pub fn mcp_mark(mcp_id: &str) -> String {
    hex(&digest(&SHA256, mcp_id.as_bytes()).as_ref()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_that_was_given_out_is_taken_and_it_is_not_kept() {
        let NewSession { record, worker_token } = SessionRecord::make(None, 1_000, 500).unwrap();
        assert!(record.is_token(&worker_token) && !record.is_token("") && !record.is_token(&record.token_digest));
        assert!(record.is_live(1_499) && !record.is_live(1_500));
        let kept = serde_json::to_string(&record).unwrap();
        assert!(!kept.contains(&worker_token));
        assert_eq!(serde_json::from_str::<SessionRecord>(&kept).unwrap(), record);
        assert_eq!(&*SessionRecord::make(Some("abc"), 0, 1).unwrap().record.mcp_id, "abc");
    }
}
