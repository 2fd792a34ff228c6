//! Audit log of this process: opens its sinks, writes administrative records, and reads records back.

use crate::recording::{RecordingError, redactor};
use crate::seal_folder::{SealFolder, SealFolderError};
use arc_swap::ArcSwap;
use bytes::Bytes;
use signalbox_audit::ends::TakenRecords;
use signalbox_audit::search::AuditQuery;
use signalbox_audit::sinks::{AlertSink, DatabaseSink, FileSink, Poster, RemoteSink, Sink, SinkError, SyslogSink};
use signalbox_audit::{
    AdminAction, AuditLog, AuditRecord, AuditReport, AuditSettings, AuditStats, AuditVerifier, BrokenGlass,
    CallVerifier, DefinitionChange, Pruner, SinkPlace, StartError, ends, files, undelivered,
};
use signalbox_config::{Audit, Config, Secret};
use signalbox_engine::FactSink;
use signalbox_engine::audit::{IntentLog, IntentWrite};
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::record::StoreError;
use signalbox_runtime::WebhookTransport as _;
use signalbox_runtime::clock::unix_millis;
use signalbox_seal::hex;
use signalbox_seal::keys::files::KeyStorageError;
use signalbox_store::audit::AuditDatabase;
use signalbox_tape::redact::Redactor;
use signalbox_transport::web_post::WebPost;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Folder of the audit log in the data folder, and its default log file.
const FOLDER: &str = "audit";
const LOG_FILE: &str = "audit.log";
/// Folder of the journals.
const JOURNALS: &str = "journal";
/// Timeout for one request to a web address.
const POST_WITHIN: Duration = Duration::from_secs(10);
/// Time that shutdown waits for sinks. Undelivered records stay in the journal.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// Time for which records of an earlier process are retried at unreachable sinks.
const DELIVERY_WITHIN: Duration = Duration::from_secs(24 * 3600);
/// Time that a command waits for sinks. Undelivered records stay in the journal for the next command.
const ALONE_WITHIN: Duration = Duration::from_secs(2);
/// Time that the answer to an administrator waits for the record of the action.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);
const DAY_MS: u64 = 24 * 3600 * 1000;

/// Reason why the audit log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum AuditingError {
    /// The log cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no signing key.
    #[error("the audit log cannot be signed: {0}")]
    Key(#[from] SealFolderError),
    /// The redaction of arguments cannot be set up.
    #[error(transparent)]
    Redaction(#[from] RecordingError),
    /// The database address is invalid.
    #[error(transparent)]
    Database(#[from] StoreError),
    /// The system provides no thread or no randomness.
    #[error("the audit log cannot be started: {0}")]
    System(#[from] io::Error),
}

/// Reason why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AuditReadError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The database reports an error.
    #[error(transparent)]
    Database(#[from] StoreError),
    /// The trusted keys cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyStorageError),
    /// All sinks are write-only, so there is nothing to read.
    #[error("no audit log can be read here: set `mcp.protocol.audit.enabled` with a file or a database as its sink")]
    Nowhere,
}

pub struct Auditing {
    log: Arc<AuditLog>,
    terms: ArcSwap<Terms>,
}

/// Settings that apply to records before they reach the log.
struct Terms {
    /// True if breaking the glass is recorded.
    notes_glass: bool,
    /// Removes secrets from what administrators write.
    redactor: Redactor,
}

/// Settings and sinks of a configuration. Must not be dropped on a runtime thread, because sinks own runtimes.
pub(crate) struct AuditParts {
    settings: AuditSettings,
    sinks: Vec<Box<dyn Sink>>,
}

impl AuditParts {
    /// Builds the parts for this configuration, or returns `None` if it has no audit log.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, AuditingError> {
        let Some(audit) = &config.audit else { return Ok(None) };
        let seal = SealFolder::of(&config.data_dir);
        let settings = AuditSettings {
            folder: journals(&config.data_dir),
            logged: audit.logged,
            redactor: redactor(&config.record.redaction)?,
            payloads: audit.payloads,
            slow: audit.slow_call,
            fsync: audit.fsync,
            required: audit.required.clone(),
            spool_max: audit.spool_max,
            key: seal.signing_key()?,
            head_every: config.seal.head_every,
            head_interval: config.seal.head_interval,
        };
        let keys = seal.key_set().map_err(SealFolderError::from)?;
        let pruner = Pruner::new(settings.key.clone(), keys, &settings.folder);
        let sinks = sinks(audit, &config.data_dir, &pruner)?;
        Ok(Some(Self { settings, sinks }))
    }

    fn terms(&self) -> Terms {
        let AuditSettings { logged, redactor, .. } = &self.settings;
        Terms { notes_glass: logged.security_events, redactor: redactor.clone() }
    }
}

impl Auditing {
    /// Opens the audit log of this configuration, or returns `None` if it has none.
    ///
    /// # Errors
    /// If the log cannot be opened. An unreachable sink is no error: it is retried.
    pub fn open(config: &Config) -> Result<Option<Self>, AuditingError> {
        let Some(parts) = AuditParts::of(config)? else { return Ok(None) };
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let terms = ArcSwap::from_pointee(parts.terms());
        let log = AuditLog::open(parts.settings, parts.sinks, &hex(&random))?;
        Ok(Some(Self { log: Arc::new(log), terms }))
    }

    /// Replaces settings and sinks. A separate thread lets the former sinks take what is pending.
    pub(crate) fn follow(&self, parts: AuditParts) {
        self.terms.store(Arc::new(parts.terms()));
        let log = Arc::clone(&self.log);
        let replace = move || {
            if let Err(error) = log.replace(parts.settings, parts.sinks, STOP_WITHIN) {
                tracing::error!(%error, "the sinks of the audit log could not be replaced; start the gateway again");
            }
        };
        if let Err(error) = std::thread::Builder::new().name("audit-sinks".to_owned()).spawn(replace) {
            tracing::error!(%error, "the sinks of the audit log could not be replaced; start the gateway again");
        }
    }

    /// Returns the sink for facts.
    #[must_use]
    pub fn sink(&self) -> Arc<dyn FactSink> {
        self.log.clone()
    }

    /// Returns the log for intents of calls.
    pub fn intents(&self) -> Arc<dyn IntentLog> {
        self.log.clone()
    }

    /// Starts writing the records of this run, and delivering those that earlier processes left behind.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn begin(&self, run: AuditRun, config: &Config) -> Result<(), AuditingError> {
        self.log.begin(run)?;
        Self::deliver_left_behind(config)
    }

    /// Delivers the pending records of chains whose processes have ended and that no process will resume. Each chain
    /// has its own thread: an unreachable sink then delays no other chain, and sinks must not be dropped on a runtime
    /// thread.
    fn deliver_left_behind(config: &Config) -> Result<(), AuditingError> {
        for chain in undelivered(&journals(&config.data_dir))? {
            let config = config.clone();
            let deliver = move || {
                if let Err(error) = deliver(&config, &chain) {
                    tracing::warn!(%error, chain, "audit records of an earlier process still wait for their sinks");
                }
            };
            std::thread::Builder::new().name("audit-left".to_owned()).spawn(deliver)?;
        }
        Ok(())
    }

    /// Records that a grant breaks the glass, or has ended.
    pub(crate) fn note(&self, glass: &BrokenGlass<'_>) {
        if self.terms.load().notes_glass {
            self.log.note(glass.note(unix_millis()));
        }
    }

    /// Records a definition that differs from the approved one.
    pub(crate) fn note_definition(&self, change: &DefinitionChange<'_>) {
        self.log.note(change.note(unix_millis(), &self.terms.load().redactor));
    }

    /// Records an administrative action.
    pub fn administer(&self, action: &AdminAction<'_>) {
        self.log.note(action.note(unix_millis(), &self.terms.load().redactor));
    }

    /// Records an administrative action whose answer waits for its record. The returned future resolves once the record
    /// is as durable as the intents of calls, and after [`CONFIRMED_WITHIN`] at the latest: like a call, the action is
    /// then answered as done unless a sink is required.
    #[must_use]
    pub fn administer_confirmed(&self, action: &AdminAction<'_>) -> IntentWrite {
        let written = self.log.note_confirmed(action.note(unix_millis(), &self.terms.load().redactor));
        let log = Arc::clone(&self.log);
        Box::pin(async move {
            tokio::time::timeout(CONFIRMED_WITHIN, written).await.unwrap_or_else(|_| {
                tracing::warn!("the audit log did not confirm the record of an administrative action in time");
                log.requires_nothing()
            })
        })
    }

    /// Records an administrative action of a command, in a chain that no running process uses. Does nothing if the
    /// configuration has no audit log. Blocks, and must not be called on a runtime thread.
    ///
    /// # Errors
    /// If the log cannot be opened or written.
    pub fn write_alone(config: &Config, action: &AdminAction<'_>) -> Result<(), AuditingError> {
        let Some(this) = Self::open(config)? else { return Ok(()) };
        this.log.begin(AuditRun::new(unix_millis(), 0))?;
        this.administer(action);
        this.log.stop(ALONE_WITHIN);
        match this.stats() {
            AuditStats { lost: 0, .. } => Ok(()),
            stats => {
                Err(io::Error::other(stats.failing.unwrap_or_else(|| "its journal cannot be written".into())).into())
            }
        }
    }

    /// Returns the counters of the log and its sinks.
    #[must_use]
    pub fn stats(&self) -> AuditStats {
        self.log.stats()
    }

    /// Writes what is pending and gives the sinks a few seconds to take it.
    pub async fn stop(&self) {
        let log = Arc::clone(&self.log);
        let _ = tokio::task::spawn_blocking(move || log.stop(STOP_WITHIN)).await;
        let stats = self.stats();
        if stats.lost > 0 {
            tracing::warn!(lost = stats.lost, "not everything could be written to the audit log");
        }
        for sink in stats.sinks.iter().filter(|sink| sink.acked < stats.written) {
            let waiting = stats.written - sink.acked;
            tracing::warn!(sink = sink.name, waiting, "records wait for this sink until the next start");
        }
    }
}

/// Delivers the pending records of a chain, unless a process is writing to it.
fn deliver(config: &Config, chain: &str) -> Result<(), AuditingError> {
    let Some(AuditParts { settings, sinks }) = AuditParts::of(config)? else { return Ok(()) };
    if let Some(log) = AuditLog::open_chain(settings, sinks, chain)? {
        log.begin(AuditRun::new(unix_millis(), 0))?;
        log.stop(DELIVERY_WITHIN);
    }
    Ok(())
}

/// Returns the folder of the journals.
#[must_use]
pub fn journals(data_dir: &Path) -> PathBuf {
    data_dir.join(FOLDER).join(JOURNALS)
}

/// Returns the path of the log file.
fn log_file(path: &Path, data_dir: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { data_dir.join(FOLDER).join(LOG_FILE) } else { path.to_owned() }
}

fn sinks(audit: &Audit, data_dir: &Path, pruner: &Pruner) -> Result<Vec<Box<dyn Sink>>, AuditingError> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    if let Some(path) = &audit.file {
        sinks.push(Box::new(FileSink::new(
            log_file(path, data_dir),
            audit.retention_days,
            pruner.clone(),
            audit.fsync,
        )));
    }
    if let Some(url) = &audit.database {
        sinks.push(Box::new(DatabaseSink::new(url.expose(), audit.retention_days, pruner.clone())?));
    }
    if let Some(url) = &audit.remote {
        sinks.push(Box::new(RemoteSink::new(url.clone(), Arc::new(WebPoster::new(audit.remote_token.as_ref())?))));
    }
    if let Some(address) = &audit.syslog {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        sinks.push(Box::new(SyslogSink::new(address.clone(), host.trim())));
    }
    if let Some(url) = &audit.alert_webhook {
        sinks.push(Box::new(AlertSink::new(url.clone(), Arc::new(WebPoster::new(None)?))));
    }
    Ok(sinks)
}

/// Posts records from a sink's own thread.
struct WebPoster {
    runtime: Runtime,
    post: WebPost,
    /// Bearer token for the address, if configured.
    token: Option<Secret>,
}

impl WebPoster {
    fn new(token: Option<&Secret>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, post: WebPost::default(), token: token.cloned() })
    }
}

impl Poster for WebPoster {
    fn post(&self, url: &str, body: Bytes) -> Result<(), SinkError> {
        let token = self.token.as_ref().map(Secret::expose);
        let posted = async { tokio::time::timeout(POST_WITHIN, self.post.post(url, body, token)).await };
        let posted = self.runtime.block_on(posted);
        match posted {
            Ok(Ok((200..=299, _))) => Ok(()),
            Ok(Ok((status, _))) => Err(SinkError::Refused(format!("it answered with status {status}"))),
            Ok(Err(error)) => Err(SinkError::Refused(error.to_string())),
            Err(_) => Err(SinkError::Refused(format!("it took longer than {} s", POST_WITHIN.as_secs()))),
        }
    }
}

/// Place from which records are read.
#[derive(Debug, Clone)]
pub enum AuditPlace {
    /// Files of the file sink.
    Files(PathBuf),
    Database(Secret),
}

impl AuditPlace {
    /// Returns the place of this configuration's records. Files take precedence over the database.
    #[must_use]
    pub fn of(config: &Config) -> Option<Self> {
        let audit = config.audit.as_ref()?;
        match (&audit.file, &audit.database) {
            (Some(path), _) => Some(Self::Files(log_file(path, &config.data_dir))),
            (None, Some(url)) => Some(Self::Database(url.clone())),
            (None, None) => None,
        }
    }

    /// Returns the database of this configuration, if it has one.
    #[must_use]
    pub fn database(config: &Config) -> Option<Self> {
        config.audit.as_ref()?.database.clone().map(Self::Database)
    }

    /// Returns the place that signed gaps and checkpoints of these records name.
    fn sink(&self, journals: &Path) -> Result<SinkPlace, StoreError> {
        match self {
            Self::Files(path) => Ok(SinkPlace::file(path, journals)),
            Self::Database(url) => SinkPlace::database(url.expose(), journals),
        }
    }

    /// Calls `each` with the place and text of every line of the log, until it returns `false`. Blocks.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn lines(&self, each: &mut dyn FnMut(&str, &str) -> bool) -> Result<(), AuditReadError> {
        match self {
            Self::Files(path) => {
                let failed = |path: &Path| {
                    let path = path.to_owned();
                    move |error| AuditReadError::File { path, error }
                };
                let mut going = true;
                for file in files::all(path).map_err(failed(path))? {
                    let shown = file.display().to_string();
                    let mut line = |number: u64, line: &str| {
                        going = each(&format!("{shown}:{number}"), line);
                        going
                    };
                    files::lines(&file, &mut line).map_err(failed(&file))?;
                    if !going {
                        break;
                    }
                }
                Ok(())
            }
            Self::Database(url) => {
                let mut database = AuditDatabase::at(url.expose())?;
                Ok(database.records(&mut |row| each("row", row.record))?)
            }
        }
    }

    /// Calls `each` with every matching record, until it returns `false`. Lines that are not records are skipped.
    /// Blocks.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn search(
        &self,
        query: &AuditQuery,
        each: &mut dyn FnMut(&AuditRecord, &str) -> bool,
    ) -> Result<(), AuditReadError> {
        self.lines(&mut |_, line| match AuditRecord::read(line) {
            Ok(record) if query.fits(&record) => each(&record, line),
            _ => true,
        })
    }

    /// Recomputes and checks all chains. Blocks.
    ///
    /// # Errors
    /// If the log or the keys cannot be read.
    pub fn verify(&self, config: &Config) -> Result<AuditReport, AuditReadError> {
        let keys = SealFolder::of(&config.data_dir).key_set()?;
        let folder = journals(&config.data_dir);
        let sink = self.sink(&folder)?;
        let failed = |error| AuditReadError::File { path: folder.clone(), error };
        let taken = TakenRecords::read(&folder, &sink).map_err(failed)?;
        let mut verifier = AuditVerifier::new(&keys).of_place(&sink);
        let days = config.audit.as_ref().map_or(0, |audit| audit.retention_days);
        let since = unix_millis().saturating_sub(days * DAY_MS);
        match self {
            Self::Files(_) => self.lines(&mut |place, line| {
                verifier.line(place, line);
                true
            })?,
            Self::Database(url) => {
                verify_database(&mut verifier, url.expose(), since)?;
            }
        }
        ends::compare(&mut verifier, &folder, &sink, since, &taken).map_err(failed)?;
        Ok(verifier.finish())
    }
}

/// Checks every row of a database against its record. Calls before `since` may have been deleted by age.
fn verify_database(verifier: &mut AuditVerifier<'_>, url: &str, since: u64) -> Result<(), StoreError> {
    let (mut database, mut calls, mut number) = (AuditDatabase::at(url)?, CallVerifier::default(), 0_u64);
    database.calls(i64::MIN, &mut |call| {
        calls.row(call);
        true
    })?;
    let seen = calls.last();
    database.records(&mut |row| {
        number += 1;
        verifier.row(&format!("row {number}"), row);
        calls.record(verifier, row.record);
        true
    })?;
    database.calls(seen, &mut |call| {
        calls.row(call);
        true
    })?;
    calls.finish(verifier, seen, since);
    Ok(())
}

#[cfg(test)]
mod tests;
