//! Everything a front machine can ask for.

use crate::back::Draft;
use crate::bridge::tasks::TaskState;
use crate::caller::Caller;
use crate::chain::{Effect, HoldQuestion, Phase};
use crate::exchange::{Call, MethodName};
use crate::fact::Fact;
use crate::front::ToClient;
use crate::keys::{ExchangeId, PeerId, StreamId};
use crate::limit::Limit;
use crate::read_cache::{Generation, Terms};
use bytes::Bytes;
use signalbox_wire::Era;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is to be done. A front machine acts in no other way.
#[derive(Clone, Debug)]
pub enum Command {
    /// Write a message to the client. Its fact comes right before it, where facts are told.
    Send(ToClient),
    /// The stream carries nothing more, and there is no answer: its call was cancelled.
    End {
        /// The stream.
        stream: StreamId,
    },
    /// Bring a call to a backend.
    Forward {
        /// The exchange to answer.
        exchange: ExchangeId,
        /// The backend's configured name.
        backend: Arc<str>,
        /// The call.
        call: Box<Call>,
    },
    /// Tell the backends something; those that the session is not connected to are left alone.
    Tell(Draft),
    /// Answer the connection that asked.
    Respond {
        /// The connection.
        peer: PeerId,
        /// The exchange in whose course it asked.
        exchange: Option<ExchangeId>,
        /// The answer, under the id the backend used.
        draft: Draft,
    },
    /// Stop working on a call.
    Cancel {
        /// The exchange.
        exchange: ExchangeId,
        /// The backend it went to.
        backend: Arc<str>,
        /// The client's `params.reason`, raw.
        reason: Option<Bytes>,
    },
    /// Bring a request to a backend whose answer nobody waits for. It outlives the session.
    Errand {
        /// The backend's configured name.
        backend: Arc<str>,
        /// The request.
        call: Box<Call>,
    },
    /// Remember at which backend the caller has a task.
    TaskHome {
        /// The task.
        state: Box<TaskState>,
        /// The backend's configured name.
        backend: Arc<str>,
    },
    /// Hold a list request until the lists it needs are known.
    AwaitLists {
        /// The exchange to wake.
        exchange: ExchangeId,
    },
    /// Find out what an interceptor wants to know about a message that waits, and come back with
    /// [`crate::Event::Consulted`].
    Consult {
        /// The exchange of the message.
        exchange: ExchangeId,
        /// What is asked.
        question: HoldQuestion,
        /// The message, for whoever is to decide.
        held: Box<Held>,
    },
    /// A question is of no use any more.
    Withdraw {
        /// The exchange of the message.
        exchange: ExchangeId,
    },
    /// Send a copy of a request to another backend. Its answer is recorded, never returned.
    Fork {
        /// The exchange that it is a copy of; none for what belongs to none.
        exchange: Option<ExchangeId>,
        /// The backend's configured name.
        backend: Arc<str>,
        /// The request.
        call: Box<Call>,
    },
    /// What interceptors want done besides. A fork comes as [`Command::Fork`].
    Effects(Vec<Effect>),
    /// Come back with [`crate::Event::Wake`] after this time.
    Wake {
        /// The exchange it is about.
        exchange: ExchangeId,
        /// How long to wait.
        after: Duration,
        /// The round of questions that is over then, answered or not; none for a pause.
        round: Option<u32>,
    },
    /// Give up a parked call whose questions the client was not shown.
    GiveUp {
        /// Its number among parked calls.
        park: u128,
    },
    /// Keep what a backend said a resource is.
    KeepRead {
        /// The backend.
        backend: Arc<str>,
        /// The URI as the backend knows it.
        uri: Box<str>,
        /// The result.
        result: Bytes,
        /// For how long, and for whom.
        terms: Terms,
        /// What was known of its changes when it was asked for.
        asked: Generation,
        /// The era of the client that asked, which tells the era of the connection.
        era: Era,
    },
    /// Start or change what the session hears of a resource.
    Watch(Watch),
    /// The session's log level changed; connections that belong to it must be told.
    LogLevel,
    /// The session is initialised: connections may be opened ahead of the first call.
    Operational,
    /// A long-lived request of the new era was opened or ended; see `front::listen`.
    Listen(Listen),
    /// Something worth recording happened.
    Fact(Fact),
    /// A message could not be delivered or understood and was dropped; the reason is a metric label.
    Dropped(&'static str),
    /// A message was refused at a limit.
    Refused(Limit),
}

/// A message that waits for an answer.
#[derive(Clone, Debug)]
pub struct Held {
    /// Which way it goes.
    pub phase: Phase,
    /// The method of its exchange.
    pub method: MethodName,
    /// The tool, prompt or URI, as the client knows it.
    pub subject: Option<Box<str>>,
    /// The backend.
    pub backend: Option<Arc<str>>,
    /// On whose behalf.
    pub caller: Caller,
    /// Since when.
    pub since: Instant,
    /// The message.
    pub message: Bytes,
    /// True where its client wants to hear of progress, and can be told that it waits.
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
    /// The call, for a backend connection that belongs to this session alone.
    pub call: Box<Call>,
}

/// What the gateway must hear from backends for a `subscriptions/listen` of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Follow these resources and tasks, as (backend, URI or id of the backend).
    Open {
        /// The exchange of the listen request.
        exchange: ExchangeId,
        /// What to follow.
        resources: Vec<(Arc<str>, Box<str>)>,
        /// Of which tasks to hear.
        tasks: Vec<(Arc<str>, Box<str>)>,
    },
    /// Stop.
    Close {
        /// The exchange of the listen request.
        exchange: ExchangeId,
    },
}
