//! The tape of this process: opened in the background, written by one thread, ended when the process ends. If tapes
//! have bounds, further tapes follow.

mod anchoring;
mod backends_seen;
mod following_tapes;
mod late_writer;
mod seal;
mod session_key;

pub use anchoring::{AnchorCounters, AnchorStats, MAX_WAITING as MAX_WAITING_ANCHORS};
pub use late_writer::{LateStore, LateWriter};
pub use seal::{SealTapeError, TapeSealing};
pub use session_key::{SESSION_KEY_FILE, session_hash};

use crate::data_dir::DataDir;
use crate::logging;
use crate::tape_to_file::TapeToFile;
use following_tapes::FollowingTapes;
use signalbox_config::{Config, RecordConfig, Seal};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::record::{RulesEntry, StoreError, TapeInfo, TapeKind, TapeStore};
use signalbox_engine::{Fact, FactSink};
use signalbox_rules::RuleSet;
use signalbox_runtime::Gateway;
use signalbox_seal::SigningKey;
use signalbox_store::{PostgresStore, SqliteStore};
use signalbox_tape::recorder::{
    Anchor, GRACE, Recorder, RecorderSettings, RecorderStats, Sampling, SessionHash, TapeSeries,
};
use signalbox_tape::redact::{BadRedaction, RedactionSettings, Redactor};
use signalbox_wire::timestamp;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// Name of the SQLite store in the data folder.
pub const STORE_FILE: &str = "tapes.db";
/// Time that shutdown waits for pending entries.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// Interval between checks whether the store has been tried.
const LOOK: Duration = Duration::from_millis(10);
/// Interval between deletions of tapes beyond the retention.
const PRUNE_EVERY: Duration = Duration::from_secs(600);

/// Maximum size of a message in a tape file.
pub const MAX_FILE_BODY: usize = 40 << 20;

/// Reason why recording cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A redaction rule is invalid.
    #[error(transparent)]
    Redaction(#[from] BadRedaction),
    /// The tape file cannot be created.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The tape cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealTapeError),
    /// The system provides no thread or no randomness.
    #[error("cannot start recording: {0}")]
    System(#[from] std::io::Error),
}

/// Reason why [`Recording::keep`] kept nothing.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The recording has no ring. Holds the description of its sampling.
    #[error("`tape keep` needs `record.sampling = \"ring\"`; this tape uses {0}")]
    NoRing(String),
    /// The store did not accept the entries.
    #[error("what the ring held could not be written: {0}")]
    NotWritten(String),
}

/// Entries written from a ring.
#[derive(Debug, Clone)]
pub struct KeptRing {
    /// Tape that holds the entries.
    pub tape: Arc<TapeInfo>,
    pub entries: u64,
}

/// Place of the tape store.
#[derive(Debug, Clone)]
pub enum StorePlace {
    Sqlite(PathBuf),
    /// A PostgreSQL database, whose address may hold a password.
    Postgres(signalbox_config::Secret),
}

impl StorePlace {
    /// Returns the place that this configuration names.
    #[must_use]
    pub fn of(record: &RecordConfig, data_dir: &Path) -> Self {
        match &record.postgres {
            Some(url) => Self::Postgres(url.clone()),
            None => Self::Sqlite(data_dir.join(STORE_FILE)),
        }
    }

    /// Opens the store without a limit on its size.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn open(&self) -> Result<Arc<dyn TapeStore>, StoreError> {
        self.open_for(u64::MAX, None)
    }

    /// Opens the store for pruning, with a limit on its size. With a key, sealed tapes get a signed checkpoint when
    /// their beginning is deleted.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn open_for(&self, most: u64, key: Option<SigningKey>) -> Result<Arc<dyn TapeStore>, StoreError> {
        match self {
            // A symbolic link put there by another user could redirect the tape to any file of this user.
            Self::Sqlite(path) if path.is_symlink() => {
                let (place, why) = (path.display().to_string(), "it is a symbolic link".to_owned());
                Err(StoreError::Open { place, why })
            }
            Self::Sqlite(path) => Ok(Arc::new(SqliteStore::open(path)?.limited_to(most).signing(key))),
            Self::Postgres(url) => Ok(Arc::new(PostgresStore::open(url.expose())?.limited_to(most).signing(key))),
        }
    }
}

pub struct Recording {
    recorder: Arc<Recorder>,
    sink: Arc<TapeSink>,
    place: StorePlace,
    /// Key that signs checkpoints of pruned tapes.
    key: Option<SigningKey>,
    /// Counters of anchoring, if it is configured.
    anchored: Option<Arc<AnchorCounters>>,
    /// Tape that is being written.
    tape: watch::Sender<Arc<TapeInfo>>,
    last_prune: Mutex<Option<StoreError>>,
    required: bool,
    /// True if calls are held in a ring until a trigger fires.
    ring: bool,
    /// Last recorded rules, to be recorded again.
    rules: Mutex<Option<RulesEntry>>,
    /// Dropped with the recording, which ends the pruning thread.
    running: Mutex<Option<mpsc::Sender<()>>>,
}

/// Kind of a tape, and the configuration file or target that it records.
struct TapeOrigin {
    kind: TapeKind,
    target: String,
}

impl Recording {
    /// Starts recording as configured, or returns `None` if it is off.
    ///
    /// # Errors
    /// If recording cannot start. A store that cannot be opened is no error: it is retried, and the status reports it.
    pub fn start(config: &Config, kind: TapeKind, data_dir: &DataDir) -> Result<Option<Arc<Self>>, RecordingError> {
        logging::redact(&config.record.redaction)?;
        if !config.record.enabled {
            return Ok(None);
        }
        let place = StorePlace::of(&config.record, data_dir.path());
        let target = config.source.as_ref().map_or_else(|| "defaults".to_owned(), |file| file.display().to_string());
        let redaction = &config.record.redaction;
        let hash = session_hash(data_dir.path())?;
        let origin = TapeOrigin { kind, target };
        let recording = Self::begin(&config.record, origin, place, redaction, hash, &config.seal, data_dir.path())?;
        // Without rules nothing is recorded about them.
        if !config.rules.set.is_empty() {
            recording.rules(&config.rules.set);
        }
        Ok(Some(recording))
    }

    /// Begins a tape in this store, sealed with the key of a data folder if configured.
    ///
    /// # Errors
    /// If recording cannot start.
    fn begin(
        record: &RecordConfig,
        origin: TapeOrigin,
        place: StorePlace,
        redaction: &RedactionSettings,
        session_hash: SessionHash,
        seal: &Seal,
        data_dir: &Path,
    ) -> Result<Arc<Self>, RecordingError> {
        let redactor = redactor(redaction)?;
        let mut settings = RecorderSettings { session_hash: Some(session_hash), ..record.recorder() };
        let head = TapeInfo {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            redaction: redactor.describe(),
            sampling: settings.sampling_words(),
            parent: record.parent.clone(),
            ..TapeInfo::new(tape_id()?, origin.kind, origin.target, unix_nanos())
        };
        let anchored = Arc::default();
        let sealing = TapeSealing::new(seal, data_dir, &anchored)?;
        let mut tape = head.clone();
        settings.seal = sealing.as_ref().map(|sealing| sealing.seal(&mut tape)).transpose()?;
        let key = settings.seal.as_ref().map(|seal| seal.key().clone());
        let current = watch::Sender::new(Arc::new(tape.clone()));
        let following = FollowingTapes {
            head,
            store: LateStore::new(place.clone(), record.retention.max_bytes.unwrap_or(u64::MAX), key.clone()),
            sealing,
            current: current.clone(),
        };
        let recorder = Arc::new(start_recorder(record, settings, redactor, tape, following)?);
        let sink = Arc::new(TapeSink::new(Arc::clone(&recorder), record.strict));
        let rules = Mutex::default();
        let recording = Arc::new(Self {
            recorder,
            sink,
            place,
            key,
            anchored: (seal.tapes && !seal.anchor.is_empty()).then_some(anchored),
            tape: current,
            last_prune: Mutex::default(),
            required: record.readiness,
            ring: matches!(record.sampling, Sampling::Ring { .. }),
            rules,
            running: Mutex::default(),
        });
        if record.file.is_none() {
            recording.prune_from_time_to_time(record);
        }
        Ok(recording)
    }

    /// Returns the sink for facts.
    #[must_use]
    pub fn sink(&self) -> Arc<dyn FactSink> {
        self.sink.clone()
    }

    /// Records the rules in force from now on. Each of their decisions refers to them by the same hash.
    pub fn rules(&self, set: &RuleSet) {
        let hash = set.version().to_owned();
        let rules = RulesEntry { hash, text: set.text(), redacted: false };
        *self.rules.lock().unpoisoned() = Some(rules.clone());
        self.recorder.rules(rules);
    }

    /// Records from now on only outlines of the messages of these backends and of what their callers receive.
    pub fn withhold(&self, backends: Vec<Arc<str>>) {
        self.recorder.withhold(backends);
    }

    /// Records the rules once more, because the beginning of the tape may have been pruned.
    fn rules_again(&self) {
        let rules = self.rules.lock().unpoisoned().clone();
        if let Some(rules) = rules {
            self.recorder.rules(rules);
        }
    }

    /// Records the lists of this gateway's backends whenever they change, and lets the recorder collect buffered facts
    /// from the gateway. Needs a runtime.
    pub fn follow(self: &Arc<Self>, gateway: &Arc<Gateway>) {
        let buffers = Arc::downgrade(gateway);
        self.recorder.settle_with(move || {
            if let Some(gateway) = buffers.upgrade() {
                gateway.settle();
            }
        });
        backends_seen::follow(gateway, self);
    }

    /// Writes the contents of the ring and returns their tape and number once they are on disk. The next `record.after`
    /// calls are kept too.
    ///
    /// # Errors
    /// If there is no ring, or the store cannot write.
    pub async fn keep(&self) -> Result<KeptRing, KeepError> {
        if !self.ring {
            return Err(KeepError::NoRing(self.tape().sampling.clone()));
        }
        // The ring may exceed the tape's bound, so that the next tape begins right after it.
        let (tape, before) = (self.tape(), self.stats().entries);
        self.recorder.trigger();
        let written = self.recorder.barrier().await;
        let stats = self.stats();
        let why = || stats.failing.or(stats.last_error).unwrap_or_else(|| "some of it was lost before".to_owned());
        let kept = |()| KeptRing { tape, entries: stats.entries.saturating_sub(before) };
        written.map(kept).map_err(|_| KeepError::NotWritten(why()))
    }

    /// Returns the head of the tape that is being written.
    #[must_use]
    pub fn tape(&self) -> Arc<TapeInfo> {
        Arc::clone(&self.tape.borrow())
    }

    /// Returns `true` if the gateway is not ready without recording.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Returns the counters of the recorder.
    #[must_use]
    pub fn stats(&self) -> RecorderStats {
        self.recorder.stats()
    }

    /// Returns the counters of anchoring, if it is configured.
    #[must_use]
    pub fn anchored(&self) -> Option<AnchorStats> {
        self.anchored.as_ref().map(|counters| counters.snapshot())
    }

    /// Returns why nothing can be recorded, waiting up to `within` until the store has been tried.
    pub async fn failing(&self, within: Duration) -> Option<String> {
        let deadline = tokio::time::Instant::now() + within;
        loop {
            let stats = self.stats();
            if stats.tried || tokio::time::Instant::now() >= deadline {
                return stats.failing;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns the error of the last deletion of old tapes, if it failed.
    #[must_use]
    pub fn prune_error(&self) -> Option<StoreError> {
        self.last_prune.lock().unpoisoned().clone()
    }

    /// Writes pending entries and ends the tape.
    pub async fn stop(&self) {
        let recorder = Arc::clone(&self.recorder);
        let _ = tokio::task::spawn_blocking(move || recorder.stop(STOP_WITHIN)).await;
        let stats = self.stats();
        let missing: u64 = stats.gaps.iter().map(|(_, facts)| facts).sum();
        if missing > 0 {
            let why = stats.last_error.unwrap_or_else(|| "they came faster than they could be written".to_owned());
            tracing::warn!(missing, tape = %self.tape().id, "not everything was recorded: {why}");
        }
    }

    /// Starts the thread that deletes tapes beyond the retention. A thread of its own, because a store may be slow.
    fn prune_from_time_to_time(self: &Arc<Self>, record: &RecordConfig) {
        let (recording, retention) = (Arc::downgrade(self), record.retention);
        let (running, ended) = mpsc::channel::<()>();
        *self.running.lock().unpoisoned() = Some(running);
        let pruning = std::thread::Builder::new().name("prune".to_owned()).spawn(move || {
            let mut wait = Duration::from_secs(1);
            // Nothing is ever sent: the channel closes when the recording is dropped.
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let Some(recording) = recording.upgrade() else { return };
                let store = recording.place.open_for(u64::MAX, recording.key.clone());
                let pruned = store.and_then(|store| store.prune(&retention, unix_nanos()));
                match &pruned {
                    Ok(pruned) if pruned.entries > 0 => {
                        tracing::info!(entries = pruned.entries, "deleted old tape entries");
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "cannot delete old tapes"),
                }
                *recording.last_prune.lock().unpoisoned() = pruned.err();
                wait = PRUNE_EVERY;
            }
        });
        if let Err(error) = pruning {
            tracing::warn!(%error, "old tapes will not be deleted");
        }
    }
}

/// Starts the recorder: into a tape file if configured, else into the store, where further tapes may follow.
fn start_recorder(
    record: &RecordConfig,
    mut settings: RecorderSettings,
    redactor: Redactor,
    tape: TapeInfo,
    following: FollowingTapes,
) -> Result<Recorder, RecordingError> {
    let bounds = record.tape_bounds;
    if let Some(path) = &record.file {
        if !bounds.is_unbounded() {
            tracing::info!("`record.max_tape_size` and `record.max_tape_age` do not apply to a tape in a file");
        }
        settings.max_body = settings.max_body.min(MAX_FILE_BODY);
        let file = TapeToFile::create(path, &tape);
        let writer = file.map_err(|error| RecordingError::File { path: path.clone(), error })?;
        return Ok(Recorder::start(settings, redactor, Box::new(writer), Anchor::now())?);
    }
    let first = tape.id.clone();
    let writer = Box::new(following.store.writer(tape));
    if bounds.is_unbounded() {
        return Ok(Recorder::start(settings, redactor, writer, Anchor::now())?);
    }
    let series = TapeSeries { first, bounds, grace: GRACE, factory: Box::new(following) };
    Ok(Recorder::start_series(settings, redactor, writer, Anchor::now(), series)?)
}

/// Returns the redactor for these settings.
///
/// # Errors
/// If the settings are invalid, or the system provides no randomness.
pub fn redactor(settings: &RedactionSettings) -> Result<Redactor, RecordingError> {
    Ok(Redactor::new(settings, random()?)?)
}

/// Returns the time in nanoseconds since 1970.
#[must_use]
pub fn unix_nanos() -> u64 {
    timestamp::nanos_of(SystemTime::now())
}

/// Returns a unique name that sorts by time: seconds since 1970 in hexadecimal, and eight random digits.
pub fn tape_id() -> Result<String, std::io::Error> {
    let random: [u8; 4] = random()?;
    let seconds = unix_nanos() / 1_000_000_000;
    Ok(format!("{seconds:08x}-{:08x}", u32::from_be_bytes(random)))
}

fn random<const N: usize>() -> Result<[u8; N], std::io::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// Fact sink that feeds the recorder.
pub struct TapeSink {
    recorder: Arc<Recorder>,
    strict: bool,
}

impl TapeSink {
    /// Creates a sink. With `strict`, an answer leaves only after it is on disk.
    pub fn new(recorder: Arc<Recorder>, strict: bool) -> Self {
        Self { recorder, strict }
    }
}

impl FactSink for TapeSink {
    fn wants_messages(&self) -> bool {
        true
    }

    fn is_durable(&self) -> bool {
        self.strict
    }

    fn written(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let barrier = self.recorder.barrier();
        Box::pin(async move { barrier.await.is_ok() })
    }

    fn room(&self, bytes: usize) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let (room, within) = self.recorder.room(bytes)?;
        Some(Box::pin(async move {
            let _ = tokio::time::timeout(within, room).await;
        }))
    }

    fn fact(&self, fact: &Fact) {
        self.recorder.fact(fact);
    }

    fn facts(&self, facts: &[Fact]) {
        self.recorder.facts(facts);
    }
}
