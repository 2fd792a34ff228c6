//! `signalbox tape prove` and `tape verify --proof`: proves one entry of a sealed tape without the tape.

use super::entry_json::entry_json;
use super::read_tape;
use super::trust::{Trust, TrustedSigners};
use crate::cli::{Global, ProveArgs};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_control::table::harmless;
use signalbox_tape::moment;
use signalbox_tape::seal::{InclusionProof, MAX_PROOF, NoProof, ProofFault, ProvedEntry};
use signalbox_wire::printable;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

/// Writes the proof of one entry to a file or to standard output.
pub(super) fn run(global: &Global, args: &ProveArgs) -> Result<ExitCode, Failure> {
    let proof = read_tape(global, &args.tape, "tape prove")?.prove(args.entry).map_err(|error| match error {
        NoProof::Store(error) => Failure::Store(error),
        other => Failure::Refused(other.to_string()),
    })?;
    let text = proof.to_json().map_err(|error| Failure::Refused(error.to_string()))?;
    if args.output == Path::new("-") {
        output::exact(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let failed = |error| Failure::File { path: args.output.clone(), error };
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&args.output);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
    let (entry, signed) = (proof.entry().seq, proof.head().head.seq);
    output::say(format_args!("entry {entry} is proved by the signature at entry {signed}"));
    Ok(ExitCode::SUCCESS)
}

/// Verifies the proof in a file.
pub(super) fn verify(global: &Global, path: &Path, signers: &TrustedSigners) -> Result<ExitCode, Failure> {
    let proof = InclusionProof::from_json(&read(path)?)
        .map_err(|error| Failure::Refused(format!("{}: {error}", path.display())))?;
    let found = proof.verify();
    let trust = found
        .as_ref()
        .map_or(Trust::Unknown, |proved| signers.worst(proved.signers.iter().map(|(key, at)| (key, *at))));
    let (word, code) = match (&found, trust) {
        (Err(_), _) => ("broken", 1),
        (Ok(_), Trust::Unknown) => ("signer_unknown", 3),
        (Ok(_), _) => ("valid", 0),
    };
    let text = match global.json {
        true => format!("{}\n", as_json(&proof, &found, word, code, trust)),
        false => as_text(&proof, &found, trust),
    };
    output::in_form(global.json, &text)?;
    Ok(ExitCode::from(code))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_PROOF + 1).read_to_end(&mut text));
    read.map_err(|error| Failure::File { path: path.into(), error })?;
    if text.len() as u64 > MAX_PROOF {
        return Err(Failure::Refused(format!("{} is larger than any proof", path.display())));
    }
    Ok(text)
}

/// Returns the entry without its seal, which readers do not need.
fn entry_of(proof: &InclusionProof) -> Value {
    let mut entry = entry_json(proof.entry());
    if let Some(members) = entry.as_object_mut() {
        members.remove("seal");
    }
    entry
}

fn as_json(
    proof: &InclusionProof,
    found: &Result<ProvedEntry, ProofFault>,
    word: &str,
    code: u8,
    trust: Trust,
) -> Value {
    let proved = found.as_ref().ok();
    let signers: Vec<Value> = proved.map_or_else(Vec::new, |proved| {
        let signer = |(key, at): &(signalbox_seal::VerifyingKey, u64)| {
            json!({"key_id": key.id(), "public_key": key.to_hex(), "at": at})
        };
        proved.signers.iter().map(signer).collect()
    });
    json!({
        "tape": proof.tape().id,
        "outcome": word,
        "exit_code": code,
        "entry": entry_of(proof),
        "signed_at": proved.map(|proved| proved.signed_at),
        "trust": trust.word(),
        "signers": signers,
        "redacted": proved.map(|proved| &proved.removed),
        "fault": found.as_ref().err().map(ToString::to_string),
    })
}

fn as_text(proof: &InclusionProof, found: &Result<ProvedEntry, ProofFault>, trust: Trust) -> String {
    let (tape, entry) = (harmless(&proof.tape().id), proof.entry().seq);
    let proved = match found {
        Ok(proved) => proved,
        Err(fault) => {
            return format!("the proof of entry {entry} of tape {tape} is BROKEN: {}\n", harmless(&fault.to_string()));
        }
    };
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "entry {entry} is on the tape {tape} as it was recorded; the signature at entry {} covers it",
        proved.signed_at
    );
    if proved.removed_whole {
        let _ = writeln!(out, "its message was removed since it was recorded");
    }
    if !proved.removed.is_empty() {
        let _ = writeln!(out, "removed since it was recorded: {}", harmless(&proved.removed.join(", ")));
    }
    for (key, at) in &proved.signers {
        let _ = writeln!(out, "signed with the key {}, on {}", harmless(key.id()), moment::shown(*at));
    }
    if let Some(note) = trust.note() {
        let _ = writeln!(out, "{note}");
    }
    let shown = serde_json::to_string_pretty(&entry_of(proof)).unwrap_or_default();
    let _ = writeln!(out, "{}", printable::lines(&shown));
    out
}
