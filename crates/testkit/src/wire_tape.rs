//! Wire equals tape: what the strict parts sent and received in a meeting is held against what the gateway recorded of
//! it.
//!
//! - [`scene`]: a gateway that records, a strict server behind it and a strict client before it, for one cell of the
//!   matrix.
//! - [`meeting`]: everything the two revisions have, and what no side should do.
//! - [`witness`]: what both saw, by the point of the gateway that it passed.
//! - [`compare`] and [`order`]: what is missing on the tape, what is on it besides, and what is out of order.
//! - [`decisions`]: which messages on the tape nobody decided about.
//! - [`refusing`]: what passed although a rule refuses it.
//!
//! Tapes come as [`ReadTape`], so that this knows no store.

pub mod compare;
pub mod decisions;
pub mod finding;
pub mod meeting;
pub mod order;
pub mod refusing;
pub mod scene;
pub mod witness;

use std::fmt;

/// The four points of the gateway at which a message is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// As the client sent it.
    ClientIn,
    /// As the server got it.
    BackendOut,
    /// As the server sent it.
    BackendIn,
    /// As the client got it.
    ClientOut,
}

impl Point {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ClientIn, Self::BackendOut, Self::BackendIn, Self::ClientOut];
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::ClientIn => "client to gateway",
            Self::BackendOut => "gateway to backend",
            Self::BackendIn => "backend to gateway",
            Self::ClientOut => "gateway to client",
        })
    }
}

/// A message on a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taped {
    /// Its place on the tape.
    pub seq: u64,
    /// When, in nanoseconds since 1970.
    pub at: u64,
    /// The session it belongs to.
    pub session: Option<u64>,
    /// The exchange it belongs to.
    pub exchange: Option<u64>,
    /// Where it was seen.
    pub point: Point,
    /// Its method, or that of the request it answers, as the tape has it.
    pub method: Option<String>,
    /// Its bytes; none where the tape left them out.
    pub text: Option<String>,
    /// The place of the first sending, where this is one that was resumed or retried.
    pub again: Option<u64>,
    /// Whether it was delivered.
    pub delivered: bool,
}

/// A decision on a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Its place on the tape.
    pub seq: u64,
    /// The exchange it belongs to.
    pub exchange: Option<u64>,
    /// What was judged: `request`, `response`, …
    pub phase: String,
    /// The rule, where it was one.
    pub rule: Option<String>,
    /// What was decided.
    pub verdict: String,
}

/// A tape, as far as it is held against the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadTape {
    /// All messages, in order.
    pub messages: Vec<Taped>,
    /// All decisions, in order.
    pub decisions: Vec<Decided>,
    /// What is missing by the tape's own account.
    pub gaps: Vec<String>,
}
