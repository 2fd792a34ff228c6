//! Port of the audit log, which records calls before they leave for a backend.
//!
//! Interceptors do no I/O, and facts are delivered later. An intent can do neither: the driver that carries out a
//! [`crate::Command::Forward`] passes it to the [`IntentLog`] and sends the call only once the log confirms it.

use crate::caller::Caller;
use crate::exchange::MethodName;
use crate::fact::Decision;
use crate::keys::{ExchangeId, SessionKey};
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;

/// Kind of message that is about to leave.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum IntentKind {
    /// A call, whose outcome follows.
    Call,
    /// A copy of a call to another backend, whose answer is only recorded.
    Copy,
    /// A notification, which has no outcome.
    Notification,
}

/// Call or notification that is about to leave for a backend on behalf of a client.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Exchange of the call; zero for a notification.
    pub exchange: ExchangeId,
    /// Session of the call.
    pub session: SessionKey,
    /// Caller that made the request.
    pub caller: Caller,
    /// Method of the request.
    pub method: MethodName,
    /// The backend's name or URI for the subject.
    pub subject: Option<Box<str>>,
    /// Backend that receives the message; `*` for a notification to all backends of a session.
    pub backend: Arc<str>,
    /// Kind of the message.
    pub kind: IntentKind,
    /// Decisions taken about the call so far.
    pub decisions: Vec<Arc<Decision>>,
    /// The request as the client sent it.
    pub message: Bytes,
    /// Definition of the tool, for a tool call.
    pub definition: Option<Bytes>,
}

/// Resolves to true once intents are written, or to false if they cannot be and the calls must not leave.
pub type IntentWrite = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Writes intents to the audit log.
pub trait IntentLog: Send + Sync {
    /// Accepts intents. Must not block; the sender of the calls awaits the returned future.
    fn intend(&self, intents: Vec<Intent>) -> IntentWrite;
}
