//! A tape as a backend: each connection is a conversation with the recorded server.

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

/// Most messages that wait for one conversation.
const QUEUE: usize = 1024;

/// Where a call goes.
#[derive(Clone)]
pub enum Live {
    /// Only the tape answers; what is not on it is refused.
    Never,
    /// What is not on the tape goes to this server.
    Unknown(Arc<dyn Connector>),
    /// Everything goes to this server.
    Always(Arc<dyn Connector>),
}

impl Live {
    fn connector(&self) -> Option<&Arc<dyn Connector>> {
        match self {
            Self::Never => None,
            Self::Unknown(connector) | Self::Always(connector) => Some(connector),
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "Never",
            Self::Unknown(_) => "Unknown",
            Self::Always(_) => "Always",
        })
    }
}

/// What a tape has answered so far.
#[derive(Debug, Default)]
pub struct Played {
    /// Calls that were answered from the tape.
    pub calls: AtomicU64,
    /// Calls that were not on the tape.
    pub unknown: AtomicU64,
    /// Calls that went to the live server.
    pub live: AtomicU64,
}

/// Opens conversations with a tape.
#[derive(Debug)]
pub struct TapeConnector {
    name: Arc<str>,
    player: Arc<TapePlayer>,
    live: Live,
    played: Arc<Played>,
}

impl TapeConnector {
    /// A connector for the backend of this name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, player: Arc<TapePlayer>, live: Live) -> Self {
        Self { name: name.into(), player, live, played: Arc::default() }
    }

    /// What it has answered so far.
    #[must_use]
    pub fn played(&self) -> Arc<Played> {
        Arc::clone(&self.played)
    }
}

impl Connector for TapeConnector {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let (name, player, played) = (Arc::clone(&self.name), Arc::clone(&self.player), Arc::clone(&self.played));
        let always = matches!(self.live, Live::Always(_));
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

    /// A tape keeps a cursor for each session, and what it says belongs to a call, as over HTTP.
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

/// One conversation. Dropping it ends it.
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
        // A queue that is full is read soon, and then nobody waits for the answer.
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
