//! `signalbox tape`: the recorded tapes.

mod analysis;
mod diff;
mod diff_report;
mod entry_json;
mod export;
mod facets;
mod import;
mod keep;
mod keys;
mod last_tape;
mod lines;
mod named_tape;
mod prove;
mod prune;
mod redact;
mod running;
mod search;
mod search_filter;
mod session_id;
mod show;
mod stats;
mod step_counter;
#[cfg(test)]
mod tests;
mod trust;
mod unfinished;
mod verify;

use super::{administration, load, quiet_logs};
use crate::cli::{Global, TapeCommand};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_assembly::recording::StorePlace;
use signalbox_config::{Config, Overrides};
use signalbox_control::table;
use signalbox_engine::record::{Content, Query, TapeInfo, TapeStore};
use signalbox_tape::TapeFileError;
use signalbox_tape::moment;
use signalbox_tape::source::{TapeSource, is_file};
use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Maximum number of tapes that an audit record names for a search over all tapes.
const MAX_READ_TAPES: usize = 100;

pub(super) fn run(global: &Global, command: TapeCommand) -> Result<ExitCode, Failure> {
    let _logs = quiet_logs(global);
    match command {
        TapeCommand::List => list(global),
        TapeCommand::Show(args) => show::run(global, &args),
        TapeCommand::Search(args) => search::run(global, &args),
        TapeCommand::Stats { tape } => stats::run(global, tape.as_deref()),
        TapeCommand::Diff(args) => diff::run(global, &args),
        TapeCommand::Export(args) => export::run(global, &args),
        TapeCommand::Import { file, format } => import::run(global, &file, format),
        TapeCommand::Keep { which } => keep::run(global, &which),
        TapeCommand::Verify(args) => verify::run(global, &args),
        TapeCommand::Prove(args) => prove::run(global, &args),
        TapeCommand::Redact(args) => redact::run(global, &args),
        TapeCommand::Prune(args) => administration::tried(global, ("tape.prune", ""), prune::run(global, &args)),
        TapeCommand::Delete { tape, yes } => {
            administration::tried(global, ("tape.delete", &tape), prune::delete(global, &tape, yes))
        }
    }
}

fn config(global: &Global) -> Result<Config, Failure> {
    Ok(load(global, Overrides::default())?.config)
}

/// Opens the configured store of tapes. Fails if nothing was recorded yet.
fn store(global: &Global) -> Result<Arc<dyn TapeStore>, Failure> {
    let config = config(global)?;
    let place = StorePlace::of(&config.record, &config.data_dir);
    if let StorePlace::Sqlite(file) = &place
        && !file.exists()
    {
        return Err(Failure::NothingRecorded(config.data_dir));
    }
    Ok(place.open()?)
}

/// Opens a tape whose messages the command will show, send or try. The audit log has the reader and the command before
/// any of it is read. Files outside of the store are the reader's own, and are not logged.
pub(super) fn read_tape(global: &Global, name: &str, command: &str) -> Result<TapeSource, Failure> {
    let source = find_tape(global, name)?;
    if let TapeSource::Stored(_, tape) = &source {
        note_reading(global, &tape.id, command, None);
    }
    Ok(source)
}

/// Records that a command reads messages of a stored tape, or of `tapes` if it reads all of them.
fn note_reading(global: &Global, target: &str, command: &str, tapes: Option<&[TapeInfo]>) {
    let mut after = json!({"command": command});
    if let Some(tapes) = tapes {
        let ids: Vec<&str> = tapes.iter().rev().take(MAX_READ_TAPES).map(|tape| tape.id.as_str()).collect();
        after["tapes"] = json!({"count": tapes.len(), "newest": ids});
    }
    administration::note(global, ("tape.read", target), None, Some(after));
}

/// Opens a tape, by file name or id, for a command that shows none of its messages.
pub(super) fn find_tape(global: &Global, name: &str) -> Result<TapeSource, Failure> {
    if is_file(name) {
        let path = Path::new(name);
        return TapeSource::open(path).map_err(|error| unreadable(path, error));
    }
    let store = store(global)?;
    let tape = last_tape::find(global, &*store, name)?;
    Ok(TapeSource::Stored(store, tape))
}

/// Converts the error of a file that is not a tape. A file that `tape import` reads must be imported first.
fn unreadable(path: &Path, error: TapeFileError) -> Failure {
    match error {
        TapeFileError::Io(error) => Failure::File { path: path.into(), error },
        TapeFileError::NotATape if import::look(path).is_ok() => Failure::ImportFirst(path.into()),
        other => other.into(),
    }
}

fn list(global: &Global) -> Result<ExitCode, Failure> {
    let store = store(global)?;
    let tapes = store.tapes()?;
    let running = running::tapes(global)?;
    let (mut all, mut rows) = (Vec::new(), Vec::new());
    for (tape, entries) in &tapes {
        let missing = missing(&*store, &tape.id)?;
        if global.json {
            let mut told = head(tape, Some(*entries));
            told["state"] = state(tape, &running).into();
            told["missing_facts"] = missing.into();
            all.push(told);
        } else {
            rows.push(row(tape, *entries, missing, &running));
        }
    }
    if global.json {
        output::json(&Value::from(all))?;
    } else {
        output::result(&table::render(&["TAPE", "BY", "BEGAN", "STATE", "LASTED", "ENTRIES", "OF"], &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts the facts that could not be recorded. The gap that pruning leaves at the beginning does not count.
fn missing(store: &dyn TapeStore, tape: &str) -> Result<u64, Failure> {
    let gaps = store.gaps(tape)?;
    if gaps == 0 {
        return Ok(0);
    }
    let first = store.find(&Query { tape: Some(tape.to_owned()), limit: Some(1), ..Query::default() })?;
    let pruned = first.hits.first().map_or(0, |hit| match &hit.entry.content {
        Content::Gap(gap) if gap.reason == "pruned" => gap.facts,
        _ => 0,
    });
    Ok(gaps.saturating_sub(pruned))
}

/// Returns the state of a tape: being written, ended, or broken off.
fn state(tape: &TapeInfo, running: &HashSet<String>) -> &'static str {
    match tape.ended {
        Some(_) => "ended",
        None if running.contains(&tape.id) => "running",
        None => "killed",
    }
}

fn row(tape: &TapeInfo, entries: u64, missing: u64, running: &HashSet<String>) -> Vec<String> {
    let lasted = tape.ended.map_or_else(|| "-".to_owned(), |ended| moment::length(ended.saturating_sub(tape.started)));
    let (by, began) = (tape.kind.word().to_owned(), moment::shown(tape.started));
    let state = match (state(tape, running), missing) {
        (state, 0) => state.to_owned(),
        (state, missing) => format!("{state}, {missing} facts missing"),
    };
    vec![tape.id.clone(), by, began, state, lasted, entries.to_string(), tape.target.clone()]
}

/// Formats the metadata of a tape as JSON.
fn head(tape: &TapeInfo, entries: Option<u64>) -> Value {
    json!({
        "id": tape.id,
        "kind": tape.kind.word(),
        "target": tape.target,
        "started": tape.started,
        "ended": tape.ended,
        "program": tape.program,
        "redaction": tape.redaction,
        "sampling": tape.sampling,
        "parent": tape.parent,
        "entries": entries,
    })
}
