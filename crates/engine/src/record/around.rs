//! Entries of a tape besides messages: sessions and callers, offers of backends, the rules in force.

use crate::fact::Point;
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

/// Description of a session, or of a caller without one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SessionInfo {
    /// Session id given to the client. It is a credential, so a tape stores a keyed hash of it; tapes of version 1 have
    /// the id.
    pub external: Option<String>,
    /// The client's name for itself.
    pub client: Option<String>,
    /// Version that the client declared.
    pub client_version: Option<String>,
    /// Protocol revision of the session.
    pub revision: Option<String>,
    /// Transport: `http`, `stdio`, `websocket`, `sse`, `tcp`.
    pub transport: String,
    /// Proof of the caller's identity: `none`, `certificate`, `local_user`, `gateway`.
    pub proof: Option<String>,
    /// Further claims of the proof, as (name, value).
    pub claims: Vec<(String, String)>,
    /// Address of the caller, without the port.
    pub address: Option<String>,
}

/// Caller without a session, recorded once. Later entries refer to its number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ClientEntry {
    /// Number in the tape.
    pub number: u64,
    /// Description of the caller.
    pub info: SessionInfo,
}

/// Profile and lists of a backend. A later entry for the same backend and view replaces the earlier one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BackendOffer {
    /// Configured name of the backend.
    pub backend: Arc<str>,
    /// Kind of client that sees this offer; empty if it is the same for all.
    pub view: String,
    /// Protocol revision agreed with the backend.
    pub revision: Option<String>,
    /// Hash of the complete offer, including parts omitted here.
    pub hash: String,
    /// Bytes that the backend sent, by name: `server`, `capabilities`, `instructions`, `tools`, `prompts`, `resources`,
    /// `resourceTemplates`.
    pub parts: Vec<(Cow<'static, str>, Bytes)>,
    /// Parts that were too large to be stored.
    pub left: Vec<String>,
    /// True if anything was redacted.
    pub redacted: bool,
}

/// Rules that apply from here on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RulesEntry {
    /// Hash of the text.
    pub hash: String,
    /// Text of the rules; empty if the tape already has the text with this hash.
    pub text: String,
    /// True if anything was redacted.
    pub redacted: bool,
}

/// Loss of a message after it was recorded as passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostEntry {
    /// Number of the message.
    pub number: u64,
    /// Point at which the message was recorded.
    pub point: Point,
    /// Reason for the loss.
    pub reason: Cow<'static, str>,
}

/// Refusal of a request before it became an exchange.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RefusedEntry {
    /// HTTP status of the answer, if there was one.
    pub status: Option<u16>,
    /// Reason, as a word.
    pub reason: Cow<'static, str>,
    /// Reason, as a sentence.
    pub detail: String,
    /// Number of the caller's [`ClientEntry`].
    pub client: Option<u64>,
}

/// Gap in a tape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Number of missing facts.
    pub facts: u64,
    /// Reason for the gap: `queue_full`, `disk`, `sampled`, …
    pub reason: String,
}
