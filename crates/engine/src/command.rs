//! All that the front machine asks of its driver: it reaches the outside in no other way.

use crate::back::Draft;
use crate::bridge::tasks::TaskState;
use crate::caller::Caller;
use crate::chain::{Effect, HoldQuestion, Phase};
use crate::exchange::MethodName;
use crate::fact::Fact;
use crate::front::{Authorized, AuthorizedFollow, ToClient};
use crate::keys::{ExchangeId, PeerId, StreamId};
use crate::limit::Limit;
use crate::read_cache::{Generation, Terms};
use bytes::Bytes;
use signalbox_wire::Era;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the front machine wants done. It acts in no other way.
#[derive(Clone, Debug)]
pub enum Command {
    /// Write a message to the client. Its fact, if facts are recorded, comes right before it.
    Send(ToClient),
    /// End a stream without an answer, because its call was cancelled.
    End {
        /// The stream.
        stream: StreamId,
    },
    /// Send a call to a backend.
    Forward {
        /// The exchange to answer.
        exchange: ExchangeId,
        /// The backend's configured name.
        backend: Arc<str>,
        /// The call.
        call: Authorized,
    },
    /// Send a notification to the backends that the session is connected to.
    Tell(Draft),
    /// Answer a question of a backend.
    Respond {
        /// The connection.
        peer: PeerId,
        /// The exchange during which it asked.
        exchange: Option<ExchangeId>,
        /// The answer, under the id the backend used.
        draft: Draft,
    },
    /// Cancel a call at its backend.
    Cancel {
        /// The exchange.
        exchange: ExchangeId,
        /// The backend it went to.
        backend: Arc<str>,
        /// The client's `params.reason`, raw.
        reason: Option<Bytes>,
    },
    /// Send a request whose answer nobody waits for. It outlives the session.
    Errand {
        /// The backend's configured name.
        backend: Arc<str>,
        /// The request.
        call: Authorized,
    },
    /// Remember which backend has a task of the caller.
    TaskHome {
        /// The task.
        state: Box<TaskState>,
        /// The backend's configured name.
        backend: Arc<str>,
    },
    /// Send [`crate::Event::ListsReady`] once the lists that a request needs are known.
    AwaitLists {
        /// The exchange to wake.
        exchange: ExchangeId,
    },
    /// Answer an interceptor's question about a message it holds, with [`crate::Event::Consulted`].
    Consult {
        /// The exchange of the message.
        exchange: ExchangeId,
        /// The question.
        question: HoldQuestion,
        /// The message, for whoever decides.
        held: Box<Held>,
    },
    /// Withdraw a question, because its exchange ended.
    Withdraw {
        /// The exchange of the message.
        exchange: ExchangeId,
    },
    /// Send a copy of a request to another backend. Its answer is recorded, never returned.
    Fork {
        /// The exchange it is a copy of, if any.
        exchange: Option<ExchangeId>,
        /// The backend's configured name.
        backend: Arc<str>,
        /// The request.
        call: Authorized,
    },
    /// Side effects of interceptors. A fork comes as [`Command::Fork`] instead.
    Effects(Vec<Effect>),
    /// Send [`crate::Event::Wake`] after this time.
    Wake {
        /// The exchange it is about.
        exchange: ExchangeId,
        /// How long to wait.
        after: Duration,
        /// The round of questions that times out then; `None` for a pause.
        round: Option<u32>,
    },
    /// Abandon a parked call whose questions the client was not shown.
    GiveUp {
        /// Its number among parked calls.
        park: u128,
    },
    /// Keep the result of a `resources/read`.
    KeepRead {
        /// The backend.
        backend: Arc<str>,
        /// The URI as the backend knows it.
        uri: Box<str>,
        /// The result.
        result: Bytes,
        /// For how long, and for whom.
        terms: Terms,
        /// The generation of the resource when it was asked for.
        asked: Generation,
        /// The era of the client that asked, which is also that of the connection.
        era: Era,
    },
    /// Subscribe to a resource or unsubscribe from it.
    Watch(Watch),
    /// The session's log level changed; connections that belong to it must be told.
    LogLevel,
    /// The session is initialised: connections may be opened ahead of the first call.
    Operational,
    /// Open or close a `subscriptions/listen` request; see `front::listen`.
    Listen(Listen),
    /// Record a fact.
    Fact(Fact),
    /// A message was dropped because it could not be delivered or understood; the reason is a metric label.
    Dropped(&'static str),
    /// A message was refused at a limit.
    Refused(Limit),
}

/// A held message, as it is shown to whoever decides about it.
#[derive(Clone, Debug)]
pub struct Held {
    /// The phase.
    pub phase: Phase,
    /// The method of its exchange.
    pub method: MethodName,
    /// The tool, prompt or URI, as the client knows it.
    pub subject: Option<Box<str>>,
    /// The name that the backend has for it.
    pub own_name: Option<Box<str>>,
    /// The backend.
    pub backend: Option<Arc<str>>,
    /// The caller.
    pub caller: Caller,
    /// Since when.
    pub since: Instant,
    /// The message.
    pub message: Bytes,
    /// True if its client asked for progress, and can be told that it waits.
    pub gives_progress: bool,
}

/// A `resources/subscribe` or `unsubscribe` of an old-era session.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The exchange to answer.
    pub exchange: ExchangeId,
    /// The backend.
    pub backend: Arc<str>,
    /// The URI as the backend knows it.
    pub uri: Box<str>,
    /// True to subscribe.
    pub on: bool,
    /// The call, for a backend connection that belongs to this session only.
    pub call: Authorized,
}

/// What a client's `subscriptions/listen` needs from the backends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Follow these resources and tasks.
    Open {
        /// The exchange of the listen request.
        exchange: ExchangeId,
        /// What to follow.
        follow: AuthorizedFollow,
    },
    /// Stop.
    Close {
        /// The exchange of the listen request.
        exchange: ExchangeId,
    },
}
