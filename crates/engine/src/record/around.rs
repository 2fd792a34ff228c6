//! What a tape keeps beside messages: who spoke, what backends offered, by which rules was decided.

use crate::fact::Point;
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

/// What is known of a session, or of a caller without one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SessionInfo {
    /// The id that the client was given. It is a credential, so a tape has a keyed hash of it; tapes of version 1 have the id.
    pub external: Option<String>,
    /// The client's name for itself.
    pub client: Option<String>,
    /// The client's version.
    pub client_version: Option<String>,
    /// The revision spoken.
    pub revision: Option<String>,
    /// How the client came: `http`, `stdio`, `websocket`, `sse`, `tcp`.
    pub transport: String,
    /// How the caller proved who it is: `none`, `certificate`, `local_user`, `gateway`.
    pub proof: Option<String>,
    /// What the proof says besides, as name and value.
    pub claims: Vec<(String, String)>,
    /// Where it called from, without the port.
    pub address: Option<String>,
}

/// A caller without a session, told of once. Later entries name it by its number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ClientEntry {
    /// Its number in the tape.
    pub number: u64,
    /// What is known of it.
    pub info: SessionInfo,
}

/// What a backend says of itself and offers, as the gateway saw it. The later entry of a backend and view replaces the
/// earlier one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BackendSeen {
    /// The backend.
    pub backend: Arc<str>,
    /// To which kind of client it shows this; empty where it is the same for all.
    pub view: String,
    /// The revision that is spoken with it.
    pub revision: Option<String>,
    /// A hash over all that it said, also over what is left out here.
    pub hash: String,
    /// What it said, as the bytes it sent, by name: `server`, `capabilities`, `instructions`, `tools`, `prompts`,
    /// `resources`, `resourceTemplates`.
    pub parts: Vec<(Cow<'static, str>, Bytes)>,
    /// The parts that were too large to be kept.
    pub left: Vec<String>,
    /// True where something was taken out of it.
    pub redacted: bool,
}

/// The rules by which decisions from here on are taken.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RulesEntry {
    /// A hash of their text.
    pub hash: String,
    /// Their text. Empty where a tape has told the text of this hash before.
    pub text: String,
    /// True where something was taken out of the text.
    pub redacted: bool,
}

/// A message that was lost after it was said to have passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostEntry {
    /// The number of the message.
    pub number: u64,
    /// Where it had passed.
    pub point: Point,
    /// Why it was lost.
    pub reason: Cow<'static, str>,
}

/// What was refused before there was an exchange.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RefusedEntry {
    /// The HTTP status it was answered with, where it was.
    pub status: Option<u16>,
    /// Why, in a word.
    pub reason: Cow<'static, str>,
    /// Why, for a person.
    pub detail: String,
    /// The caller, by the number of its [`ClientEntry`].
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
