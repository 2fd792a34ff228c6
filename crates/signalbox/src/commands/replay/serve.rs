//! `signalbox replay serve`: a server that answers from a tape.

use super::super::governed::prepare;
use super::super::tape::read_tape;
use super::super::{block_on, load, loader, serve, stdio};
use super::absolute;
use crate::ad_hoc::{ReplayConfig, Server, quoted};
use crate::cli::{Global, PlayArgs, RecordMode, RepeatMode, ReplayServeArgs};
use crate::failure::Failure;
use crate::intent::is_piped;
use signalbox_assembly::logging;
use signalbox_config::{ListenAddr, Overrides, RecordConfig};
use signalbox_tape::source::is_file;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs as `stdio` or `serve` does, with the tape as the only backend.
pub(super) fn run(global: &Global, args: &ReplayServeArgs) -> Result<ExitCode, Failure> {
    let first = args.record == RecordMode::Once && is_file(&args.tape) && !Path::new(&args.tape).exists();
    let live = match args.record {
        RecordMode::Once if first => Some("all"),
        RecordMode::None | RecordMode::Once => None,
        RecordMode::New => Some("new"),
        RecordMode::All => Some("all"),
    };
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    let server = match (&args.against, args.command.as_slice()) {
        (Some(url), _) => Some(Server::Url(url)),
        (None, []) => None,
        (None, command) => Some(Server::Command(command, &names)),
    };
    if live.is_some() && server.is_none() {
        let text = "--record needs the server itself: `--against URL`, or `-- COMMAND` at the end of the line";
        return Err(Failure::Usage(text.to_owned()));
    }
    let (tape, parent) = if first {
        (None, None)
    } else {
        tape(global, &args.tape, "replay serve").map(|(tape, id)| (Some(tape), Some(id)))?
    };
    let file = if first {
        Some(absolute(Path::new(&args.tape))?)
    } else {
        args.tape_to.as_deref().map(absolute).transpose()?
    };
    let mut play = play(&args.play);
    play.extend(live.map(|live| ("live", quoted(live))));
    let serving = Serving {
        name: args.play.backend.as_deref(),
        tape,
        server: server.filter(|_| live.is_some()),
        play,
        rules: args.rules.as_deref(),
        seed: args.seed,
        records: live.is_some() || file.is_some(),
        file,
        parent,
        listen: args.listen,
        stdio: args.stdio,
    };
    serving.run(global)
}

/// Settings of a gateway whose only backend is a tape.
pub(super) struct Serving<'a> {
    /// Name of the backend.
    pub(super) name: Option<&'a str>,
    /// Tape as a configuration names it. Without one only the server answers.
    pub(super) tape: Option<String>,
    /// Server to call beside the tape.
    pub(super) server: Option<Server<'a>>,
    /// Further lines of the backend's table.
    pub(super) play: Vec<(&'static str, String)>,
    pub(super) rules: Option<&'a Path>,
    /// Seed of the rules' random numbers.
    pub(super) seed: Option<u64>,
    pub(super) records: bool,
    /// File to record to instead of the data folder.
    pub(super) file: Option<PathBuf>,
    /// Id of the tape that the new one continues.
    pub(super) parent: Option<String>,
    pub(super) listen: Option<ListenAddr>,
    pub(super) stdio: bool,
}

impl Serving<'_> {
    /// Runs the gateway as `stdio` or `serve` does.
    pub(super) fn run(self, global: &Global) -> Result<ExitCode, Failure> {
        let record = load(global, Overrides::default())?.config.record;
        let record = RecordConfig { enabled: self.records, file: self.file, parent: self.parent, ..record };
        let replayed = ReplayConfig {
            name: self.name,
            tape: self.tape.as_deref(),
            server: self.server,
            play: &self.play,
            rules: self.rules,
            seed: self.seed,
        };
        let (config, global) = prepare(global, &replayed.text()?)?;
        let by_pipe = self.stdio || self.listen.is_none() && is_piped();
        let overrides = Overrides { record: Some(record), listen: self.listen, ..Overrides::default() };
        let loader = loader(&global, overrides)?;
        let loaded = loader.load()?;
        let _logs = logging::start(loaded.config.log_level, global.json);
        let ended = match by_pipe {
            true => block_on(stdio::run(loaded, loader)),
            false => block_on(serve::run(loaded, loader, global.json)),
        };
        drop(config);
        ended
    }
}

/// Returns the tape as a configuration names it, and its id.
pub(super) fn tape(global: &Global, name: &str, command: &str) -> Result<(String, String), Failure> {
    let id = read_tape(global, name, command)?.info().id.clone();
    if !is_file(name) {
        return Ok((id.clone(), id));
    }
    let path = absolute(Path::new(name))?;
    match path.to_str() {
        Some(path) => Ok((path.to_owned(), id)),
        None => Err(Failure::Usage(format!("the path of the tape must be UTF-8, but {} is not", path.display()))),
    }
}

/// Formats the playback settings as lines of the backend's table.
fn play(args: &PlayArgs) -> Vec<(&'static str, String)> {
    let repeat = match args.repeat {
        RepeatMode::Refuse => "refuse",
        RepeatMode::Last => "last",
        RepeatMode::Cycle => "cycle",
    };
    let ignored: Vec<String> = args.ignore.iter().map(|path| quoted(path)).collect();
    let mut lines = vec![
        ("repeat", quoted(repeat)),
        ("speed", quoted(&args.speed)),
        ("ignore", format!("[{}]", ignored.join(", "))),
    ];
    lines.extend(args.backend.as_ref().map(|name| ("backend", quoted(name))));
    lines.extend(args.session.map(|session| ("session", session.to_string())));
    lines
}
