//! Analysis of the bytes that pass through a transparent proxy.
//!
//! The proxies forward bytes and never wait for the analysis. Each chunk is put into a [`Feed`] before it is written,
//! so that a request is always seen before its answer. A separate thread splits the bytes into messages, matches
//! answers to requests, and emits facts. The analysis is pure: bytes and times in, facts out. Bytes that are not a
//! message are recorded unchanged.

mod conversation;
mod feed;
#[cfg(test)]
mod http_dialogues;
mod http_event;
pub mod http_heads;
mod http_tap;
mod introduction;
mod line_cutter;
mod observed_sessions;
mod open_requests;
mod stdio_tap;
#[cfg(test)]
mod tests;

pub use conversation::{Conversation, TapSide, Who};
pub use feed::{Feed, MAX_HELD, Running, Tap, TapLoss, Weigh};
pub use http_event::{HttpEvent, HttpStep, ObservedRequest, ObservedResponse};
pub use http_tap::{HttpTap, MAX_GATHERED};
pub use line_cutter::{LineCutter, LinePiece};
pub use observed_sessions::{MAX_SESSIONS, SESSION_TIMEOUT};
pub use open_requests::{CANCELLED_FOR, MAX_WAITING, UNANSWERED_AFTER};
pub use stdio_tap::{Chunk, StdioTap};

/// Counters of one or more conversations.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct TapCounts {
    /// Messages, pieces of long ones, and other input in their place.
    pub messages: u64,
    /// Requests of either side.
    pub requests: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Answers without a matching request.
    pub orphans: u64,
    /// Requests that were given up without an answer.
    pub unanswered: u64,
    /// Inputs that are not JSON-RPC messages.
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
