//! `signalbox tape verify`: checks that a tape is as it was recorded.

use super::step_counter::StepCounter;
use super::trust::{Trust, TrustedSigners};
use super::{find_tape, prove};
use crate::cli::{Global, VerifyArgs};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_control::table::harmless;
use signalbox_tape::moment;
use signalbox_tape::seal::{Anchors, SealReport, SealVerdict, UncoveredRows};
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

/// Maximum number of redacted entries in the text report.
const MAX_SHOWN: usize = 20;

pub(super) fn run(global: &Global, args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let mut signers = TrustedSigners::read(global, &args.pin)?;
    if let Some(proof) = &args.proof {
        return prove::verify(global, proof, &signers);
    }
    let mut tape = find_tape(global, &args.tape)?;
    let anchors = anchors(&args.anchor, &tape.info().id, &signers)?;
    if !args.anchor.is_empty() {
        signers = signers.anchored_by(anchors.signers());
    }
    let mut progress = StepCounter::new("verified", global.json);
    let report = tape.verify_against(anchors, || progress.step());
    progress.done();
    let trust = signers.worst(report.signers.iter().map(|signer| (&signer.key, signer.at)));
    let (word, code) = outcome(&report, trust);
    let text = match global.json {
        true => format!("{}\n", as_json(&tape.info().id, &report, word, code, trust)),
        false => as_text(&tape.info().id, &report, trust),
    };
    output::in_form(global.json, &text)?;
    Ok(ExitCode::from(code))
}

/// Reads the signed heads of this tape from these files, by the key that signed the first one. The key set beside the
/// tape must not decide this: it can be changed with the tape.
fn anchors(files: &[PathBuf], tape: &str, signers: &TrustedSigners) -> Result<Anchors, Failure> {
    let mut anchors = Anchors::default();
    for path in files {
        let file = File::open(path).map_err(|error| Failure::File { path: path.clone(), error })?;
        let read = anchors.read_more(BufReader::new(file), tape, |key| signers.may_anchor(key));
        read.map_err(|error| Failure::Refused(format!("{}: {error}", path.display())))?;
    }
    if !files.is_empty() && anchors.is_empty() {
        output::say(format_args!("none of the anchors is of the tape {}", harmless(tape)));
    }
    if anchors.left_out() > 0 {
        let keys: Vec<String> = anchors.strangers().iter().map(|key| harmless(key.id())).collect();
        output::say(format_args!(
            "{} of the anchors of the tape are left out: they are signed with other keys ({}) than the one that was pinned \
             or signed the first",
            anchors.left_out(),
            keys.join(", ")
        ));
    }
    Ok(anchors)
}

/// Returns the word for the outcome, and the exit code.
fn outcome(report: &SealReport, trust: Trust) -> (&'static str, u8) {
    match (report.verdict, trust) {
        (SealVerdict::Broken, _) => ("broken", 1),
        (SealVerdict::NeverSealed, _) => ("never_sealed", 5),
        (_, Trust::Unknown) => ("signer_unknown", 3),
        (SealVerdict::NeverClosed, _) => ("never_closed", 4),
        (SealVerdict::ClosedWithGaps, _) => ("closed_with_gaps", 6),
        (SealVerdict::Valid, _) => ("valid", 0),
    }
}

fn as_json(tape: &str, report: &SealReport, word: &str, code: u8, trust: Trust) -> Value {
    let signers: Vec<Value> = report
        .signers
        .iter()
        .map(|signer| json!({"key_id": signer.key.id(), "public_key": signer.key.to_hex(), "at": signer.at}))
        .collect();
    let redacted: Vec<Value> =
        report.redacted.iter().map(|one| json!({"entry": one.entry, "paths": one.paths})).collect();
    let fault = report.fault.as_ref();
    json!({
        "tape": tape,
        "outcome": word,
        "exit_code": code,
        "entries": report.entries,
        "last_entry": report.last,
        "signed_up_to": report.signed_up_to,
        "pruned_up_to": report.pruned_up_to,
        "anchored_up_to": report.anchored_up_to,
        "closed": matches!(report.verdict, SealVerdict::Valid | SealVerdict::ClosedWithGaps),
        "missing_facts": report.missing,
        "trust": trust.word(),
        "signers": signers,
        "redacted": redacted,
        "uncovered": {"sessions": report.uncovered.sessions, "exchanges": report.uncovered.exchanges},
        "fault": fault.map(|fault| json!({"entry": fault.entry, "kind": fault.kind.word(), "why": fault.why})),
    })
}

fn as_text(tape: &str, report: &SealReport, trust: Trust) -> String {
    let mut out = String::new();
    let (entries, last, signed) = (report.entries, report.last, report.signed_up_to);
    let tape = harmless(tape);
    // Writing to a string cannot fail.
    let _ = match report.verdict {
        SealVerdict::NeverSealed => writeln!(out, "tape {tape} was never sealed: nothing shows whether it was changed"),
        SealVerdict::Broken => broken(&mut out, &tape, report),
        SealVerdict::NeverClosed => writeln!(
            out,
            "tape {tape} is intact up to entry {last} and was never closed: its process is still running or was killed, or \
             the end of the tape was cut off\n\
             signatures cover it up to entry {signed}; what follows is linked to that, but anybody could have written it"
        ),
        SealVerdict::ClosedWithGaps => writeln!(
            out,
            "tape {tape} is INCOMPLETE: the {entries} entries on it are as they were recorded and it was closed after entry \
             {last}, but not everything that happened could be recorded"
        ),
        SealVerdict::Valid => {
            writeln!(out, "tape {tape} is as it was recorded: {entries} entries, closed after entry {last}")
        }
    };
    if report.missing > 0 {
        let _ =
            writeln!(out, "{} facts are missing, as the tape itself says: see `signalbox tape show`", report.missing);
    }
    if report.pruned_up_to > 0 {
        let _ = writeln!(out, "entries up to {} were pruned, as a signature says", report.pruned_up_to);
    }
    let UncoveredRows { sessions, exchanges } = report.uncovered;
    if sessions + exchanges > 0 {
        let _ = writeln!(
            out,
            "{sessions} sessions and {exchanges} exchanges began before that: nothing shows whether what is listed of them \
             was changed"
        );
    }
    if let Some(anchored) = report.anchored_up_to {
        let _ = writeln!(out, "it agrees with what was anchored elsewhere, up to entry {anchored}");
    }
    redacted(&mut out, report);
    if report.verdict != SealVerdict::NeverSealed {
        signers(&mut out, report, trust);
    }
    out
}

fn broken(out: &mut String, tape: &str, report: &SealReport) -> std::fmt::Result {
    let Some(fault) = &report.fault else { return writeln!(out, "tape {tape} is BROKEN") };
    let (kind, why) = (fault.kind.word(), harmless(&fault.why));
    match fault.entry {
        Some(entry) => writeln!(out, "tape {tape} is BROKEN at entry {entry} ({kind}): {why}")?,
        None => writeln!(out, "tape {tape} is BROKEN ({kind}): {why}")?,
    }
    writeln!(
        out,
        "{} entries before that are linked as they were recorded, up to entry {}",
        report.entries, report.last
    )
}

fn redacted(out: &mut String, report: &SealReport) {
    for one in report.redacted.iter().take(MAX_SHOWN) {
        let paths = if one.paths.is_empty() { "the whole message".to_owned() } else { one.paths.join(", ") };
        let _ = writeln!(out, "entry {}: removed since it was recorded: {}", one.entry, harmless(&paths));
    }
    let more = report.redacted.len().saturating_sub(MAX_SHOWN);
    if more > 0 {
        let _ = writeln!(out, "and {more} more entries of which something was removed");
    }
}

fn signers(out: &mut String, report: &SealReport, trust: Trust) {
    for signer in &report.signers {
        let _ =
            writeln!(out, "signed with the key {}, last on {}", harmless(signer.key.id()), moment::shown(signer.at));
    }
    if let Some(note) = trust.note() {
        let _ = writeln!(out, "{note}");
    }
}
