//! Selects a part of a tape: a session, an exchange, or what comes after a place.

use super::proto;
use signalbox_engine::record::{Content, Entry};

/// Which entries are wanted. What is not said does not matter.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Select {
    /// Only of this session. Gaps belong to every one.
    pub session: Option<u64>,
    /// Only after this place.
    pub after: Option<u64>,
    /// At or after this time, in nanoseconds since 1970.
    pub since: Option<u64>,
    /// Before this time.
    pub until: Option<u64>,
}

impl Select {
    /// Whether this entry is wanted.
    #[must_use]
    pub fn wants(&self, entry: &Entry) -> bool {
        let session = self.session.is_none_or(|wanted| entry.session == Some(wanted) || is_gap(entry));
        session
            && self.after.is_none_or(|after| entry.seq > after)
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
    }

    /// Whether a frame may hold one.
    pub(crate) fn may_be_in(&self, frame: &proto::Frame) -> bool {
        let session = self.session.is_none_or(|wanted| frame.many_sessions || frame.sessions.contains(&wanted));
        session
            && self.after.is_none_or(|after| frame.last_seq > after)
            && self.since.is_none_or(|since| frame.last_at >= since)
            && self.until.is_none_or(|until| frame.first_at < until)
    }
}

fn is_gap(entry: &Entry) -> bool {
    matches!(entry.content, Content::Gap(_))
}
