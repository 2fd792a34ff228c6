//! Stored state of a relay session.

use crate::code::Code;
use crate::random::{self, NoRandomness, hex};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// Relay session: maps a code and an MCP session id to each other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SessionRecord {
    pub code: Code,
    /// MCP session that was created with it. Others can be bound to the code later.
    pub mcp_id: Box<str>,
    /// Name of the session in places where the code must not appear.
    pub mark: Box<str>,
    /// SHA-256 of the worker token.
    pub token_digest: Box<str>,
    /// Creation time, in milliseconds since 1970.
    pub created: u64,
    /// Expiry unless the session is used, in milliseconds since 1970.
    pub until: u64,
    /// True once a worker has presented the token. From then on, answers require it.
    pub tokened: bool,
    /// The page's own tools, a JSON array, if it has registered any.
    pub tools: Option<Box<str>>,
}

/// New session with its worker token, which is not stored.
#[derive(Debug)]
pub struct NewSession {
    pub record: SessionRecord,
    /// Token for the page.
    pub worker_token: String,
}

impl SessionRecord {
    /// Generates a session with a new code, for this MCP session or a new one. It lives for `ttl_ms` milliseconds.
    ///
    /// # Errors
    /// If the system provides no random bytes.
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

    /// Returns true if the session has not expired.
    #[must_use]
    pub fn is_live(&self, now: u64) -> bool {
        now < self.until
    }

    /// Returns true for the session's worker token.
    #[must_use]
    pub fn is_token(&self, token: &str) -> bool {
        verify_slices_are_equal(token_digest(token).as_bytes(), self.token_digest.as_bytes()).is_ok()
    }
}

fn token_digest(token: &str) -> Box<str> {
    hex(digest(&SHA256, token.as_bytes()).as_ref()).into()
}

/// Returns a name for an MCP session in places where its id must not appear: a prefix of its SHA-256.
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
