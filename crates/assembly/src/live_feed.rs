//! Streams facts to watchers as they happen. Without watchers a fact costs one atomic load.

use crate::live_line::{self as line, FeedClock};
use bytes::Bytes;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Caller, Fact, FactSink, Proof};
use signalbox_govern::Permissions;
use signalbox_runtime::Gateway;
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::router::{Broken, Chunks};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Interval;

/// Maximum number of watchers.
pub const MAX_WATCHERS: usize = 8;
/// Maximum number of queued facts per watcher.
pub const MAX_QUEUED: usize = 8192;
/// Maximum bytes of queued messages per watcher.
pub const MAX_QUEUED_BYTES: usize = 16 * 1024 * 1024;
/// Approximate size of one written chunk.
const CHUNK: usize = 64 * 1024;

/// Interval at which a silent feed checks that its caller may still watch.
const LOOK: Duration = Duration::from_secs(1);

/// All places for watchers are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("already {MAX_WATCHERS} watchers, the maximum")]
pub struct TooMany;

/// Live feed of a process.
pub struct LiveFeed {
    watching: AtomicUsize,
    watchers: Mutex<Vec<Arc<Watcher>>>,
    clock: FeedClock,
    gateway: OnceLock<Weak<Gateway>>,
}

struct Watcher {
    queue: mpsc::Sender<Fact>,
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl LiveFeed {
    /// Creates a feed without watchers.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            watching: AtomicUsize::new(0),
            watchers: Mutex::default(),
            clock: FeedClock::start(),
            gateway: OnceLock::new(),
        })
    }

    /// Sets the gateway that is told when the first watcher arrives and the last one leaves, because it produces facts
    /// of messages only on demand.
    pub fn attach(&self, gateway: &Arc<Gateway>) {
        let _ = self.gateway.set(Arc::downgrade(gateway));
    }

    /// Adds a watcher, until the returned value is dropped. With `switches`, the feed ends once its caller is switched
    /// off.
    ///
    /// # Errors
    /// If there are [`MAX_WATCHERS`] already.
    pub fn watch(self: &Arc<Self>, caller: Caller, switches: Option<Arc<Permissions>>) -> Result<Watching, TooMany> {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        let watcher = Arc::new(Watcher { queue, bytes: AtomicUsize::new(0), dropped: AtomicU64::new(0) });
        let mut watchers = self.lock();
        if watchers.len() >= MAX_WATCHERS {
            return Err(TooMany);
        }
        watchers.push(Arc::clone(&watcher));
        self.changed(watchers);
        Ok(Watching { live: Arc::clone(self), watcher, queued, caller, switches, look: None, greeted: false })
    }

    fn leave(&self, watcher: &Arc<Watcher>) {
        let mut watchers = self.lock();
        watchers.retain(|one| !Arc::ptr_eq(one, watcher));
        self.changed(watchers);
    }

    fn changed(&self, watchers: MutexGuard<'_, Vec<Arc<Watcher>>>) {
        self.watching.store(watchers.len(), Ordering::Relaxed);
        drop(watchers);
        if let Some(gateway) = self.gateway.get().and_then(Weak::upgrade) {
            gateway.wants_changed();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Watcher>>> {
        self.watchers.lock().unpoisoned()
    }
}

impl FactSink for LiveFeed {
    fn wants_messages(&self) -> bool {
        self.watching.load(Ordering::Relaxed) > 0
    }

    fn fact(&self, fact: &Fact) {
        if self.watching.load(Ordering::Relaxed) == 0 {
            return;
        }
        let weight = weight(fact);
        let lost = self.lock().iter().filter(|watcher| !watcher.take(fact, weight)).count();
        if lost > 0
            && let Some(gateway) = self.gateway.get().and_then(Weak::upgrade)
        {
            (0..lost).for_each(|_| gateway.counters.dropped("watcher"));
        }
    }
}

impl Watcher {
    /// Queues a fact. Returns `false` if the queue is full.
    fn take(&self, fact: &Fact, weight: usize) -> bool {
        let room = self.bytes.load(Ordering::Relaxed) + weight <= MAX_QUEUED_BYTES;
        self.bytes.fetch_add(weight, Ordering::Relaxed);
        let taken = room && self.queue.try_send(fact.clone()).is_ok();
        if !taken {
            self.bytes.fetch_sub(weight, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }
}

/// Returns the bytes that a queued fact keeps in memory.
fn weight(fact: &Fact) -> usize {
    match fact {
        Fact::Message(message) => message.bytes.len(),
        _ => 0,
    }
}

/// Watcher of the feed, which yields queued facts as lines.
pub struct Watching {
    live: Arc<LiveFeed>,
    watcher: Arc<Watcher>,
    queued: mpsc::Receiver<Fact>,
    caller: Caller,
    switches: Option<Arc<Permissions>>,
    /// Timer that wakes a silent feed to check whether its caller may still watch.
    look: Option<Interval>,
    greeted: bool,
}

impl Watching {
    /// Returns `false` once the caller is switched off or its credential has ended. The local owner of the process
    /// cannot be switched off here.
    fn is_allowed(&self) -> bool {
        let may_be_off = self.caller.identity().proof != Proof::LocalUser;
        if self.switches.as_ref().is_some_and(|switches| may_be_off && switches.is_switched_off(&self.caller)) {
            return false;
        }
        let standing = self.caller.identity().standing.as_ref();
        let credential = standing.and_then(|standing| standing.credential.as_ref());
        credential.is_none_or(|credential| credential.is_current(unix_millis()))
    }
}

impl Chunks for Watching {
    /// Returns as many whole lines as are queued, up to about [`CHUNK`] bytes.
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let look = self.look.get_or_insert_with(|| tokio::time::interval(LOOK));
        while look.poll_tick(context).is_ready() {}
        if !self.is_allowed() {
            return Poll::Ready(None);
        }
        let mut text = String::new();
        if !std::mem::replace(&mut self.greeted, true) {
            line::greeting(&mut text);
        }
        while text.len() < CHUNK {
            match self.queued.poll_recv(context) {
                Poll::Ready(Some(fact)) => {
                    self.watcher.bytes.fetch_sub(weight(&fact), Ordering::Relaxed);
                    line::write(&mut text, &fact, &self.live.clock);
                }
                Poll::Ready(None) => break,
                Poll::Pending => break,
            }
        }
        let dropped = self.watcher.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            line::dropped(&mut text, dropped);
        }
        if text.is_empty() { Poll::Pending } else { Poll::Ready(Some(Ok(text.into()))) }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.live.leave(&self.watcher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::SessionKey;
    use signalbox_engine::fact::{MessageFact, Point};
    use std::time::Instant;

    fn message(text: &str) -> Fact {
        let (caller, bytes) = (Caller::anonymous("http"), Bytes::copy_from_slice(text.as_bytes()));
        Fact::Message(MessageFact::new(Instant::now(), SessionKey(1), caller, Point::ClientIn, bytes))
    }

    async fn lines(watching: &mut Watching) -> Vec<serde_json::Value> {
        let chunk = std::future::poll_fn(|context| watching.poll_chunk(context)).await.unwrap().unwrap();
        std::str::from_utf8(&chunk).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn only_while_somebody_watches_messages_are_wanted_and_told() {
        let live = LiveFeed::new();
        live.fact(&message("{}"));
        assert!(!live.wants_messages());
        let mut watching = live.watch(Caller::anonymous("http"), None).unwrap();
        assert!(live.wants_messages());
        live.fact(&message("{\n\"a\":1}"));
        let told = lines(&mut watching).await;
        assert_eq!((told.len(), &told[0]["type"], &told[1]["text"]), (2, &"watching".into(), &"{\n\"a\":1}".into()));
        drop(watching);
        assert!(!live.wants_messages());
    }

    #[tokio::test]
    async fn a_slow_watcher_loses_facts_and_is_told_how_many() {
        let live = LiveFeed::new();
        let mut watching = live.watch(Caller::anonymous("http"), None).unwrap();
        for _ in 0..MAX_QUEUED + 7 {
            live.fact(&message("{}"));
        }
        let (mut seen, mut lost) = (0, 0);
        while seen + lost < MAX_QUEUED as u64 + 7 {
            for line in lines(&mut watching).await {
                match line["type"].as_str() {
                    Some("message") => seen += 1,
                    Some("dropped") => lost += line["facts"].as_u64().unwrap(),
                    _ => {}
                }
            }
        }
        assert_eq!((seen, lost), (MAX_QUEUED as u64, 7));
        let large = "x".repeat(MAX_QUEUED_BYTES - 10);
        live.fact(&message(&large));
        live.fact(&message("{\"more\":true}"));
        let mut kinds = Vec::new();
        while kinds.len() < 2 {
            kinds.extend(lines(&mut watching).await.iter().map(|line| line["type"].to_string()));
        }
        kinds.sort();
        assert_eq!(kinds, ["\"dropped\"", "\"message\""], "bytes are bounded too");
    }

    #[test]
    fn there_is_room_for_so_many_watchers() {
        let live = LiveFeed::new();
        let all: Vec<Watching> =
            (0..MAX_WATCHERS).map(|_| live.watch(Caller::anonymous("http"), None).unwrap()).collect();
        assert!(live.watch(Caller::anonymous("http"), None).is_err());
        drop(all);
        assert!(live.watch(Caller::anonymous("http"), None).is_ok());
    }
}
