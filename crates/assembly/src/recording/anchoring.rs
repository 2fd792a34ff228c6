//! Anchors the signed heads of tapes outside this machine: in a file on another disk, at a web address, or at another
//! gateway.
//!
//! Each place has its own thread and queue, so that an unresponsive place delays neither the tape nor the other places.
//! A head is retried until its place accepts it. When a queue is full, the oldest head is dropped, because a later head
//! covers everything that an earlier one does.

use bytes::Bytes;
use signalbox_config::AnchorPlace;
use signalbox_engine::lock::LockResultExt;
use signalbox_runtime::{WebhookError, WebhookTransport as _};
use signalbox_tape::seal::{HeadSink, SignedHead};
use signalbox_transport::web_post::WebPost;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Maximum number of queued heads per place.
pub const MAX_WAITING: usize = 256;
/// Pause after the first failure. It doubles each time, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Timeout for one request to a web address.
const POST_WITHIN: Duration = Duration::from_secs(10);
/// Time that the end of the tape waits for the last heads.
const LAST_WITHIN: Duration = Duration::from_secs(5);

/// Reason why a place did not accept a head.
#[derive(Debug, thiserror::Error)]
enum AnchorPlaceError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Web(#[from] WebhookError),
    #[error("it took longer than {} s", POST_WITHIN.as_secs())]
    Late,
    #[error("it answered with status {0}")]
    Status(u16),
}

/// Counters of anchoring, which all places share.
#[derive(Default, Debug)]
pub struct AnchorCounters {
    kept: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// Snapshot of the counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnchorStats {
    /// Number of accepted heads.
    pub kept: u64,
    /// Number of failed attempts.
    pub failed: u64,
    /// Number of heads dropped from a full queue or left at the end.
    pub dropped: u64,
    /// Last failure; `None` once the place accepts heads again.
    pub last_error: Option<String>,
}

impl AnchorCounters {
    /// Returns the current values.
    #[must_use]
    pub fn snapshot(&self) -> AnchorStats {
        let last_error = self.last_error.lock().unpoisoned().clone();
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        AnchorStats { kept: read(&self.kept), failed: read(&self.failed), dropped: read(&self.dropped), last_error }
    }
}

/// Sends signed heads to all places. Dropping it waits up to a few seconds for the last ones.
pub struct Anchoring {
    places: Vec<(Arc<Waiting>, JoinHandle<()>)>,
    counters: Arc<AnchorCounters>,
}

/// Queue of one place.
#[derive(Default)]
struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    heads: VecDeque<SignedHead>,
    /// Deadline of the last attempts, set at the end.
    give_up: Option<Instant>,
    /// True once the thread has finished.
    done: bool,
}

impl Anchoring {
    /// Starts a thread for each place.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(places: &[AnchorPlace], counters: &Arc<AnchorCounters>) -> io::Result<Self> {
        let start = |place: &AnchorPlace| {
            let waiting = Arc::<Waiting>::default();
            let worker = Worker {
                place: place.clone(),
                waiting: Arc::clone(&waiting),
                counters: Arc::clone(counters),
                web: None,
            };
            let thread = std::thread::Builder::new().name("anchor".to_owned()).spawn(move || worker.run())?;
            Ok::<_, io::Error>((waiting, thread))
        };
        let places = places.iter().map(start).collect::<Result<_, _>>()?;
        Ok(Self { places, counters: Arc::clone(counters) })
    }
}

impl HeadSink for Anchoring {
    fn signed(&self, head: SignedHead) {
        for (waiting, _) in &self.places {
            let mut state = waiting.state.lock().unpoisoned();
            if state.heads.len() >= MAX_WAITING {
                state.heads.pop_front();
                self.counters.dropped.fetch_add(1, Relaxed);
            }
            state.heads.push_back(head.clone());
            waiting.changed.notify_all();
        }
    }
}

impl Drop for Anchoring {
    fn drop(&mut self) {
        let give_up = Instant::now() + LAST_WITHIN;
        for (waiting, _) in &self.places {
            waiting.state.lock().unpoisoned().give_up = Some(give_up);
            waiting.changed.notify_all();
        }
        for (waiting, thread) in self.places.drain(..) {
            let mut state = waiting.state.lock().unpoisoned();
            while !state.done && Instant::now() < give_up {
                let left = give_up.saturating_duration_since(Instant::now());
                state = waiting.changed.wait_timeout(state, left).unpoisoned().0;
            }
            let (done, left) = (state.done, state.heads.len() as u64);
            drop(state);
            if done {
                let _ = thread.join();
            }
            if left > 0 {
                self.counters.dropped.fetch_add(left, Relaxed);
                tracing::warn!(heads = left, "the last signed heads of the tape were not anchored");
            }
        }
    }
}

/// Thread that serves one place.
struct Worker {
    place: AnchorPlace,
    waiting: Arc<Waiting>,
    counters: Arc<AnchorCounters>,
    /// HTTP client, created at the first use.
    web: Option<(Runtime, WebPost)>,
}

impl Worker {
    fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        while let Some(head) = self.next() {
            match self.send(&head) {
                Ok(()) => {
                    self.taken(&head);
                    pause = FIRST_PAUSE;
                }
                Err(error) => {
                    self.failed(&error);
                    self.rest(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        self.waiting.state.lock().unpoisoned().done = true;
        self.waiting.changed.notify_all();
    }

    /// Returns the oldest head without removing it, or `None` at the end.
    fn next(&self) -> Option<SignedHead> {
        let mut state = self.waiting.state.lock().unpoisoned();
        loop {
            if state.give_up.is_some_and(|end| state.heads.is_empty() || Instant::now() >= end) {
                return None;
            }
            match state.heads.front() {
                Some(head) => return Some(head.clone()),
                None => state = self.waiting.changed.wait(state).unpoisoned(),
            }
        }
    }

    /// Waits before the next attempt, but not beyond the deadline.
    fn rest(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.waiting.state.lock().unpoisoned();
        loop {
            // During shutdown, retry once a second.
            let limit = state.give_up.map_or(until, |end| end.min(Instant::now() + FIRST_PAUSE).min(until));
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let ending = state.give_up.is_some();
            state = self.waiting.changed.wait_timeout(state, left).unpoisoned().0;
            if ending || state.give_up.is_some() {
                return;
            }
        }
    }

    fn taken(&self, head: &SignedHead) {
        let mut state = self.waiting.state.lock().unpoisoned();
        // The head may have been dropped from a full queue meanwhile.
        if state.heads.front() == Some(head) {
            state.heads.pop_front();
        }
        drop(state);
        self.counters.kept.fetch_add(1, Relaxed);
        if self.counters.last_error.lock().unpoisoned().take().is_some() {
            tracing::info!(place = %self.place, "signed heads are anchored again");
        }
    }

    fn failed(&self, error: &AnchorPlaceError) {
        self.counters.failed.fetch_add(1, Relaxed);
        let said = format!("{}: {error}", self.place);
        if self.counters.last_error.lock().unpoisoned().replace(said).is_none() {
            tracing::warn!(place = %self.place, %error, "a signed head of the tape was not anchored; it is tried again");
        }
    }

    fn send(&mut self, head: &SignedHead) -> Result<(), AnchorPlaceError> {
        let json = head.to_json().to_string();
        match &self.place {
            AnchorPlace::File(path) => append(path, &json).map_err(AnchorPlaceError::File),
            AnchorPlace::Web(url) => {
                let (runtime, web) = match &mut self.web {
                    Some(web) => web,
                    none => none.insert((Builder::new_current_thread().enable_all().build()?, WebPost::default())),
                };
                let posted = async { tokio::time::timeout(POST_WITHIN, web.post(url, Bytes::from(json), None)).await };
                let (status, _) = runtime.block_on(posted).map_err(|_| AnchorPlaceError::Late)??;
                if (200..300).contains(&status) { Ok(()) } else { Err(AnchorPlaceError::Status(status)) }
            }
        }
    }
}

/// Appends a line and syncs the file.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    // A single write, so that several processes can share the file.
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_seal::{Head, HeadContent, HeadKind, SigningKey};
    use signalbox_tape::seal::Anchors;
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::net::TcpListener;

    fn head(seq: u64) -> SignedHead {
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let head = Head::sign(HeadKind::Interim, "t", HeadContent::of(seq, &[9; 32], seq), &key).unwrap();
        SignedHead { tape: "t".to_owned(), kind: HeadKind::Interim, head }
    }

    #[test]
    fn heads_are_appended_to_a_file_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("anchors.jsonl");
        let counters = Arc::default();
        let anchoring = Anchoring::start(&[AnchorPlace::File(file.clone())], &counters).unwrap();
        (1..=3).for_each(|seq| anchoring.signed(head(seq)));
        drop(anchoring);
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!Anchors::read(text.as_bytes(), "t").unwrap().is_empty());
        assert_eq!(counters.snapshot(), AnchorStats { kept: 3, failed: 0, dropped: 0, last_error: None });
    }

    #[test]
    fn a_place_that_fails_is_tried_again_and_holds_up_nobody() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/anchors", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("anchors.jsonl");
        let counters = Arc::default();
        let places = [AnchorPlace::Web(url), AnchorPlace::File(file.clone())];
        let anchoring = Anchoring::start(&places, &counters).unwrap();
        anchoring.signed(head(7));
        let answer = |status: &str| {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            (&stream).write_all(text.as_bytes()).unwrap();
            String::from_utf8(body).unwrap()
        };
        let refused = answer("503 Service Unavailable");
        let kept = answer("200 OK");
        assert_eq!((refused.as_str(), kept.as_str()), (head(7).to_json().to_string().as_str(), refused.as_str()));
        drop(anchoring);
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
        let stats = counters.snapshot();
        assert_eq!((stats.kept, stats.failed, stats.dropped), (2, 1, 0), "{stats:?}");
    }

    #[test]
    fn what_a_dead_place_never_took_is_bounded_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let counters = Arc::default();
        let nowhere = AnchorPlace::File(folder.path().join("missing/anchors.jsonl"));
        let anchoring = Anchoring::start(&[nowhere], &counters).unwrap();
        (0..MAX_WAITING as u64 + 10).for_each(|seq| anchoring.signed(head(seq)));
        let begun = Instant::now();
        drop(anchoring);
        assert!(begun.elapsed() < LAST_WITHIN + Duration::from_secs(2));
        let stats = counters.snapshot();
        assert_eq!((stats.kept, stats.dropped), (0, MAX_WAITING as u64 + 10), "{stats:?}");
        assert!(stats.failed >= 1 && stats.last_error.is_some_and(|error| error.contains("missing")));
    }
}
