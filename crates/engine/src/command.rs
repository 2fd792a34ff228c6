//! Commands of the front machine to its driver. The machine reaches the outside in no other way.

use crate::back::Draft;
use crate::bridge::tasks::TaskState;
use crate::caller::Caller;
use crate::chain::{Effect, HoldQuestion, Phase};
use crate::exchange::MethodName;
use crate::fact::Fact;
use crate::front::{AuthorizedCall, AuthorizedFollow, ToClient};
use crate::keys::{ExchangeId, PeerId, StreamId};
use crate::limit::Limit;
use crate::read_cache::{CacheTerms, Generation};
use bytes::Bytes;
use signalbox_wire::Era;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Command of the front machine to its driver.
#[derive(Clone, Debug)]
pub enum Command {
    /// Write a message to the client. Its fact, if facts are recorded, comes right before it.
    Send(ToClient),
    /// End a stream without an answer, because its call was cancelled.
    End {
        /// Stream of the cancelled call.
        stream: StreamId,
    },
    /// Send a call to a backend.
    Forward {
        /// Exchange that waits for the answer.
        exchange: ExchangeId,
        /// Configured name of the backend.
        backend: Arc<str>,
        /// The call to send.
        call: AuthorizedCall,
    },
    /// Send a notification to the backends that the session is connected to.
    Tell {
        /// The notification, as the client sent it.
        draft: Draft,
        /// Backends that do not get it, because the caller may no longer reach them.
        except: Vec<Arc<str>>,
    },
    /// Answer a question of a backend.
    Respond {
        /// Connection that asked the question.
        peer: PeerId,
        /// Exchange during which it asked.
        exchange: Option<ExchangeId>,
        /// The answer, under the id the backend used.
        draft: Draft,
    },
    /// Cancel a call at its backend.
    Cancel {
        /// Exchange of the call.
        exchange: ExchangeId,
        /// Backend that received the call.
        backend: Arc<str>,
        /// The client's `params.reason`, raw.
        reason: Option<Bytes>,
    },
    /// Send a request whose answer is discarded. It outlives the session.
    SendAndDiscard {
        /// Configured name of the backend.
        backend: Arc<str>,
        /// The request to send.
        call: AuthorizedCall,
    },
    /// Remember which backend hosts a task of the caller.
    TaskHome {
        /// State of the task.
        state: Box<TaskState>,
        /// Configured name of the backend.
        backend: Arc<str>,
    },
    /// Send [`crate::Event::ListsReady`] once the lists that a request needs are known.
    AwaitLists {
        /// Exchange that waits for the lists.
        exchange: ExchangeId,
    },
    /// Answer an interceptor's question about a message it holds, with [`crate::Event::Consulted`].
    Consult {
        /// Exchange of the message.
        exchange: ExchangeId,
        /// The interceptor's question, which decides who answers it.
        question: HoldQuestion,
        /// The message, as shown to the person or webhook that decides.
        held: Box<MessageOnHold>,
    },
    /// Withdraw a question, because its exchange ended.
    Withdraw {
        /// Exchange of the message.
        exchange: ExchangeId,
    },
    /// Send a copy of a request to another backend. Its answer is recorded, never returned.
    Fork {
        /// Exchange of the original, if any.
        exchange: Option<ExchangeId>,
        /// Configured name of the backend.
        backend: Arc<str>,
        /// The request to send.
        call: AuthorizedCall,
    },
    /// Carry out side effects of interceptors. A fork comes as [`Command::Fork`] instead.
    Effects(Vec<Effect>),
    /// Send [`crate::Event::Wake`] after this time.
    Wake {
        /// Exchange it is about.
        exchange: ExchangeId,
        /// Delay before the event.
        after: Duration,
        /// Round of questions that times out then; `None` for a pause.
        round: Option<u32>,
    },
    /// Abandon a parked call whose questions the client was not shown.
    GiveUp {
        /// Number of the parked call.
        park: u128,
    },
    /// Cache the result of a `resources/read`.
    KeepRead {
        /// Configured name of the backend that answered.
        backend: Arc<str>,
        /// The backend's URI of the resource.
        uri: Box<str>,
        /// The result to cache.
        result: Bytes,
        /// Cache terms of the result.
        terms: CacheTerms,
        /// Generation of the resource when the request was made.
        asked: Generation,
        /// Era of the client that asked, which is also that of the connection.
        era: Era,
    },
    /// Subscribe to a resource or unsubscribe from it.
    Watch(Watch),
    /// Notify the session's backend connections of its changed log level.
    LogLevel {
        /// Exchange of the request, which is answered already.
        exchange: ExchangeId,
        /// The request as the client sent it.
        message: Bytes,
        /// Backends that are not told, because the caller may no longer reach them.
        except: Vec<Arc<str>>,
    },
    /// Note that the session is initialised: connections may be opened ahead of the first call.
    Operational,
    /// Open or close a `subscriptions/listen` request; see `front::listen`.
    Listen(Listen),
    /// Record a fact for metrics, traces and tapes.
    Fact(Fact),
    /// Count a message that was dropped because it could not be delivered or understood. The reason is a metric label.
    Dropped(&'static str),
    /// Count a message that was refused at a limit.
    Refused(Limit),
}

/// Held message, as shown to the person or webhook that decides about it.
#[derive(Clone, Debug)]
pub struct MessageOnHold {
    /// Phase in which the message is held.
    pub phase: Phase,
    /// Method of its exchange.
    pub method: MethodName,
    /// The client's name or URI for the subject.
    pub subject: Option<Box<str>>,
    /// The backend's name or URI for the subject.
    pub own_name: Option<Box<str>>,
    /// Backend that the exchange was routed to.
    pub backend: Option<Arc<str>>,
    /// Caller of the exchange.
    pub caller: Caller,
    /// Start of the hold.
    pub since: Instant,
    /// The held message, with the changes of earlier interceptors.
    pub message: Bytes,
    /// True if its client asked for progress, and can be told that the call waits.
    pub gives_progress: bool,
}

/// A `resources/subscribe` or `unsubscribe` of an old-era session.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Exchange that waits for the answer.
    pub exchange: ExchangeId,
    /// Backend that has the resource.
    pub backend: Arc<str>,
    /// The backend's URI of the resource.
    pub uri: Box<str>,
    /// True to subscribe, false to unsubscribe.
    pub on: bool,
    /// The call, for a backend connection that belongs to this session only.
    pub call: AuthorizedCall,
}

/// Change to the set of resources and tasks that a client's `subscriptions/listen` follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Follow these resources and tasks.
    Open {
        /// Exchange of the listen request.
        exchange: ExchangeId,
        /// Resources and tasks to follow.
        follow: AuthorizedFollow,
    },
    /// Stop following the targets of this listen request.
    Close {
        /// Exchange of the listen request.
        exchange: ExchangeId,
    },
}
