//! `signalbox tape verify`: checks that a tape is as it was recorded.

use super::progress::Progress;
use super::{config, find_tape};
use crate::cli::{Global, VerifyArgs};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_assembly::seal_folder::SealFolder;
use signalbox_control::table::harmless;
use signalbox_seal::{KeySet, Role, VerifyingKey};
use signalbox_tape::moment;
use signalbox_tape::seal::{Report, Signer, Verdict};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Most redacted entries that are shown to a person.
const MAX_SHOWN: usize = 20;

/// Whether a key that signed is one that may.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Trust {
    /// Somebody named it on the command line.
    Pinned,
    /// It is in the set of trusted keys beside the tape.
    Beside,
    /// Nobody knows it.
    Unknown,
}

impl Trust {
    fn word(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Beside => "trusted",
            Self::Unknown => "unknown",
        }
    }
}

/// Does it.
pub(super) fn run(global: &Global, args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let pins = args.pin.iter().map(|pin| Pin::read(pin)).collect::<Result<Vec<_>, _>>()?;
    let mut tape = find_tape(global, &args.tape)?;
    let mut progress = Progress::new("verified", global.json);
    let report = tape.verify(|| progress.step());
    progress.done();
    let keys =
        SealFolder::of(&config(global)?.data_dir).key_set().map_err(|error| Failure::Usage(error.to_string()))?;
    let trust = worst(&report, &pins, &keys);
    let (word, code) = outcome(&report, trust);
    let text = match global.json {
        true => format!("{}\n", as_json(&tape.info().id, &report, (word, code, trust))),
        false => as_text(&tape.info().id, &report, trust),
    };
    output::result(&text)?;
    Ok(ExitCode::from(code))
}

/// A key that somebody noted elsewhere.
enum Pin {
    Id(String),
    Key(VerifyingKey),
}

impl Pin {
    fn read(text: &str) -> Result<Self, Failure> {
        if text.starts_with("ed25519-") {
            return Ok(Self::Id(text.to_owned()));
        }
        VerifyingKey::from_hex(text).map(Self::Key).map_err(|_| {
            let why = "is neither the id of a key (ed25519-…) nor a public key of 64 hexadecimal digits";
            Failure::Usage(format!("`{}` {why}", harmless(text)))
        })
    }

    /// An id counts only as derived from the key: a tape may call its key by any other name.
    fn is(&self, key: &VerifyingKey) -> bool {
        match self {
            Self::Key(pinned) => pinned.as_bytes() == key.as_bytes(),
            Self::Id(id) => VerifyingKey::from_bytes(key.as_bytes()).is_ok_and(|derived| derived.id() == id),
        }
    }
}

fn trust_of(signer: &Signer, pins: &[Pin], keys: &KeySet) -> Trust {
    if pins.iter().any(|pin| pin.is(&signer.key)) {
        return Trust::Pinned;
    }
    let at = i64::try_from(signer.at / 1_000_000_000).unwrap_or(i64::MAX);
    let known = keys.trusted(signer.key.id(), &[Role::Recorder], at);
    let known = known.is_ok_and(|known| known.key.as_bytes() == signer.key.as_bytes());
    if pins.is_empty() && known { Trust::Beside } else { Trust::Unknown }
}

/// The trust in the signer that is trusted least.
fn worst(report: &Report, pins: &[Pin], keys: &KeySet) -> Trust {
    let trusts: Vec<Trust> = report.signers.iter().map(|signer| trust_of(signer, pins, keys)).collect();
    [Trust::Unknown, Trust::Beside].into_iter().find(|trust| trusts.contains(trust)).unwrap_or(Trust::Pinned)
}

/// The outcome in a word, and the exit code.
fn outcome(report: &Report, trust: Trust) -> (&'static str, u8) {
    match (report.verdict, trust) {
        (Verdict::Broken, _) => ("broken", 1),
        (Verdict::NeverSealed, _) => ("never_sealed", 5),
        (_, Trust::Unknown) => ("signer_unknown", 3),
        (Verdict::NeverClosed, _) => ("never_closed", 4),
        (Verdict::Valid, _) => ("valid", 0),
    }
}

fn as_json(tape: &str, report: &Report, (word, code, trust): (&str, u8, Trust)) -> Value {
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
        "closed": report.verdict == Verdict::Valid,
        "trust": trust.word(),
        "signers": signers,
        "redacted": redacted,
        "fault": fault.map(|fault| json!({"entry": fault.entry, "kind": fault.kind.word(), "why": fault.why})),
    })
}

fn as_text(tape: &str, report: &Report, trust: Trust) -> String {
    let mut out = String::new();
    let (entries, last, signed) = (report.entries, report.last, report.signed_up_to);
    let tape = harmless(tape);
    // Writing to a text cannot fail.
    let _ = match report.verdict {
        Verdict::NeverSealed => writeln!(out, "tape {tape} was never sealed: nothing shows whether it was changed"),
        Verdict::Broken => broken(&mut out, &tape, report),
        Verdict::NeverClosed => writeln!(
            out,
            "tape {tape} is intact up to entry {last} and was never closed: its process is still running or was killed, or \
             the end of the tape was cut off\n\
             signatures cover it up to entry {signed}; what follows is linked to that, but anybody could have written it"
        ),
        Verdict::Valid => {
            writeln!(out, "tape {tape} is as it was recorded: {entries} entries, closed after entry {last}")
        }
    };
    if report.pruned_up_to > 0 {
        let _ = writeln!(out, "entries up to {} were pruned, as a signature says", report.pruned_up_to);
    }
    redacted(&mut out, report);
    if report.verdict != Verdict::NeverSealed {
        signers(&mut out, report, trust);
    }
    out
}

fn broken(out: &mut String, tape: &str, report: &Report) -> std::fmt::Result {
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

fn redacted(out: &mut String, report: &Report) {
    for one in report.redacted.iter().take(MAX_SHOWN) {
        let paths = if one.paths.is_empty() { "the whole message".to_owned() } else { one.paths.join(", ") };
        let _ = writeln!(out, "entry {}: removed since it was recorded: {}", one.entry, harmless(&paths));
    }
    let more = report.redacted.len().saturating_sub(MAX_SHOWN);
    if more > 0 {
        let _ = writeln!(out, "and {more} more entries of which something was removed");
    }
}

fn signers(out: &mut String, report: &Report, trust: Trust) {
    for signer in &report.signers {
        let _ =
            writeln!(out, "signed with the key {}, last on {}", harmless(signer.key.id()), moment::shown(signer.at));
    }
    let note = match trust {
        Trust::Pinned => return,
        Trust::Beside => {
            "the key is kept beside the tapes: whoever can change them can sign, too; note the key elsewhere and pin it \
             with --pin"
        }
        Trust::Unknown => {
            "that key is not known here, or is not the one that was pinned: anybody could have made this tape"
        }
    };
    let _ = writeln!(out, "{note}");
}
