//! What every client of a storm shares.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::call_log::{CallLog, LoggedCall};
use super::cast::Cast;
use super::dice::Dice;

/// Maximum time of a call. Struck backends have three seconds, or five to start; the rest is for a busy machine.
pub const BOUND: Duration = Duration::from_secs(60);

/// The world.
#[derive(Debug)]
pub struct World {
    /// The backends.
    pub cast: Arc<Cast>,
    /// What is counted.
    pub call_log: CallLog,
    /// Where a gateway serves HTTP and WebSocket.
    pub http: SocketAddr,
    /// Where another serves TCP.
    pub tcp: SocketAddr,
    /// The config of a gateway that a client starts for itself.
    pub config: String,
    next: AtomicU64,
    stop: watch::Sender<bool>,
}

impl World {
    /// A world in which nothing has happened yet.
    pub fn new(cast: Arc<Cast>, http: SocketAddr, tcp: SocketAddr, config: String) -> Arc<Self> {
        let stop = watch::Sender::new(false);
        Arc::new(Self { cast, call_log: CallLog::default(), http, tcp, config, next: AtomicU64::new(1), stop })
    }

    /// A number that was not given out before.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A folder of its own for somebody.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self) -> std::io::Result<PathBuf> {
        let path = self.cast.folder().join(format!("client-{}", self.number()));
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    /// Whether clients are to finish what they have begun and leave, or to go on.
    pub fn finish(&self, finish: bool) {
        self.stop.send_replace(finish);
    }

    /// Follows that.
    pub fn finishing(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Whether clients are to leave.
    pub fn is_finishing(&self) -> bool {
        *self.stop.borrow()
    }
}

/// Somebody who calls tools.
#[derive(Debug)]
pub struct StormCaller {
    /// Where it lives.
    pub world: Arc<World>,
    /// What kind of client it is.
    pub kind: &'static str,
    /// Whether it speaks 2026-07-28.
    pub modern: bool,
    /// Its luck.
    pub dice: Dice,
    next_id: u64,
}

impl StormCaller {
    /// A caller.
    pub fn new(world: &Arc<World>, kind: &'static str, modern: bool, dice: Dice) -> Self {
        Self { world: Arc::clone(world), kind, modern, dice, next_id: 1 }
    }

    /// The next call, of any backend's tool.
    pub fn call(&mut self) -> Option<LoggedCall> {
        let part = self.dice.pick(&self.world.cast.parts)?;
        let id = self.next_id;
        self.next_id += 1;
        self.world.call_log.made(self.kind);
        Some(LoggedCall {
            id,
            tag: format!("{}-{}", self.kind, self.world.number()),
            backend: part.name,
            tool: part.tool.clone(),
            steady: part.steady,
            takes: if self.dice.once_in(4) { self.dice.between(1, 300) } else { 0 },
            progress: self.dice.once_in(4),
            sent: Instant::now(),
        })
    }

    /// How long it thinks before its next call.
    pub fn pause(&mut self) -> Duration {
        Duration::from_millis(self.dice.between(5, 60))
    }

    /// Something is not as it should be.
    pub fn wrong(&self, what: impl std::fmt::Display) {
        self.world.call_log.wrong(format!("{}: {what}", self.kind));
    }

    /// Looks at a message that is no answer: it must be a notification, and progress must be of a call that this client
    /// made.
    pub fn noted(&self, message: &serde_json::Value) {
        let params = &message["params"];
        let own = |token: &str| token.starts_with(self.kind);
        if message["method"] == "notifications/progress" && !params["progressToken"].as_str().is_some_and(own) {
            self.wrong(format!("progress of somebody else: {message}"));
        }
        if message["method"].is_null() || message.get("id").is_some() {
            self.wrong(format!("a message that nobody waits for: {}", super::call_log::quote(message)));
        }
    }
}
