//! Serves a tape as a backend: each connection is a conversation with the recorded server.

use crate::conversation::{Conversation, Input};
use crate::quick_answers::QuickAnswers;
use crate::tape_player::TapePlayer;
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// Capacity of a conversation's message queue.
const QUEUE: usize = 1024;

/// Routing of calls between the tape and a live server.
#[derive(Clone)]
pub enum LiveRouting {
    /// Answers from the tape only, and rejects calls that are not on it.
    Never,
    /// Sends calls that are not on the tape to this server.
    Unknown(Arc<dyn Connector>),
    /// Sends every call to this server.
    Always(Arc<dyn Connector>),
}

impl LiveRouting {
    fn connector(&self) -> Option<&Arc<dyn Connector>> {
        match self {
            Self::Never => None,
            Self::Unknown(connector) | Self::Always(connector) => Some(connector),
        }
    }
}

impl fmt::Debug for LiveRouting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "Never",
            Self::Unknown(_) => "Unknown",
            Self::Always(_) => "Always",
        })
    }
}

/// Counters of the calls that a connector handled.
#[derive(Debug, Default)]
pub struct PlaybackStats {
    /// Calls answered from the tape.
    pub calls: AtomicU64,
    /// Calls not found on the tape.
    pub unknown: AtomicU64,
    /// Calls sent to the live server.
    pub live: AtomicU64,
}

/// Connector that opens conversations with a tape.
#[derive(Debug)]
pub struct TapeConnector {
    name: Arc<str>,
    player: Arc<TapePlayer>,
    live: LiveRouting,
    played: Arc<PlaybackStats>,
}

impl TapeConnector {
    /// Creates a connector for the backend `name`.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, player: Arc<TapePlayer>, live: LiveRouting) -> Self {
        Self { name: name.into(), player, live, played: Arc::default() }
    }

    /// Returns the shared counters.
    #[must_use]
    pub fn played(&self) -> Arc<PlaybackStats> {
        Arc::clone(&self.played)
    }
}

impl Connector for TapeConnector {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let (name, player, played) = (Arc::clone(&self.name), Arc::clone(&self.player), Arc::clone(&self.played));
        let always = matches!(self.live, LiveRouting::Always(_));
        let live = self.live.connector().map(|connector| connector.open(Arc::clone(&events)));
        Box::pin(async move {
            let live = match live {
                Some(opening) => Some(opening.await?),
                None => None,
            };
            let (queue, inbox) = mpsc::channel(QUEUE);
            let quick = Arc::new(QuickAnswers::new(player, played, events, always));
            let link = TapeLink { name: Arc::clone(&name), queue, live: live.clone(), quick: Arc::clone(&quick) };
            tokio::spawn(Conversation::new(name, live, always, quick).run(inbox));
            Ok(Arc::new(link) as Arc<dyn Link>)
        })
    }

    /// Returns `true` for a tape: as over HTTP, each session has its own cursor and each message belongs to a call.
    fn carries_headers(&self) -> bool {
        self.live.connector().is_none_or(|live| live.carries_headers())
    }

    fn is_process(&self) -> bool {
        self.live.connector().is_some_and(|live| live.is_process())
    }

    fn dropped(&self) -> BTreeMap<&'static str, u64> {
        let mut dropped = self.live.connector().map(|live| live.dropped()).unwrap_or_default();
        let unknown = self.played.unknown.load(Ordering::Relaxed);
        if unknown > 0 {
            dropped.insert("not_on_tape", unknown);
        }
        dropped
    }

    fn kind(&self) -> &'static str {
        "tape"
    }
}

/// Link to one conversation. Dropping it ends the conversation.
struct TapeLink {
    name: Arc<str>,
    queue: mpsc::Sender<Input>,
    live: Option<Arc<dyn Link>>,
    quick: Arc<QuickAnswers>,
}

impl TapeLink {
    fn put(&self, input: Input) -> Result<(), Fault> {
        self.quick.pending.fetch_add(1, Ordering::AcqRel);
        self.queue.try_send(input).map_err(|error| {
            self.quick.pending.fetch_sub(1, Ordering::AcqRel);
            let (kind, why) = match error {
                TrySendError::Full(_) => (FaultKind::Overloaded, "has too many messages waiting"),
                TrySendError::Closed(_) => (FaultKind::BackendDown, "has ended"),
            };
            Fault::new(kind, format!("the tape of backend `{}` {why}", self.name)).with_str("backend", &self.name)
        })
    }
}

impl Link for TapeLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        if self.quick.answer(&message) {
            return Ok(());
        }
        self.put(Input::Message(message))
    }

    fn abort(&self, key: u64) {
        // If the queue is full the abort is lost. That is harmless: the conversation's answer is discarded.
        let _ = self.put(Input::Abort(key));
        if let Some(live) = &self.live {
            live.abort(key);
        }
    }

    fn open_general(&self) {
        if let Some(live) = &self.live {
            live.open_general();
        }
    }

    fn forget_session(&self) {
        if let Some(live) = &self.live {
            live.forget_session();
        }
    }

    fn close(&self) {
        let _ = self.put(Input::Close);
        if let Some(live) = &self.live {
            live.close();
        }
    }

    fn pid(&self) -> Option<u32> {
        self.live.as_ref().and_then(|live| live.pid())
    }
}
