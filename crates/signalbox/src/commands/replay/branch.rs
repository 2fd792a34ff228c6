//! `signalbox replay branch`: continues differently from some call of a tape.

use super::super::tape::find_tape;
use super::absolute;
use super::serve::{Serving, tape};
use crate::ad_hoc::{Server, quoted};
use crate::cli::{Global, ReplayBranchArgs};
use crate::failure::Failure;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::ExitCode;

/// Serves the tape up to the call, then the server or the rest of the tape.
pub(super) fn run(global: &Global, args: &ReplayBranchArgs) -> Result<ExitCode, Failure> {
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    let server = match (&args.against, args.command.as_slice()) {
        (Some(url), _) => Some(Server::Url(url)),
        (None, []) => None,
        (None, command) => Some(Server::Command(command, &names)),
    };
    if server.is_none() && args.answer.is_none() {
        let text = "a branch needs another answer (`--answer JSON`) or a server that goes on (`--against URL`, or `-- COMMAND`)";
        return Err(Failure::Usage(text.to_owned()));
    }
    let (name, parent) = tape(global, &args.tape, "replay branch")?;
    let last = last_call(global, &args.tape)?;
    if args.at == 0 || args.at > last {
        let text = match last {
            0 => format!("{} has no calls, so there is no call {} to branch at", args.tape, args.at),
            1 => format!("{} has no call {}; its only call is 1", args.tape, args.at),
            _ => format!("{} has no call {}; its calls are 1 to {last}", args.tape, args.at),
        };
        return Err(Failure::Usage(text));
    }
    let mut play = Vec::new();
    if server.is_some() {
        play.extend([("until", args.at.to_string()), ("live", quoted("new"))]);
    }
    // Read together with the configuration, and removed when this command ends.
    let answers = args.answer.as_deref().map(|answer| answers(args.at, answer)).transpose()?;
    if let Some(path) = answers.as_ref().and_then(|file| file.path().to_str()) {
        play.push(("answers", quoted(path)));
    }
    let serving = Serving {
        name: None,
        tape: Some(name),
        server,
        play,
        rules: args.rules.as_deref(),
        seed: args.seed,
        records: true,
        file: args.tape_to.as_deref().map(absolute).transpose()?,
        parent: Some(parent),
        listen: args.listen,
        stdio: args.stdio,
    };
    serving.run(global)
}

/// Returns the number of the last call on a tape.
fn last_call(global: &Global, name: &str) -> Result<u64, Failure> {
    let mut last = 0;
    for entry in find_tape(global, name)?.entries(None) {
        last = last.max(entry?.exchange.unwrap_or_default());
    }
    Ok(last)
}

/// Writes the answer to the call to a temporary file. The answer is a result, or a message with a result or an error.
fn answers(call: u64, answer: &str) -> Result<tempfile::NamedTempFile, Failure> {
    let text = match answer.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(|error| Failure::File { path: file.into(), error })?,
        None => answer.to_owned(),
    };
    let told: Value =
        serde_json::from_str(&text).map_err(|error| Failure::Usage(format!("--answer must be JSON: {error}")))?;
    let message =
        if told.get("result").is_some() || told.get("error").is_some() { told } else { json!({"result": told}) };
    let write = || {
        let mut file = tempfile::Builder::new().suffix(".json").tempfile()?;
        file.write_all(json!({call.to_string(): message}).to_string().as_bytes())?;
        file.flush().map(|()| file)
    };
    write().map_err(Failure::Start)
}
