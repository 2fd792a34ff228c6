//! `signalbox tape redact`: copies a sealed tape without some values. The copy still proves the rest.

use super::read_tape;
use super::step_counter::StepCounter;
use crate::cli::{Global, RedactArgs};
use crate::failure::Failure;
use crate::output;
use serde_json::Value;
use signalbox_engine::record::{StoreError, TapeInfo};
use signalbox_replay::Paths;
use signalbox_tape::seal::{SealVerdict, SealedRedaction};
use signalbox_tape::{TapeFileWriter, TapeSource};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::ExitCode;

/// Text that replaces a removed value.
const REMOVED: &str = "[redacted]";

pub(super) fn run(global: &Global, args: &RedactArgs) -> Result<ExitCode, Failure> {
    let paths = Paths::parse(&args.path).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut tape = read_tape(global, &args.tape, "tape redact")?;
    // The copy of a broken tape is broken too, and a reader could not tell which of the two was changed.
    if tape.verify(|| ()).verdict == SealVerdict::Broken {
        let why = format!("the tape is broken: see `signalbox tape verify {}`", args.tape);
        return Err(Failure::Refused(why));
    }
    let (redaction, info) = SealedRedaction::new(tape.info()).map_err(|error| Failure::Refused(error.to_string()))?;
    let beside = args.output.with_extension("part");
    let failed = |error| Failure::File { path: args.output.clone(), error };
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside).map_err(failed)?;
    let written = write(global, &mut tape, &info, redaction, &paths, file);
    let (values, entries) = match written {
        Ok(removed) => removed,
        Err(error) => {
            let _ = std::fs::remove_file(&beside);
            return Err(error);
        }
    };
    std::fs::rename(&beside, &args.output).map_err(failed)?;
    output::say(format_args!("removed {values} values; {entries} entries are redacted"));
    Ok(ExitCode::SUCCESS)
}

fn write(
    global: &Global,
    tape: &mut TapeSource,
    info: &TapeInfo,
    mut redaction: SealedRedaction,
    paths: &Paths,
    file: File,
) -> Result<(u64, u64), Failure> {
    let sessions = tape.sessions()?;
    let mut writer = TapeFileWriter::new(BufWriter::new(file), info, &sessions)?;
    let mut progress = StepCounter::new("copied", global.json);
    let covers = |pointer: &str| {
        let names: Vec<String> =
            pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
        paths.covers(&names)
    };
    let is_left = |body: &[u8]| serde_json::from_slice(body).is_ok_and(|body| is_left(&body, &mut vec![], paths));
    for entry in tape.entries(None) {
        progress.step();
        let copied = redaction.entry(entry?, &covers, &is_left);
        writer.push(&copied.map_err(|error| Failure::Refused(error.to_string()))?)?;
    }
    progress.done();
    let mut file = writer.finish(info.ended)?;
    file.flush().map_err(|error| Failure::Store(StoreError::Other(error.to_string())))?;
    Ok(redaction.removed())
}

/// Returns `true` if a value to remove is still there, because it was not sealed as a value of its own.
fn is_left(value: &Value, place: &mut Vec<String>, paths: &Paths) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| within(name.clone(), value, place, paths)),
        Value::Array(items) => {
            items.iter().enumerate().any(|(index, value)| within(index.to_string(), value, place, paths))
        }
        Value::String(text) if text == REMOVED => false,
        _ => paths.covers(place),
    }
}

fn within(name: String, value: &Value, place: &mut Vec<String>, paths: &Paths) -> bool {
    place.push(name);
    let left = is_left(value, place, paths);
    place.pop();
    left
}
