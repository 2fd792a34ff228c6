//! The tape of a transparent proxy: every byte, in a place that only its user can read.

use crate::cli::{Global, TapeTo};
use crate::commands::data_dir;
use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::recording::{STORE_FILE, session_hash, tape_id};
use crate::tape_to_file::TapeToFile;
use signalbox_engine::FactSink;
use signalbox_engine::record::{TapeInfo, TapeKind, TapeStore as _, TapeWriter};
use signalbox_store::SqliteStore;
use signalbox_tape::recorder::{OnFull, Sampling};
use signalbox_tape::{Anchor, Recorder, RecorderSettings, Redactor};
use signalbox_transport::tap::{Feed, Running, Tap, TapCounts};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Longest message that is kept as a whole. What is longer is kept in pieces.
pub const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// How long the tap waits for a store that is slow. Traffic never does.
const WAIT: Duration = Duration::from_secs(10);
/// How long the last entries may take to be written at the end.
const LAST_ENTRIES: Duration = Duration::from_secs(10);

/// A tape that is being written, and the tap that feeds it.
pub struct Taping<I> {
    /// Where the proxy puts what passes.
    pub feed: Feed<I>,
    /// How a person finds the tape.
    pub shown: String,
    running: Running<I>,
    recorder: Arc<Recorder>,
}

impl<I> Taping<I> {
    /// Begins a tape where it was asked for, and has `tap` listen. None where nothing is to be recorded.
    ///
    /// A store of ours that cannot be used is no reason not to pass bytes on: that is told, and nothing is recorded. A file
    /// that somebody asked for is.
    ///
    /// # Errors
    /// When the file that was asked for cannot be written, or there is no thread.
    pub fn begin<T>(
        global: &Global,
        to: &TapeTo,
        kind: TapeKind,
        target: String,
        tap: impl FnOnce() -> T,
    ) -> Result<Option<Self>, Failure>
    where
        T: Tap<Input = I>,
        I: signalbox_transport::tap::Weigh + Send + 'static,
    {
        if to.no_tape {
            return Ok(None);
        }
        let anchor = Anchor::now();
        let info = info(kind, target, &anchor).map_err(Failure::Start)?;
        let (writer, shown) = match open(global, to, &info) {
            Ok(opened) => opened,
            Err(failure) if to.tape.is_some() => return Err(failure),
            Err(failure) => {
                tracing::warn!("nothing is recorded: {failure}");
                return Ok(None);
            }
        };
        // Without the key, ids of sessions are left out: they are credentials.
        let folder = data_dir(global).ok().and_then(|folder| DataDir::prepare(&folder).ok());
        let settings = RecorderSettings {
            on_full: OnFull::Wait(WAIT),
            max_body: MAX_MESSAGE,
            session_hash: folder.and_then(|folder| session_hash(folder.path()).ok()),
            ..RecorderSettings::default()
        };
        let recorder = Recorder::start(settings, Redactor::none(), writer, anchor).map_err(Failure::Start)?;
        let recorder = Arc::new(recorder);
        let sink: Arc<dyn FactSink> = Arc::clone(&recorder) as _;
        let (feed, running) = Feed::start(tap(), vec![sink]).map_err(Failure::Start)?;
        Ok(Some(Self { feed, shown, running, recorder }))
    }

    /// Writes what has passed and ends the tape. What is missing on it is told.
    pub fn end(self) -> TapCounts {
        let counts = self.running.finish();
        self.recorder.stop(LAST_ENTRIES);
        let stats = self.recorder.stats();
        tracing::debug!(?counts, ?stats, "the tape has ended");
        counts
    }
}

/// Opens the place that was asked for, else the store of the data folder.
fn open(global: &Global, to: &TapeTo, info: &TapeInfo) -> Result<(Box<dyn TapeWriter>, String), Failure> {
    if let Some(file) = &to.tape {
        let writer = TapeToFile::create(file, info).map_err(|error| Failure::File { path: file.clone(), error })?;
        return Ok((Box::new(writer), file.display().to_string()));
    }
    let data_dir = DataDir::prepare(&data_dir(global)?)?;
    let place = data_dir.path().join(STORE_FILE);
    let store = SqliteStore::open(&place)?;
    Ok((store.begin(info)?, info.id.clone()))
}

fn info(kind: TapeKind, target: String, anchor: &Anchor) -> io::Result<TapeInfo> {
    Ok(TapeInfo {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        sampling: Sampling::All.words(),
        ..TapeInfo::new(tape_id()?, kind, target, anchor.unix)
    })
}
