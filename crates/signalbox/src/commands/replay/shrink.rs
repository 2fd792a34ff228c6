//! `signalbox replay shrink`: finds the fewest calls of a tape that still fail.

use super::super::tape::read_tape;
use super::absolute;
use super::trial::{Tape, Trial};
use crate::cli::{Global, ReplayShrinkArgs};
use crate::failure::Failure;
use crate::output;
use signalbox_engine::record::{Content, Entry, TapeInfo};
use signalbox_replay::RecordedCall;
use signalbox_replay::run::{ReplayVerdict, RunReport, is_handshake};
use signalbox_replay::shrink::Shrinker;
use signalbox_tape::TapeFileWriter;
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::ExitCode;
use std::sync::Arc;

/// File mode of tapes: readable by the owner only.
const PRIVATE: u32 = 0o600;

/// Shrinks the tape, and writes the remaining calls to a new tape.
pub(super) async fn run(global: &Global, args: &ReplayShrinkArgs) -> Result<ExitCode, Failure> {
    let tape = Tape::read(&mut read_tape(global, &args.tape, "replay shrink")?, args.trial.session)?;
    let trial = Trial::new(global, &args.trial, &args.command, &tape, None)?;
    let (report, _) = trial.run(&tape.calls).await?;
    let Some(symptom) = Symptom::of(&report) else {
        output::say("signalbox: the tape does not fail against this server, so there is nothing to shrink");
        return Ok(ExitCode::FAILURE);
    };
    // Calls after the failure cannot have caused it.
    let before = tape.calls.iter().filter(|call| call.seq <= symptom.seq).cloned();
    let (handshakes, calls): (Vec<_>, Vec<_>) = before.partition(|call| is_handshake(&call.method));
    let mut shrinker = Shrinker::new(calls.len());
    while let Some(candidate) = shrinker.candidate() {
        let part = candidate.iter().filter_map(|index| calls.get(*index));
        let mut part: Vec<_> = handshakes.iter().chain(part).cloned().collect();
        part.sort_by_key(|call| call.seq);
        let (report, _) = trial.run(&part).await?;
        shrinker.tried(symptom.shows_in(&report));
    }
    let kept: Vec<_> = shrinker.kept().iter().filter_map(|index| calls.get(*index).cloned()).collect();
    write(global, args, &kept)?;
    let (all, tries) = (tape.calls.len(), shrinker.tries() + 1);
    let (of, runs) = (output::counted(all as u64, "call"), output::counted(tries as u64, "run"));
    let are = if kept.len() == 1 { "is" } else { "are" };
    output::result(&format!("{} of {of} {are} needed, found in {runs}:\n", kept.len()))?;
    kept.iter().try_for_each(|call| {
        let subject = call.subject.as_deref().map_or_else(String::new, |subject| format!(" {subject}"));
        let line = format!("  call {}: {}{subject}\n", call.number, call.method);
        output::result(&line)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// First failure of a run. Identifies the same failure in a shorter run.
struct Symptom {
    seq: u64,
    number: u64,
    pointers: HashSet<String>,
    word: &'static str,
}

impl Symptom {
    fn of(report: &RunReport) -> Option<Self> {
        let first = report.failures().next()?;
        Some(Self {
            seq: first.seq,
            number: first.number,
            pointers: pointers(&first.verdict),
            word: first.verdict.word(),
        })
    }

    /// Returns `true` if the same call fails in the same way, at a JSON pointer that differed before too.
    fn shows_in(&self, report: &RunReport) -> bool {
        report.failures().any(|call| {
            let here = pointers(&call.verdict);
            call.number == self.number
                && call.verdict.word() == self.word
                && (here.is_empty() || here.iter().any(|pointer| self.pointers.contains(pointer)))
        })
    }
}

fn pointers(verdict: &ReplayVerdict) -> HashSet<String> {
    match verdict {
        ReplayVerdict::Different(differences) => differences.list.iter().map(|one| one.pointer.clone()).collect(),
        _ => HashSet::new(),
    }
}

/// Writes a tape with the entries of these calls, of handshakes, which every client needs, and of everything that
/// belongs to no call.
fn write(global: &Global, args: &ReplayShrinkArgs, kept: &[Arc<RecordedCall>]) -> Result<(), Failure> {
    let path = absolute(&args.output)?;
    let mut source = read_tape(global, &args.tape, "replay shrink")?;
    let (info, sessions) = (source.info().clone(), source.sessions()?);
    let numbers: HashSet<u64> = kept.iter().map(|call| call.number).collect();
    let parent = Some(info.id.clone());
    if info.seal.is_some() {
        output::say("the seal does not carry over: a part of a tape is not the tape that was sealed");
    }
    let info = TapeInfo { id: format!("{}-shrunk", info.id), parent, seal: None, ..info };
    let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&path);
    let file = file.map_err(|error| Failure::File { path, error })?;
    let ended = info.ended;
    let mut writer = TapeFileWriter::new(file, &info, &sessions)?;
    for entry in source.entries(None) {
        let entry = entry?;
        if wants(&entry, &numbers) {
            writer.push(&Entry { seal: None, ..entry })?;
        }
    }
    writer.finish(ended)?;
    Ok(())
}

fn wants(entry: &Entry, numbers: &HashSet<u64>) -> bool {
    match entry.exchange {
        Some(number) if numbers.contains(&number) => true,
        Some(_) => match &entry.content {
            Content::Message(message) => message.method.as_deref().is_some_and(is_handshake),
            Content::Finished(finished) => is_handshake(&finished.method),
            _ => false,
        },
        None => true,
    }
}
