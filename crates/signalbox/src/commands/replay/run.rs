//! `signalbox replay run`: a tape's clients against a live server.

use super::super::governed::prepare;
use super::super::tape::find_tape;
use super::super::{load, loader};
use super::{absolute, controlled};
use crate::ad_hoc::{self, AdHocFile, Server};
use crate::cli::{Global, OnErrorMode, OrderMode, ReplayRunArgs};
use crate::failure::Failure;
use crate::output;
use bytes::Bytes;
use signalbox_assembly::assemble::{App, assemble};
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::recording::Recording;
use signalbox_config::loader::Loader;
use signalbox_config::{Config, Overrides, Record};
use signalbox_engine::record::TapeKind;
use signalbox_engine::{Caller, Principal, Proof};
use signalbox_replay::call_gatherer::gather;
use signalbox_replay::diff::{Comparison, Masks};
use signalbox_replay::offer::Offer;
use signalbox_replay::run::{
    Connection, OnError, Order, RunReport, RunSettings, Runner, TimeShift, read_only_tools, volatile_paths,
};
use signalbox_replay::{Holes, Paths, RecordedCall, Side, ignore_file};
use signalbox_tape::TapeSource;
use signalbox_transport::stdio_front;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

/// Bytes that may be on their way in each direction.
const BUFFER: usize = 1 << 20;
/// Messages that may wait.
const QUEUE: usize = 256;
/// How long the gateway may take to end.
pub(super) const DRAIN: Duration = Duration::from_secs(5);
/// How far runs that are to be told apart by their volatile values lie from each other.
const APART: Duration = Duration::from_millis(1100);

/// Runs it, reports, and says by the exit code whether everything was the same.
pub(super) async fn run(global: &Global, args: &ReplayRunArgs) -> Result<ExitCode, Failure> {
    controlled::check(args)?;
    let tape = Tape::read(&mut find_tape(global, &args.tape)?, args.session)?;
    let mut settings = settings(args, &tape)?;
    tape.holes.to_string().lines().for_each(|hole| output::say(format_args!("signalbox: {hole}")));
    if args.control || args.interactive {
        return ended(global, args, &controlled::run(global, args, &tape, &settings).await?);
    }
    let times = args.learn.unwrap_or(1);
    settings.keep_answers = times > 1;
    let (mut reports, mut answers) = (Vec::new(), Vec::new());
    for round in 0..times {
        if round > 0 {
            tokio::time::sleep(APART).await;
        }
        let (report, heard) = once(global, args, &tape, &settings).await?;
        reports.push(report);
        answers.push(heard);
    }
    if args.learn.is_some() {
        output::result(&volatile_paths(&answers, &settings.comparison).to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(report) = reports.pop() else { return Ok(ExitCode::SUCCESS) };
    ended(global, args, &report)
}

/// Reports, and says by the exit code whether everything was the same.
fn ended(global: &Global, args: &ReplayRunArgs, report: &RunReport) -> Result<ExitCode, Failure> {
    show(global, args, report)?;
    Ok(if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What is needed of a tape.
pub(super) struct Tape {
    id: String,
    redaction: Vec<String>,
    pub(super) calls: Vec<Arc<RecordedCall>>,
    offer: Offer,
    holes: Holes,
}

impl Tape {
    fn read(source: &mut TapeSource, session: Option<u64>) -> Result<Self, Failure> {
        let (id, redaction) = (source.info().id.clone(), source.info().redaction.clone());
        let side = Side::of(source)?;
        let mut holes = Holes::of_tape(source);
        let mut offer = Offer::default();
        let entries = source.entries(None).inspect(|entry| {
            if let Ok(entry) = entry {
                holes.look(entry);
                offer.learn(&side, entry);
            }
        });
        let mut calls = gather(entries, side.clone(), Paths::default())?;
        calls.retain(|call| session.is_none() || call.session == session);
        calls.iter().for_each(|call| holes.count(call));
        Ok(Self { id, redaction, calls, offer, holes })
    }

    /// The calls of each session, in the order in which they began; those without one come as one.
    pub(super) fn sessions(&self) -> Vec<Vec<Arc<RecordedCall>>> {
        let mut sessions: BTreeMap<u64, (Option<u64>, Vec<_>)> = BTreeMap::new();
        for call in &self.calls {
            let first = sessions.iter().find(|(_, (session, _))| *session == call.session).map(|(first, _)| *first);
            let place = first.unwrap_or(call.seq);
            sessions.entry(place).or_insert_with(|| (call.session, Vec::new())).1.push(Arc::clone(call));
        }
        sessions.into_values().map(|(_, calls)| calls).collect()
    }
}

fn settings(args: &ReplayRunArgs, tape: &Tape) -> Result<RunSettings, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let mut ignored = Paths::parse(&args.ignore).map_err(|error| usage(&error))?;
    for file in &args.ignore_file {
        ignore_file::add(file, &mut ignored).map_err(|error| usage(&error))?;
    }
    let unordered = Paths::parse(&args.unordered).map_err(|error| usage(&error))?;
    Ok(RunSettings {
        speed: args.speed.0,
        order: match args.order {
            OrderMode::Sequential => Order::Sequential,
            OrderMode::Correlated => Order::Correlated,
            OrderMode::Priority => Order::Priority,
            OrderMode::Random => Order::Random(args.seed),
        },
        methods: args.method.clone(),
        subjects: args.tool.clone(),
        allow_writes: args.allow_writes,
        read_only: read_only_tools(&tape.offer),
        also_read_only: args.read_only.clone(),
        comparison: Comparison { ignored, unordered, tolerance: args.tolerance, json_in_text: true, meta: false },
        masks: Masks::of_rules(&tape.redaction),
        timing: args.timing,
        timeout: args.timeout,
        on_error: match args.on_error {
            // A controlled run pauses by a breakpoint.
            OnErrorMode::Continue | OnErrorMode::Pause => OnError::Continue,
            OnErrorMode::Stop => OnError::Stop,
            OnErrorMode::Retry => OnError::Retry,
        },
        ..RunSettings::default()
    })
}

/// One run against a server that is started, or connected to, for it.
async fn once(
    global: &Global,
    args: &ReplayRunArgs,
    tape: &Tape,
    settings: &RunSettings,
) -> Result<(RunReport, BTreeMap<u64, serde_json::Value>), Failure> {
    let Target { app, file, .. } = Target::start(global, args, tape)?;
    drop(file);
    let shift = shift(args);
    let mut runner = runner(settings, shift.as_ref());
    let mut outcome = Ok(());
    for calls in tape.sessions() {
        let mut connection = connect(&app);
        outcome = runner.session(&calls, &mut connection).await;
        if outcome.is_err() {
            break;
        }
    }
    app.shut_down(DRAIN).await;
    outcome.map_err(Failure::Run)?;
    Ok(runner.finish())
}

/// What shifts moments in requests, if they are to be.
pub(super) fn shift(args: &ReplayRunArgs) -> Option<TimeShift> {
    args.update_timestamps.then(|| TimeShift::to(SystemTime::now()))
}

pub(super) fn runner<'a>(settings: &'a RunSettings, shift: Option<&'a TimeShift>) -> Runner<'a> {
    let runner = Runner::new(settings);
    match shift {
        Some(shift) => runner.with(shift),
        None => runner,
    }
}

/// A gateway with the live server as its only backend.
pub(super) struct Target {
    pub(super) app: App,
    pub(super) loader: Loader,
    pub(super) config: Config,
    pub(super) data_dir: DataDir,
    /// The configuration, for as long as somebody may want it to be read again.
    pub(super) file: AdHocFile,
}

impl Target {
    pub(super) fn start(global: &Global, args: &ReplayRunArgs, tape: &Tape) -> Result<Self, Failure> {
        let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
        let server = match &args.against {
            Some(url) => Server::Url(url),
            None => Server::Command(&args.command, &names),
        };
        let record = load(global, Overrides::default())?.config.record;
        let file = args.update.as_deref().map(absolute).transpose()?;
        let record = Record { enabled: file.is_some(), file, parent: Some(tape.id.clone()), ..record };
        let text = ad_hoc::replayed(None, Some(server), &[], args.rules.as_deref())?;
        let (file, global) = prepare(global, &text)?;
        let loader = loader(&global, Overrides { record: Some(record), ..Overrides::default() })?;
        let config = loader.load()?.config;
        let data_dir = DataDir::prepare(&config.data_dir)?;
        let recording = Recording::start(&config, TapeKind::Stdio, &data_dir)?;
        let app = assemble(&config, Principal::local("replay"), None, recording)?;
        app.gateway.start();
        Ok(Self { app, loader, config, data_dir, file })
    }
}

/// A session with the gateway inside this process.
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

fn show(global: &Global, args: &ReplayRunArgs, report: &RunReport) -> Result<(), Failure> {
    match global.json {
        true => output::result(&format!("{}\n", report.to_json()))?,
        false => output::result(&report.to_text())?,
    }
    if args.github || std::env::var_os("GITHUB_ACTIONS").is_some() {
        output::result(&report.to_github(&args.tape))?;
    }
    if let Some(file) = &args.junit {
        write(file, &report.to_junit(&args.tape))?;
    }
    if let Some(file) = &args.sarif {
        write(file, &format!("{:#}\n", report.to_sarif(&args.tape)))?;
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| Failure::File { path: file.to_owned(), error })
}
