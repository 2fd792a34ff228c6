//! Shared state of the gateways that serve the same sessions.
//!
//! ```text
//! mcp:<id> ──► code          the two mappings are made together or not at all
//! legacy:<code> ──► record   with requests, answers and results of the session
//! ```
//!
//! Times are arguments, in milliseconds since 1970. An expired session does not exist for any method. Every change that
//! others wait for is published to the subscribers of the code, on all gateways.

pub mod memory;
pub mod redis;
#[cfg(test)]
pub mod tests;

use crate::code::Code;
use crate::json_text::JsonText;
use crate::result_owner::ResultOwner;
use crate::session::SessionRecord;
use crate::tool_request::{ToolAnswer, ToolRequest};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Event queue length of a subscriber. One that lags further behind is disconnected: its receiver ends.
pub const EVENT_QUEUE: usize = 256;
/// Number of answered requests remembered per session, to recognize duplicate answers.
pub const MAX_ANSWERED: usize = 256;

/// Future of a store operation.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RelayStoreError>> + Send + 'a>>;

/// Error of a store operation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RelayStoreError {
    /// The store is unreachable or does not answer.
    #[error("the relay's store cannot be reached: {0}")]
    Unreachable(String),
    /// The store holds data of an unknown form.
    #[error("the relay's store holds something that cannot be read: {0}")]
    Unreadable(String),
}

/// Outcome of creating a session.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CreateOutcome {
    /// Both mappings were created.
    Both,
    /// Another session has the code or the id. Nothing was created.
    Taken,
    /// The maximum number of sessions is reached. Nothing was created.
    Full,
}

/// Outcome of queueing a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum QueueOutcome {
    /// The request is queued, and its worker is notified.
    Queued,
    /// The queue is full.
    Full,
    /// The session does not exist.
    NoSession,
}

/// Outcome of answering a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AnswerOutcome {
    /// The answer was accepted.
    Taken,
    /// The request was already answered.
    Duplicate,
    /// No such request is waiting: it never existed, was withdrawn, or has expired.
    Unknown,
}

/// Event in a session. Large payloads are shared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelayEvent {
    /// A request was queued. The store has its content.
    Requested {
        /// Id of the request.
        id: Box<str>,
    },
    /// A request was answered.
    Answered {
        /// Id of the request.
        id: Box<str>,
        /// The answer. It does not travel with the event.
        #[serde(skip, default = "nothing")]
        answer: Arc<ToolAnswer>,
    },
    /// A request was withdrawn.
    Cancelled {
        /// Id of the request.
        id: Box<str>,
        /// Reason of the withdrawal.
        reason: Box<str>,
    },
    /// A worker reported progress.
    Progressed {
        /// Id of the request.
        id: Box<str>,
        /// The report: `{progress, total?, message?}`.
        progress: JsonText,
    },
    /// New results for clients are available.
    Results,
    /// The page's tools have changed.
    ToolsChanged,
    /// The active worker has left or was replaced.
    LeadChanged,
    /// The session has ended.
    Ended,
}

/// Placeholder for an answer that does not travel with its event. A store that sends events between processes fills in
/// the real one.
fn nothing() -> Arc<ToolAnswer> {
    Arc::new(ToolAnswer::Result(RawValue::NULL.to_owned().into()))
}

/// Receiver of a session's events. It ends when the subscriber lags behind or the store has lost events: the reader
/// then has to read the store anew.
pub type EventReader = mpsc::Receiver<RelayEvent>;

/// Result for the clients of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberedResult {
    /// Number within the session, from 1.
    pub number: u64,
    /// One line of JSON, as sent to the client.
    pub data: Bytes,
}

/// Numbers of sessions in a store.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct SessionCounts {
    /// Sessions with and without a page.
    pub sessions: usize,
    /// Sessions whose page is connected.
    pub connected: usize,
}

/// Store of sessions, requests and answers, which notifies subscribers of changes.
pub trait RelayStore: Send + Sync {
    /// Creates both mappings of a session, `mcp:<id>` and `legacy:<code>`, or neither. `most` is the maximum number of
    /// sessions.
    fn create(&self, record: SessionRecord, most: usize, now: u64) -> StoreFuture<'_, CreateOutcome>;

    /// Returns the session of this code.
    fn by_code<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, Option<SessionRecord>>;

    /// Returns the session that this MCP session is bound to.
    fn by_mcp<'a>(&'a self, mcp_id: &'a str, now: u64) -> StoreFuture<'a, Option<SessionRecord>>;

    /// Binds a known MCP session to another code. Returns false if one of the two does not exist.
    fn bind<'a>(&'a self, mcp_id: &'a str, code: &'a Code, now: u64) -> StoreFuture<'a, bool>;

    /// Extends a session, and the MCP sessions bound to it, until `until`. Returns false if it does not exist.
    fn touch<'a>(&'a self, code: &'a Code, until: u64, now: u64) -> StoreFuture<'a, bool>;

    /// Ends a session and notifies its subscribers. Returns false if it does not exist.
    fn remove<'a>(&'a self, code: &'a Code) -> StoreFuture<'a, bool>;

    /// Unbinds an MCP session. Ends the session that was created with it unless others are bound to that.
    fn forget_mcp<'a>(&'a self, mcp_id: &'a str) -> StoreFuture<'a, ()>;

    /// Records that a worker has presented the token.
    fn set_tokened<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, bool>;

    /// Replaces the page's own tools, a JSON array. Notifies subscribers.
    fn set_tools<'a>(&'a self, code: &'a Code, tools: &'a str, now: u64) -> StoreFuture<'a, bool>;

    /// Queues a request, up to `most`. Requests past their deadline do not count. Notifies subscribers.
    fn push<'a>(&'a self, code: &'a Code, request: ToolRequest, most: usize, now: u64)
    -> StoreFuture<'a, QueueOutcome>;

    /// Returns the requests that wait for an answer, oldest first.
    fn unanswered<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, Vec<ToolRequest>>;

    /// Records that a request goes to the worker with this journal, unless it was sent before. Returns false if it is
    /// no longer waiting.
    fn mark_sent<'a>(&'a self, code: &'a Code, id: &'a str, journal: &'a str, now: u64) -> StoreFuture<'a, bool>;

    /// Answers a request, exactly once. Notifies subscribers.
    fn answer<'a>(
        &'a self,
        code: &'a Code,
        id: &'a str,
        answer: ToolAnswer,
        now: u64,
    ) -> StoreFuture<'a, AnswerOutcome>;

    /// Withdraws a request. Returns false if it is not waiting. Notifies subscribers.
    fn withdraw<'a>(&'a self, code: &'a Code, id: &'a str, reason: &'a str, now: u64) -> StoreFuture<'a, bool>;

    /// Sends an event to subscribers without storing it.
    fn publish<'a>(&'a self, code: &'a Code, event: RelayEvent) -> StoreFuture<'a, ()>;

    /// Stores a result for the clients of `owner`. A session keeps `most` results; the oldest are dropped. Notifies
    /// subscribers.
    fn push_result<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        data: Bytes,
        most: usize,
        now: u64,
    ) -> StoreFuture<'a, bool>;

    /// Returns the results of an owner after this number, or after the last one that any of its clients received.
    fn results<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        after: Option<u64>,
        now: u64,
    ) -> StoreFuture<'a, Vec<NumberedResult>>;

    /// Records that a client of an owner has received its results up to this number.
    fn delivered<'a>(&'a self, code: &'a Code, owner: &'a ResultOwner, number: u64, now: u64) -> StoreFuture<'a, ()>;

    /// Makes a stream the active one until `until`, if there is none or it belongs to the same `holder`. A holder is a
    /// page; a stream is one of its connections. Returns true if the stream is active now. Notifies subscribers of a
    /// change.
    fn take_lead<'a>(
        &'a self,
        code: &'a Code,
        holder: &'a str,
        stream: &'a str,
        until: u64,
        now: u64,
    ) -> StoreFuture<'a, bool>;

    /// Gives up the lead if this stream has it. Notifies subscribers.
    fn yield_lead<'a>(&'a self, code: &'a Code, stream: &'a str, now: u64) -> StoreFuture<'a, ()>;

    /// Returns true if a stream has the lead.
    fn has_lead<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, bool>;

    /// Subscribes to the events of a session from now on.
    fn subscribe<'a>(&'a self, code: &'a Code) -> StoreFuture<'a, EventReader>;

    /// Ends expired sessions and notifies their subscribers. Does nothing in a store that expires sessions by itself.
    fn sweep(&self, _now: u64) -> StoreFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the numbers of sessions, as far as known without waiting.
    fn counts(&self) -> SessionCounts;

    /// Returns the reason why the store is unusable at the moment, if it is.
    fn trouble(&self) -> Option<RelayStoreError> {
        None
    }

    /// Returns the store's own metrics, in the Prometheus text format.
    fn metrics(&self) -> String {
        String::new()
    }
}
