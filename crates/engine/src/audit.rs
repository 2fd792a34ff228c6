//! The port of the audit log: what is about to leave for a backend is written down before it leaves.
//!
//! Interceptors do no I/O, and facts are told when there is time for them. An intent can wait for neither: whoever carries out a
//! [`crate::Command::Forward`] hands it to the [`IntentLog`] and sends the call once that says so.

use crate::caller::Caller;
use crate::exchange::MethodName;
use crate::fact::Decision;
use crate::keys::{ExchangeId, SessionKey};
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;

/// Something that is about to leave for a backend on behalf of a client.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The exchange.
    pub exchange: ExchangeId,
    /// The session.
    pub session: SessionKey,
    /// Who asked for it.
    pub caller: Caller,
    /// The method.
    pub method: MethodName,
    /// The tool, prompt or URI as the backend knows it.
    pub subject: Option<Box<str>>,
    /// The backend.
    pub backend: Arc<str>,
    /// True for a copy that goes to another backend, whose answer nobody waits for.
    pub is_copy: bool,
    /// What was decided about it just now.
    pub decisions: Vec<Arc<Decision>>,
    /// The request as the client sent it.
    pub message: Bytes,
    /// The definition of the tool, if it is one.
    pub definition: Option<Bytes>,
}

/// Resolves with true once intents are written, or with false if they cannot be and must not leave without.
pub type Intended = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Writes intents down.
pub trait IntentLog: Send + Sync {
    /// Takes intents. Must not block; whoever sends the calls awaits what it returns.
    fn intend(&self, intents: Vec<Intent>) -> Intended;
}
