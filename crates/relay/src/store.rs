//! What gateways that serve the same sessions have to agree on.
//!
//! ```text
//! mcp:<id> ──► code          the two mappings are made together or not at all
//! legacy:<code> ──► record   with requests, answers and results of the session
//! ```
//!
//! Times are arguments, in milliseconds since 1970. A session whose time is over does not exist for any method. Every change of
//! what others wait for is published to the subscribers of the code, on whichever gateway they are.

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

/// Events that wait for one subscriber. One that is further behind is let go: its receiver ends.
pub const EVENT_QUEUE: usize = 256;
/// Answered requests of a session that are remembered, so that a second answer is known as one.
pub const MAX_ANSWERED: usize = 256;

/// What a store does, when it is done.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store could not do something.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or does not answer.
    #[error("the relay's store cannot be reached: {0}")]
    Unreachable(String),
    /// It holds something that is none of ours.
    #[error("the relay's store holds something that cannot be read: {0}")]
    Unreadable(String),
}

/// What became of a session that was to be made.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Created {
    /// Both mappings are there.
    Both,
    /// Another session has the code or the id. Nothing was made.
    Taken,
    /// There are as many sessions as there may be. Nothing was made.
    Full,
}

/// What became of a request that was to be queued.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// It is queued, and its worker hears of it.
    Queued,
    /// As many wait as may.
    Full,
    /// There is no such session.
    NoSession,
}

/// What became of an answer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Answered {
    /// It is the answer.
    Taken,
    /// There was one already.
    Duplicate,
    /// No such request waits: it never did, was withdrawn, or its time is over.
    Unknown,
}

/// What happens in a session. What is large is shared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelayEvent {
    /// A request was queued. What it is stands in the store.
    Requested {
        /// Which.
        id: Box<str>,
    },
    /// A request was answered.
    Answered {
        /// Which.
        id: Box<str>,
        /// With what.
        #[serde(skip, default = "nothing")]
        answer: Arc<ToolAnswer>,
    },
    /// Nobody waits for a request any more.
    Cancelled {
        /// Which.
        id: Box<str>,
        /// Why.
        reason: Box<str>,
    },
    /// A worker says how far it is.
    Progressed {
        /// With which request.
        id: Box<str>,
        /// What it says: `{progress, total?, message?}`.
        progress: JsonText,
    },
    /// There are results for clients.
    Results,
    /// The page has other tools.
    ToolsChanged,
    /// The active worker has left, or another has taken its place.
    LeadChanged,
    /// The session is over.
    Ended,
}

/// An answer that does not travel with its event; a store that sends events elsewhere puts the real one in place.
fn nothing() -> Arc<ToolAnswer> {
    Arc::new(ToolAnswer::Result(RawValue::NULL.to_owned().into()))
}

/// Where the events of one session arrive. It ends when the subscriber is too far behind or the store has lost its connection:
/// whoever reads it looks at the store anew.
pub type EventReader = mpsc::Receiver<RelayEvent>;

/// A result for the clients of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberedResult {
    /// Its number within the session, from 1 on.
    pub number: u64,
    /// What is sent: one line of JSON.
    pub data: Bytes,
}

/// Keeps sessions, requests and answers, and tells of changes.
pub trait RelayStore: Send + Sync {
    /// Makes both mappings of a session, `mcp:<id>` and `legacy:<code>`, or neither. `most` sessions may be there.
    fn create(&self, record: SessionRecord, most: usize, now: u64) -> Stored<'_, Created>;

    /// The session of this code.
    fn by_code<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, Option<SessionRecord>>;

    /// The session that this MCP session is bound to.
    fn by_mcp<'a>(&'a self, mcp_id: &'a str, now: u64) -> Stored<'a, Option<SessionRecord>>;

    /// Binds an MCP session that is known here to another code. False if one of the two is not there.
    fn bind<'a>(&'a self, mcp_id: &'a str, code: &'a Code, now: u64) -> Stored<'a, bool>;

    /// Lets a session, and the MCP sessions bound to it, go on until then. False if it is not there.
    fn touch<'a>(&'a self, code: &'a Code, until: u64, now: u64) -> Stored<'a, bool>;

    /// Ends a session and tells its subscribers. False if it is not there.
    fn remove<'a>(&'a self, code: &'a Code) -> Stored<'a, bool>;

    /// Unbinds an MCP session, and ends the session that was made with it unless others are bound to that.
    fn forget_mcp<'a>(&'a self, mcp_id: &'a str) -> Stored<'a, ()>;

    /// Notes that a worker has shown the token.
    fn set_tokened<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, bool>;

    /// Replaces the page's own tools, a JSON array, and tells of it.
    fn set_tools<'a>(&'a self, code: &'a Code, tools: &'a str, now: u64) -> Stored<'a, bool>;

    /// Queues a request and tells of it. `most` may wait. What is past its deadline waits no more.
    fn push<'a>(&'a self, code: &'a Code, request: ToolRequest, most: usize, now: u64) -> Stored<'a, Pushed>;

    /// The requests that wait for an answer, the oldest first.
    fn unanswered<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, Vec<ToolRequest>>;

    /// Notes that a request goes to the worker with this journal, unless it was sent before. False if it does not wait any more.
    fn mark_sent<'a>(&'a self, code: &'a Code, id: &'a str, journal: &'a str, now: u64) -> Stored<'a, bool>;

    /// Answers a request, exactly once, and tells of it.
    fn answer<'a>(&'a self, code: &'a Code, id: &'a str, answer: ToolAnswer, now: u64) -> Stored<'a, Answered>;

    /// Takes a request back that nobody waits for any more. False if it does not wait. Tells of it.
    fn withdraw<'a>(&'a self, code: &'a Code, id: &'a str, reason: &'a str, now: u64) -> Stored<'a, bool>;

    /// Tells subscribers something that is kept nowhere.
    fn publish<'a>(&'a self, code: &'a Code, event: RelayEvent) -> Stored<'a, ()>;

    /// Keeps a result for the clients of `owner`. A session has `most` of them; older ones give way. Tells of it.
    fn push_result<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        data: Bytes,
        most: usize,
        now: u64,
    ) -> Stored<'a, bool>;

    /// The results of an owner after this number, or after the last that any of its clients got.
    fn results<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        after: Option<u64>,
        now: u64,
    ) -> Stored<'a, Vec<NumberedResult>>;

    /// Notes that a client of an owner got its results up to this number.
    fn delivered<'a>(&'a self, code: &'a Code, owner: &'a ResultOwner, number: u64, now: u64) -> Stored<'a, ()>;

    /// Makes a stream the one whose worker is asked, until then: where there is none, or it belongs to the same `holder`. A
    /// holder is a page; a stream is one of its connections. True if it is that one now. A change is told.
    fn take_lead<'a>(
        &'a self,
        code: &'a Code,
        holder: &'a str,
        stream: &'a str,
        until: u64,
        now: u64,
    ) -> Stored<'a, bool>;

    /// Gives the lead up, if this stream has it, and tells of it.
    fn yield_lead<'a>(&'a self, code: &'a Code, stream: &'a str, now: u64) -> Stored<'a, ()>;

    /// True while some stream has the lead.
    fn has_lead<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, bool>;

    /// The events of a session from now on.
    fn subscribe<'a>(&'a self, code: &'a Code) -> Stored<'a, EventReader>;

    /// Ends sessions whose time is over and tells their subscribers. A store that does so by itself does nothing here.
    fn sweep(&self, _now: u64) -> Stored<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// How many sessions there are, and how many of them have an active worker, as far as that is known without waiting.
    fn counts(&self) -> (usize, usize);

    /// Why it cannot be used at this moment, if it cannot.
    fn trouble(&self) -> Option<StoreError> {
        None
    }

    /// What it counts itself, in the text format of Prometheus.
    fn metrics(&self) -> String {
        String::new()
    }
}
