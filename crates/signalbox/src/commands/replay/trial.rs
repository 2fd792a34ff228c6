//! Runs the calls of a tape against a server, which it starts or connects to.

use super::super::governed::prepare;
use super::super::{load, loader};
use crate::ad_hoc::{AdHocFile, ReplayConfig, Server};
use crate::cli::{Global, OnErrorMode, OrderMode, TrialArgs};
use crate::failure::Failure;
use bytes::Bytes;
use signalbox_assembly::assemble::{App, StateFiles, assemble};
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::recording::Recording;
use signalbox_config::loader::Loader;
use signalbox_config::{Config, Overrides, RecordConfig};
use signalbox_engine::record::{Content, MessageEntry, TapeKind};
use signalbox_engine::{Caller, Principal, Proof};
use signalbox_oauth_client::page_host::PageHost;
use signalbox_replay::call_gatherer::gather;
use signalbox_replay::diff::{Comparison, Masks};
use signalbox_replay::run::{
    Connection, OnError, Order, RecordedNotification, RunReport, RunSettings, Runner, TimeShift, read_only_tools,
};
use signalbox_replay::tape_offer::TapeOffer;
use signalbox_replay::{Holes, Paths, RecordedCall, RecordedSide};
use signalbox_tape::TapeSource;
use signalbox_transport::stdio_front;
use signalbox_wire::printable;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

/// Capacity of the in-process stream to the gateway, in bytes per direction.
const BUFFER: usize = 1 << 20;
/// Maximum number of queued messages per direction.
const QUEUE: usize = 256;
/// Polling interval for the state of the server.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Maximum time for the gateway to shut down.
pub(super) const DRAIN: Duration = Duration::from_secs(5);

/// Calls, notifications and metadata of a tape that a run needs.
pub(super) struct Tape {
    id: String,
    redaction: Vec<String>,
    pub(super) calls: Vec<Arc<RecordedCall>>,
    notifications: Vec<RecordedNotification>,
    offer: TapeOffer,
    pub(super) holes: Holes,
    /// Backends that sent or received messages.
    backends: BTreeSet<Arc<str>>,
}

impl Tape {
    pub(super) fn read(source: &mut TapeSource, session: Option<u64>) -> Result<Self, Failure> {
        let (id, redaction) = (source.info().id.clone(), source.info().redaction.clone());
        let side = RecordedSide::of(source)?;
        let mut holes = Holes::of_tape(source);
        let (mut offer, mut backends, mut notifications) = (TapeOffer::default(), BTreeSet::new(), Vec::new());
        let entries = source.entries(None).inspect(|entry| {
            if let Ok(entry) = entry {
                if let Content::Message(MessageEntry { backend: Some(backend), .. }) = &entry.content
                    && !backends.contains(backend)
                {
                    backends.insert(Arc::clone(backend));
                }
                holes.look(entry);
                offer.learn(&side, entry);
                notifications.extend(RecordedNotification::of(&side, entry));
            }
        });
        let mut calls = gather(entries, side.clone(), Paths::default())?;
        calls.retain(|call| session.is_none() || call.session == session);
        calls.iter().for_each(|call| holes.count(call));
        Ok(Self { id, redaction, calls, notifications, offer, holes, backends })
    }

    fn only_backend(&self) -> Option<Arc<str>> {
        self.backends.first().filter(|_| self.backends.len() == 1).cloned()
    }
}

fn settings(args: &TrialArgs, tape: &Tape) -> Result<RunSettings, Failure> {
    let (ignored, unordered) = args.places.read()?;
    Ok(RunSettings {
        speed: args.speed.0,
        order: match args.order {
            OrderMode::Sequential => Order::Sequential,
            OrderMode::Correlated => Order::Correlated,
            OrderMode::Priority => Order::Priority,
            OrderMode::Random => Order::Random(args.seed.unwrap_or_default()),
        },
        methods: args.method.clone(),
        subjects: args.tool.clone(),
        allow_writes: args.allow_writes,
        read_only: read_only_tools(&tape.offer),
        also_read_only: args.read_only.clone(),
        comparison: Comparison {
            ignored: ignored.paths,
            patterns: ignored.patterns,
            unordered,
            tolerance: args.tolerance,
            json_in_text: true,
            meta: false,
        },
        masks: Masks::of_rules(&tape.redaction),
        timing: args.timing,
        timeout: args.timeout,
        on_error: match args.on_error {
            // A controlled run pauses at a breakpoint instead.
            OnErrorMode::Continue | OnErrorMode::Pause => OnError::Continue,
            OnErrorMode::Stop => OnError::Stop,
            OnErrorMode::Retry => OnError::Retry,
        },
        ..RunSettings::default()
    })
}

/// Settings of a run: the server, and the way the calls are sent to it.
pub(super) struct Trial<'a> {
    global: &'a Global,
    args: &'a TrialArgs,
    command: &'a [OsString],
    parent: String,
    /// Start of the first call, in nanoseconds since 1970.
    began: u64,
    /// Name of the tape's backend, if there was only one.
    name: Option<Arc<str>>,
    /// File that the answers are recorded to, if any.
    update: Option<PathBuf>,
    notifications: Vec<RecordedNotification>,
    pub(super) settings: RunSettings,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        global: &'a Global,
        args: &'a TrialArgs,
        command: &'a [OsString],
        tape: &Tape,
        update: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            global,
            args,
            command,
            parent: tape.id.clone(),
            began: tape.calls.iter().map(|call| call.began).min().unwrap_or_default(),
            name: tape.only_backend(),
            update,
            notifications: if args.skip_notifications { Vec::new() } else { tape.notifications.clone() },
            settings: settings(args, tape)?,
        })
    }

    /// Starts or connects to the server, and sends it these calls.
    pub(super) async fn run(
        &self,
        calls: &[Arc<RecordedCall>],
    ) -> Result<(RunReport, BTreeMap<u64, serde_json::Value>), Failure> {
        let LiveServer { app, file, .. } = self.start()?;
        drop(file);
        let shift = self.shift();
        let mut runner = self.runner(shift.as_ref()).expecting(calls);
        let mut outcome = self.is_up(&app).await;
        for calls in sessions(calls) {
            if outcome.is_err() {
                break;
            }
            let mut connection = connect(&app);
            outcome = runner.session(&calls, &mut connection).await.map_err(Failure::Run);
        }
        app.shut_down(DRAIN).await;
        outcome?;
        Ok(runner.finish())
    }

    /// Waits until the server has answered the handshake, so that no call is timed with it.
    pub(super) async fn is_up(&self, app: &App) -> Result<(), Failure> {
        let within = self.settings.timeout;
        let began = Instant::now();
        loop {
            let status = app.gateway.status();
            let Some(server) = status.backends.first() else { return Ok(()) };
            match server.state {
                "starting" | "restarting" if began.elapsed() < within => tokio::time::sleep(LOOK_AGAIN).await,
                "starting" | "restarting" => {
                    return Err(Failure::NoServer(format!(
                        "the server did not answer the handshake within {within:?}"
                    )));
                }
                "down" | "failed" => {
                    let why = server.last_error.as_deref().unwrap_or("it cannot be reached");
                    let words = server.last_words.iter().map(|line| format!("\n  {}", printable::one_line(line)));
                    let text = format!("the server did not start: {}", printable::one_line(why));
                    return Err(Failure::NoServer(text + &words.collect::<String>()));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Returns the shift of timestamps in requests, if they are to be updated.
    pub(super) fn shift(&self) -> Option<TimeShift> {
        self.args.update_timestamps.then(|| TimeShift::new(self.began, SystemTime::now()))
    }

    pub(super) fn runner<'b>(&'b self, shift: Option<&'b TimeShift>) -> Runner<'b> {
        let runner = Runner::new(&self.settings).notifying(&self.notifications);
        match shift {
            Some(shift) => runner.with(shift),
            None => runner,
        }
    }

    /// Starts a gateway with the server as its only backend.
    pub(super) fn start(&self) -> Result<LiveServer, Failure> {
        let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
        let server = match &self.args.against {
            Some(url) => Server::Url(url),
            None => Server::Command(self.command, &names),
        };
        let record = load(self.global, Overrides::default())?.config.record;
        let file = self.update.clone();
        let record = RecordConfig { enabled: file.is_some(), file, parent: Some(self.parent.clone()), ..record };
        let replayed = ReplayConfig {
            name: self.name.as_deref(),
            server: Some(server),
            rules: self.args.rules.as_deref(),
            seed: self.args.seed,
            ..ReplayConfig::default()
        };
        let (file, global) = prepare(self.global, &replayed.text()?)?;
        let loader = loader(&global, Overrides { record: Some(record), ..Overrides::default() })?;
        let config = loader.load()?.config;
        let data_dir = DataDir::prepare(&config.data_dir)?;
        let recording = Recording::start(&config, TapeKind::Stdio, &data_dir)?;
        let app = assemble(&config, Principal::local("replay"), StateFiles::default(), recording, PageHost::Person)?;
        app.gateway.start();
        Ok(LiveServer { app, loader, config, data_dir, file })
    }
}

/// A running gateway with the live server as its only backend.
pub(super) struct LiveServer {
    pub(super) app: App,
    pub(super) loader: Loader,
    pub(super) config: Config,
    pub(super) data_dir: DataDir,
    /// Configuration file. Kept because a reload reads it again.
    pub(super) file: AdHocFile,
}

/// Opens an in-process session with the gateway.
pub(super) fn connect(app: &App) -> Connection {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let (from, to) = tokio::io::split(theirs);
    let gateway = Arc::clone(&app.gateway);
    let caller = Caller::of(Principal::local("replay"), Proof::LocalUser, "stdio");
    tokio::spawn(async move {
        if let Err(error) = stdio_front::serve(from, to, gateway, caller, Duration::ZERO).await {
            tracing::debug!(%error, "the session ended");
        }
    });
    let (heard, said) = tokio::io::split(ours);
    let (to_server, outgoing) = mpsc::channel::<Bytes>(QUEUE);
    let (incoming, from_server) = mpsc::channel::<Bytes>(QUEUE);
    tokio::spawn(write_lines(outgoing, said));
    tokio::spawn(async move {
        let mut lines = BufReader::new(heard).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            if incoming.send(line.into()).await.is_err() {
                return;
            }
        }
    });
    Connection::new(to_server, from_server)
}

async fn write_lines(mut from: mpsc::Receiver<Bytes>, mut to: impl tokio::io::AsyncWrite + Unpin) {
    while let Some(message) = from.recv().await {
        if to.write_all(&message).await.is_err() || to.write_all(b"\n").await.is_err() {
            return;
        }
    }
}

/// Groups the calls by session, in the order in which the sessions began. Calls without a session form one group.
pub(super) fn sessions(all: &[Arc<RecordedCall>]) -> Vec<Vec<Arc<RecordedCall>>> {
    let mut sessions: BTreeMap<u64, (Option<u64>, Vec<_>)> = BTreeMap::new();
    for call in all {
        let first = sessions.iter().find(|(_, (session, _))| *session == call.session).map(|(first, _)| *first);
        let place = first.unwrap_or(call.seq);
        sessions.entry(place).or_insert_with(|| (call.session, Vec::new())).1.push(Arc::clone(call));
    }
    sessions.into_values().map(|(_, calls)| calls).collect()
}
