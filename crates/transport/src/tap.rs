//! What a transparent proxy makes of the bytes that pass through it.
//!
//! The proxies forward first and look aside: each chunk is put into a [`Feed`] before it is written on, so that a question is
//! always seen before its answer, and a thread of its own cuts the bytes into messages, finds out which answer belongs to
//! which request, and tells it as facts. The machines are pure: bytes and times in, facts out. Whatever they cannot read
//! is told as it is.

mod conversation;
mod feed;
#[cfg(test)]
mod http_dialogues;
pub mod http_heads;
mod http_seen;
mod http_tap;
mod introduction;
mod line_cutter;
mod stdio_tap;
mod talks;
#[cfg(test)]
mod tests;
mod waiting;

pub use conversation::{Conversation, Side, Who};
pub use feed::{Feed, MAX_HELD, Running, Tap, TapLoss, Weigh};
pub use http_seen::{Answered, Asked, HttpSeen, HttpStep};
pub use http_tap::{HttpTap, MAX_GATHERED};
pub use line_cutter::{LineCutter, Piece};
pub use stdio_tap::{Chunk, StdioTap};
pub use talks::{MAX_SESSIONS, SESSION_TIMEOUT};
pub use waiting::{CANCELLED_FOR, MAX_WAITING, UNANSWERED_AFTER};

/// Counts of one conversation, or of many.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct TapCounts {
    /// Messages, pieces of long ones and whatever else came in their place.
    pub messages: u64,
    /// Requests of either side.
    pub requests: u64,
    /// Requests that got their answer.
    pub answered: u64,
    /// Answers to nothing that was asked.
    pub orphans: u64,
    /// Requests that were given up without an answer.
    pub unanswered: u64,
    /// What is no JSON-RPC message.
    pub unread: u64,
    /// Pieces of messages that are too long to be held as a whole.
    pub pieces: u64,
}

impl std::ops::AddAssign for TapCounts {
    fn add_assign(&mut self, more: Self) {
        self.messages += more.messages;
        self.requests += more.requests;
        self.answered += more.answered;
        self.orphans += more.orphans;
        self.unanswered += more.unanswered;
        self.unread += more.unread;
        self.pieces += more.pieces;
    }
}
