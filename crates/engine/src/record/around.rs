//! What a tape keeps beside messages: sessions and callers, what backends offered, the rules in force.

use crate::fact::Point;
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

/// What is known about a session, or a caller without one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SessionInfo {
    /// The session id that the client was given. It is a credential, so a tape has a keyed hash of it; tapes of
    /// version 1 have the id.
    pub external: Option<String>,
    /// The client's name for itself.
    pub client: Option<String>,
    /// The client's version.
    pub client_version: Option<String>,
    /// The revision spoken.
    pub revision: Option<String>,
    /// The transport: `http`, `stdio`, `websocket`, `sse`, `tcp`.
    pub transport: String,
    /// How the caller proved who it is: `none`, `certificate`, `local_user`, `gateway`.
    pub proof: Option<String>,
    /// Further claims of the proof, as (name, value).
    pub claims: Vec<(String, String)>,
    /// The address, without the port.
    pub address: Option<String>,
}

/// A caller without a session, recorded once. Later entries refer to its number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ClientEntry {
    /// Its number in the tape.
    pub number: u64,
    /// What is known about it.
    pub info: SessionInfo,
}

/// What a backend says about itself and offers. A later entry for the same backend and view replaces the earlier one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BackendSeen {
    /// The backend.
    pub backend: Arc<str>,
    /// The kind of client that is shown this; empty if it is the same for all.
    pub view: String,
    /// The revision that is spoken with it.
    pub revision: Option<String>,
    /// A hash of everything it said, including parts left out here.
    pub hash: String,
    /// The bytes it sent, by name: `server`, `capabilities`, `instructions`, `tools`, `prompts`, `resources`,
    /// `resourceTemplates`.
    pub parts: Vec<(Cow<'static, str>, Bytes)>,
    /// The parts that were too large to be kept.
    pub left: Vec<String>,
    /// True if something was redacted.
    pub redacted: bool,
}

/// The rules that apply from here on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RulesEntry {
    /// A hash of their text.
    pub hash: String,
    /// Their text; empty if the tape already has the text of this hash.
    pub text: String,
    /// True if something was redacted.
    pub redacted: bool,
}

/// A message that was lost after it was recorded as passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostEntry {
    /// The number of the message.
    pub number: u64,
    /// The point it was recorded at.
    pub point: Point,
    /// Why it was lost.
    pub reason: Cow<'static, str>,
}

/// Something that was refused before it became an exchange.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RefusedEntry {
    /// The HTTP status of the answer, if there was one.
    pub status: Option<u16>,
    /// The reason, in a word.
    pub reason: Cow<'static, str>,
    /// The reason, in words.
    pub detail: String,
    /// The number of its caller's [`ClientEntry`].
    pub client: Option<u64>,
}

/// What is missing, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// How many facts.
    pub facts: u64,
    /// Why: `queue_full`, `disk`, `sampled`, …
    pub reason: String,
}
