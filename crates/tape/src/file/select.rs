//! Selection of a part of a tape by session, position and time.

use super::proto;
use signalbox_engine::record::{Content, Entry};

/// Selection of entries. A field that is `None` does not restrict it.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Select {
    /// Session of the entries. Gaps belong to every session.
    pub session: Option<u64>,
    /// Sequence number after which entries are selected.
    pub after: Option<u64>,
    /// Earliest time, in nanoseconds since 1970.
    pub since: Option<u64>,
    /// Time before which entries are selected.
    pub until: Option<u64>,
}

impl Select {
    /// Returns true if this entry is selected.
    #[must_use]
    pub fn wants(&self, entry: &Entry) -> bool {
        let session = self.session.is_none_or(|wanted| entry.session == Some(wanted) || is_gap(entry));
        session
            && self.after.is_none_or(|after| entry.seq > after)
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
    }

    /// Returns true if a frame may hold a selected entry.
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
