//! What the tap could not make sense of, as numbers.

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
