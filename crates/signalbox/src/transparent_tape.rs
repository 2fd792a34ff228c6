//! Recording of a transparent proxy: its private tape, and the control socket that reports its state. Must never hold
//! up the proxied bytes.

use crate::cli::{Global, TapeTo};
use crate::commands::{data_dir, loader};
use crate::failure::Failure;
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::live_feed::LiveFeed;
use signalbox_assembly::recording::{LateStore, STORE_FILE, StorePlace, TapeSealing, redactor, session_hash, tape_id};
use signalbox_assembly::tape_to_file::TapeToFile;
use signalbox_config::{Config, Overrides, RecordConfig};
use signalbox_control::api::transparent::{self, TransparentApi};
use signalbox_control::control_socket::Control;
use signalbox_control::status::{Passage, PassageOverview};
use signalbox_engine::FactSink;
use signalbox_engine::metrics::MethodMetrics;
use signalbox_engine::record::{TapeInfo, TapeKind, TapeStore as _, TapeWriter};
use signalbox_runtime::{Gateway, GatewayParts, Settings};
use signalbox_store::SqliteStore;
use signalbox_tape::recorder::{OnFull, Sampling};
use signalbox_tape::{Anchor, Recorder, RecorderSettings, Redactor, SealSettings};
use signalbox_transport::tap::{Feed, Running, Tap, TapCounts, Weigh};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Maximum length of a message recorded as a whole. Longer ones are recorded in pieces.
pub const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// Maximum time that the tap waits for a slow store. Traffic never waits.
const WAIT: Duration = Duration::from_secs(10);
/// Maximum time to write the last entries at the end.
const LAST_ENTRIES: Duration = Duration::from_secs(10);
/// Text shown instead of a tape's name if nothing is recorded.
const NO_TAPE: &str = "nothing is recorded";

/// A tap on the traffic, with its sinks: the tape, the live feed and the metrics.
pub struct TransparentTape<I> {
    /// Feed that the proxy copies its traffic to.
    pub feed: Feed<I>,
    running: Running<I>,
    tape: Option<Tape>,
    live: Arc<LiveFeed>,
    metrics: Arc<MethodMetrics>,
    folder: Option<PathBuf>,
}

/// A tape that is being written.
struct Tape {
    /// Id or file name of the tape, for the user.
    shown: String,
    recorder: Arc<Recorder>,
}

impl<I> TransparentTape<I> {
    /// Begins a tape at the place the command line names, and starts `tap`.
    ///
    /// If the default store is unusable, a warning is logged and traffic passes unrecorded. A file named by the user
    /// must be writable.
    ///
    /// # Errors
    /// If the named file cannot be written, or no thread can be started.
    pub fn begin<T>(
        global: &Global,
        to: &TapeTo,
        kind: TapeKind,
        target: String,
        tap: impl FnOnce() -> T,
    ) -> Result<Self, Failure>
    where
        T: Tap<Input = I>,
        I: Weigh + Send + 'static,
    {
        let folder = data_dir(global).ok();
        let tape = if to.no_tape { None } else { Tape::begin(global, to, kind, target)? };
        let (live, metrics) = (LiveFeed::new(), Arc::new(MethodMetrics::default()));
        let mut sinks: Vec<Arc<dyn FactSink>> = vec![live.clone(), metrics.clone()];
        sinks.extend(tape.iter().map(|tape| Arc::clone(&tape.recorder) as _));
        let (feed, running) = Feed::start(tap(), sinks).map_err(Failure::Start)?;
        Ok(Self { feed, running, tape, live, metrics, folder })
    }

    /// Returns the id or file name of the tape, or a text if there is none.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.tape.as_ref().map_or(NO_TAPE, |tape| &tape.shown)
    }

    /// Opens the control socket for `status` and `watch`. Failures are only logged, because traffic passes without it.
    /// Needs a Tokio runtime.
    #[must_use]
    pub fn control(&self, command: &'static str, url: Option<String>, target: String) -> Option<Control> {
        let unseen = |error: &dyn std::fmt::Display| {
            tracing::warn!("`signalbox status` will not see this process: {error}");
        };
        let data_dir = DataDir::prepare(self.folder.as_deref()?).inspect_err(|error| unseen(error)).ok()?;
        let passage = Passage { command, url, target, data_dir: data_dir.path().to_owned() };
        let tape = self.tape.as_ref().map(|tape| (tape.shown.clone(), Arc::clone(&tape.recorder)));
        let passing = TransparentApi::new(PassageOverview::new(passage, &self.metrics, tape), &self.live);
        let router = transparent::router(&passing).inspect_err(|error| unseen(error)).ok()?;
        let gateway = empty_gateway().inspect_err(|fault| unseen(fault)).ok()?;
        Control::open(&data_dir, &gateway, &router)
    }

    /// Flushes the tap, ends the tape, and logs what is missing on it.
    pub fn end(self) -> TapCounts {
        let counts = self.running.finish();
        if let Some(Tape { recorder, .. }) = self.tape {
            recorder.stop(LAST_ENTRIES);
            let stats = recorder.stats();
            tracing::debug!(?counts, ?stats, "the tape has ended");
        }
        counts
    }
}

/// Creates an empty gateway. The control socket needs one to count its connections.
fn empty_gateway() -> Result<Arc<Gateway>, signalbox_engine::Fault> {
    Gateway::new(GatewayParts::unguarded(Settings::default(), Vec::new())?)
}

impl Tape {
    fn begin(global: &Global, to: &TapeTo, kind: TapeKind, target: String) -> Result<Option<Self>, Failure> {
        let anchor = Anchor::now();
        let info = info(kind, target, &anchor).map_err(Failure::Start)?;
        let opened = match OpenTape::open(global, to, info) {
            Ok(opened) => opened,
            Err(failure) if to.tape.is_some() => return Err(failure),
            Err(failure) => {
                tracing::warn!("nothing is recorded: {failure}");
                return Ok(None);
            }
        };
        // Ids of sessions are credentials, so without the key for their hash they are left out.
        let folder = data_dir(global).ok().and_then(|folder| DataDir::prepare(&folder).ok());
        let settings = RecorderSettings {
            on_full: OnFull::Wait(WAIT),
            max_body: MAX_MESSAGE,
            session_hash: folder.and_then(|folder| session_hash(folder.path()).ok()),
            seal: opened.seal,
            ..RecorderSettings::default()
        };
        let OpenTape { writer, shown, redactor, .. } = opened;
        let recorder = Recorder::start(settings, redactor, writer, anchor).map_err(Failure::Start)?;
        Ok(Some(Self { shown, recorder: Arc::new(recorder) }))
    }
}

/// An opened tape: its writer, and how its entries are redacted and sealed.
struct OpenTape {
    writer: Box<dyn TapeWriter>,
    shown: String,
    redactor: Redactor,
    seal: Option<SealSettings>,
}

impl OpenTape {
    /// Opens the file on the command line, else the configured database, else the store of the data folder.
    fn open(global: &Global, to: &TapeTo, mut info: TapeInfo) -> Result<Self, Failure> {
        let configured = configured(global);
        if let Some(file) = &to.tape {
            let seal = configured.ok().and_then(|configured| configured.seal(&mut info));
            let writer =
                TapeToFile::create(file, &info).map_err(|error| Failure::File { path: file.clone(), error })?;
            return Ok(Self::whole(Box::new(writer), file.display().to_string(), seal));
        }
        let configured = configured?;
        if let Some(config) = configured.config.as_ref().filter(|config| config.record.postgres.is_some()) {
            return Self::database(&configured, &config.record, info);
        }
        let data_dir = DataDir::prepare(&configured.folder)?;
        let store = SqliteStore::open(data_dir.path().join(STORE_FILE))?;
        let seal = configured.seal(&mut info);
        Ok(Self::whole(store.begin(&info)?, info.id, seal))
    }

    /// Returns a target without redaction: only the current user can read it.
    fn whole(writer: Box<dyn TapeWriter>, shown: String, seal: Option<SealSettings>) -> Self {
        Self { writer, shown, redactor: Redactor::none(), seal }
    }

    /// Returns a database as target, with secrets redacted as `serve` does: others may read a database.
    fn database(configured: &TapeConfig, record: &RecordConfig, info: TapeInfo) -> Result<Self, Failure> {
        let redactor = redactor(&record.redaction)?;
        let mut info = TapeInfo { redaction: redactor.describe(), ..info };
        let seal = configured.seal(&mut info);
        let key = seal.as_ref().map(|seal| seal.key().clone());
        let most = record.retention.max_bytes.unwrap_or(u64::MAX);
        // A database needs no data folder.
        let place = StorePlace::of(record, std::path::Path::new(""));
        let shown = info.id.clone();
        Ok(Self { writer: Box::new(LateStore::new(place, most, key).writer(info)), shown, redactor, seal })
    }
}

/// The data folder, with the configuration if it is valid. An invalid one does not stop recording.
struct TapeConfig {
    folder: PathBuf,
    config: Option<Config>,
}

impl TapeConfig {
    /// Returns the configured seal of the tape. A tape that cannot be sealed is recorded without a seal.
    fn seal(&self, info: &mut TapeInfo) -> Option<SealSettings> {
        let seal = &self.config.as_ref()?.seal;
        let prepared = DataDir::prepare(&self.folder).map_err(|error| error.to_string());
        let sealed = prepared.and_then(|folder| {
            let sealing = TapeSealing::new(seal, folder.path(), &Arc::default());
            let sealed = sealing.and_then(|sealing| sealing.map(|sealing| sealing.seal(info)).transpose());
            sealed.map_err(|error| error.to_string())
        });
        sealed.inspect_err(|error| tracing::warn!("the tape is not sealed: {error}")).ok().flatten()
    }
}

fn configured(global: &Global) -> Result<TapeConfig, Failure> {
    let loader = loader(global, Overrides::default())?;
    match loader.load() {
        Ok(loaded) => Ok(TapeConfig { folder: loaded.config.data_dir.clone(), config: Some(loaded.config) }),
        Err(error) => {
            tracing::warn!("the configuration is not valid, so the tape goes to the data folder, unsealed: {error}");
            Ok(TapeConfig { folder: loader.data_dir()?.0, config: None })
        }
    }
}

fn info(kind: TapeKind, target: String, anchor: &Anchor) -> io::Result<TapeInfo> {
    Ok(TapeInfo {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        sampling: Sampling::All.words(),
        ..TapeInfo::new(tape_id()?, kind, target, anchor.unix)
    })
}
