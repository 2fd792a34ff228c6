//! `signalbox audit`: searches, exports and verifies the audit log.

use super::{administration, load};
use crate::cli::{
    AuditCommand, AuditExportArgs, AuditFormat, AuditPlaceArgs, AuditQueryArgs, AuditSearchArgs, AuditVerifyArgs,
    Global,
};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_assembly::auditing::{AuditPlace, AuditReadError, journals};
use signalbox_assembly::seal_folder::SealFolder;
use signalbox_audit::{
    AuditFault, AuditRecord, AuditReport, AuditVerdict, AuditVerifier, SinkPlace, ends, export, files,
};
use signalbox_config::{Config, Overrides};
use signalbox_control::table;
use signalbox_wire::{printable, timestamp};
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

/// Exit code for an intact log that is not signed throughout. `tape verify` exits with the same code for a tape that
/// was not closed.
const UNPROVED: u8 = 4;
/// Exit code for a log that itself reports missing records, as `tape verify` has it for tapes.
const WITH_GAPS: u8 = 6;

pub(super) fn run(global: &Global, command: AuditCommand) -> Result<ExitCode, Failure> {
    let config = load(global, Overrides::default())?.config;
    let reads = |query: &AuditQueryArgs, word: &str| {
        if query.payloads {
            administration::note(global, ("audit.read", word), None, Some(json!({"payloads": true})));
        }
    };
    match &command {
        AuditCommand::Search(args) => reads(&args.query, "audit search"),
        AuditCommand::Export(args) => reads(&args.query, "audit export"),
        AuditCommand::Verify(_) => {}
    }
    match command {
        AuditCommand::Search(args) => search(global, &config, &args),
        AuditCommand::Verify(args) => verify(global, &config, &args),
        AuditCommand::Export(args) => export(&config, &args),
    }
}

/// Returns the place that records are read from, as configured.
fn place(config: &Config, args: &AuditPlaceArgs) -> Result<AuditPlace, Failure> {
    let found = if args.database { AuditPlace::database(config) } else { AuditPlace::of(config) };
    Ok(found.ok_or(AuditReadError::Nowhere)?)
}

/// Calls `each` with every record that matches, until it returns `false`.
fn each_record(
    config: &Config,
    args: &AuditQueryArgs,
    each: &mut dyn FnMut(&AuditRecord, &str) -> bool,
) -> Result<(), Failure> {
    let query = args.query();
    if args.place.files.is_empty() {
        return Ok(place(config, &args.place)?.search(&query, each)?);
    }
    for path in &args.place.files {
        let mut line = |_: u64, line: &str| match AuditRecord::read(line) {
            Ok(record) if query.fits(&record) => each(&record, line),
            _ => true,
        };
        files::lines(path, &mut line).map_err(|error| Failure::File { path: path.clone(), error })?;
    }
    Ok(())
}

fn search(global: &Global, config: &Config, args: &AuditSearchArgs) -> Result<ExitCode, Failure> {
    let mut found = VecDeque::new();
    each_record(config, &args.query, &mut |record, line| {
        if found.len() >= args.limit {
            found.pop_front();
        }
        if args.limit > 0 {
            let json = if global.json { record.shown(line, args.query.payloads) } else { String::new() };
            found.push_back((record.clone(), json));
        }
        true
    })?;
    if global.json {
        let all: Vec<&str> = found.iter().map(|(_, json)| json.as_str()).collect();
        output::json(&format!("[{}]", all.join(",")))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        output::result("no record fits\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for (record, _) in &found {
        let what = record.kind();
        let phase =
            record.detail("phase").or(record.detail("violation")).or(record.detail("action")).unwrap_or_default();
        let how = record.detail("status").or(record.detail("decision")).or(record.detail("reason")).unwrap_or_default();
        let at = timestamp::rfc3339_millis(record.at);
        let about = record.detail("tool").or(record.detail("method")).or(record.detail("target")).unwrap_or_default();
        let mut cells = vec![
            at.as_str(),
            what,
            phase,
            record.risk.word(),
            record.principal().unwrap_or_default(),
            about,
            record.detail("backend").unwrap_or_default(),
            how,
            record.correlation_id().unwrap_or_default(),
        ];
        if args.query.payloads {
            cells.push(record.arguments().unwrap_or_default());
        }
        rows.push(cells.into_iter().map(table::harmless).collect());
    }
    let mut head = vec!["TIME", "EVENT", "PHASE", "RISK", "PRINCIPAL", "ABOUT", "BACKEND", "HOW", "ID"];
    if args.query.payloads {
        head.push("ARGUMENTS");
    }
    output::result(&table::render(&head, &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn verify(global: &Global, config: &Config, args: &AuditVerifyArgs) -> Result<ExitCode, Failure> {
    let is_copy = !args.place.files.is_empty();
    let report = if is_copy { verify_files(config, args)? } else { place(config, &args.place)?.verify(config)? };
    let verdict = match report.verdict() {
        // An empty file is no proof of anything.
        AuditVerdict::Whole if is_copy && report.heads == 0 => AuditVerdict::Unproved,
        verdict => verdict,
    };
    if global.json {
        let told = |faults: &[AuditFault]| -> Vec<Value> {
            let one = |fault: &AuditFault| json!({"place": fault.place, "chain": fault.chain, "fault": fault.kind.to_string()});
            faults.iter().map(one).collect()
        };
        let told = json!({
            "ok": verdict == AuditVerdict::Whole,
            "verdict": word(verdict).replace(' ', "_"),
            "records": report.records,
            "chains": report.chains,
            "signatures": report.heads,
            "lost": report.lost,
            "lost_at_least": report.lost_at_least,
            "in_journal": report.waiting,
            "skipped": report.skipped,
            "elsewhere": report.elsewhere,
            "pruned": report.pruned,
            "unsigned": report.unsigned,
            "without_arguments": report.without_arguments,
            "not_noticed": unnoticed_json(&report, config, is_copy),
            "faults": told(&report.faults),
            "doubts": told(&report.doubts),
        });
        output::json(&told)?;
    } else {
        let text = words(&report, verdict);
        output::result(&format!("{text}not noticed: {}\n", unnoticed(&report, config, is_copy)))?;
    }
    Ok(match verdict {
        AuditVerdict::Whole => ExitCode::SUCCESS,
        AuditVerdict::WithGaps => ExitCode::from(WITH_GAPS),
        AuditVerdict::Broken => ExitCode::FAILURE,
        AuditVerdict::Unproved => ExitCode::from(UNPROVED),
    })
}

fn word(verdict: AuditVerdict) -> &'static str {
    match verdict {
        AuditVerdict::Whole => "whole",
        AuditVerdict::WithGaps => "with gaps",
        AuditVerdict::Unproved => "unproved",
        AuditVerdict::Broken => "not whole",
    }
}

/// Verifies copies by themselves: only the data folder knows how far the log came.
fn verify_files(config: &Config, args: &AuditVerifyArgs) -> Result<AuditReport, Failure> {
    let keys = SealFolder::of(&config.data_dir).key_set().map_err(AuditReadError::Keys)?;
    let mut verifier = AuditVerifier::new(&keys).of_sink("file");
    for path in &args.place.files {
        verifier.expect_place(place_of(config, args, path)?.as_ref());
        let mut line = |number: u64, line: &str| {
            verifier.line(&format!("{}:{number}", path.display()), line);
            true
        };
        files::lines(path, &mut line).map_err(|error| Failure::File { path: path.clone(), error })?;
    }
    Ok(verifier.finish())
}

/// Returns the place that a file was written to: the one named by the caller, or the file's own path if this gateway
/// ever wrote there.
fn place_of(config: &Config, args: &AuditVerifyArgs, path: &Path) -> Result<Option<SinkPlace>, Failure> {
    if let Some(name) = &args.of {
        return Ok(Some(SinkPlace::named_file(name)));
    }
    let folder = journals(&config.data_dir);
    let place = SinkPlace::file(&files::of_today(path), &folder);
    let known = ends::is_known(&folder, &place).map_err(|error| Failure::File { path: folder, error })?;
    Ok(known.then_some(place))
}

fn words(report: &AuditReport, verdict: AuditVerdict) -> String {
    let AuditReport { records, chains, heads, skipped, elsewhere, lost, pruned, unsigned, .. } = report;
    let AuditReport { without_arguments, faults, doubts, waiting, lost_at_least, .. } = report;
    let mut text = String::new();
    for fault in faults.iter().chain(doubts) {
        text.push_str(&format!("{fault}\n"));
    }
    let verdict = word(verdict);
    text.push_str(&format!("{verdict}: {records} records in {chains} chains, {heads} good signatures"));
    if *unsigned > 0 {
        text.push_str(&format!(", {unsigned} records behind the last one"));
    }
    if *lost > 0 {
        let at_least = if *lost_at_least { "at least " } else { "" };
        text.push_str(&format!(", {at_least}{lost} records could not be written"));
    }
    if *skipped > 0 {
        text.push_str(&format!(", {skipped} records in signed gaps"));
    }
    if *elsewhere > 0 {
        text.push_str(&format!(", {elsewhere} records were written to another place"));
    }
    if *pruned > 0 {
        text.push_str(&format!(", {pruned} records behind signed checkpoints"));
    }
    if *without_arguments > 0 {
        text.push_str(&format!(", {without_arguments} rows of audit_log without the arguments of their records"));
    }
    if *waiting > 0 {
        text.push_str(&format!(", {waiting} further records are in the journal and not yet in the log"));
    }
    text.push('\n');
    text
}

/// Describes the removals that no verification can detect, whatever the verdict.
fn unnoticed(report: &AuditReport, config: &Config, is_copy: bool) -> String {
    if is_copy {
        return "records behind the last signature of a chain, and chains of which the copy has nothing. The data folder \
            of the gateway tells more: run this there without `--file`"
            .to_owned();
    }
    let seal = &config.seal;
    format!(
        "a person who can write to the log and to the data folder can remove a whole chain, and the end of a chain back to \
         any signed head. Heads are signed after {} records or {} s; records behind the last ones now: {}. Only records \
         in a place that this person cannot reach tell of it (see docs/audit.md)",
        seal.head_every,
        seal.head_interval.as_secs_f64(),
        report.unsigned
    )
}

fn unnoticed_json(report: &AuditReport, config: &Config, is_copy: bool) -> Value {
    let mut told = json!({"text": unnoticed(report, config, is_copy), "behind_last_head": report.unsigned});
    // The gateway of a copy may have other settings.
    if let Some(members) = told.as_object_mut().filter(|_| !is_copy) {
        members.insert("head_every".to_owned(), config.seal.head_every.into());
        members.insert("head_interval_ms".to_owned(), json!(config.seal.head_interval.as_millis()));
    }
    told
}

fn export(config: &Config, args: &AuditExportArgs) -> Result<ExitCode, Failure> {
    let file = output::file(args.output.as_ref());
    let mut out: Box<dyn Write> = match file {
        Some(path) => {
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
            Box::new(file.map_err(|error| Failure::File { path: path.to_owned(), error })?)
        }
        None => Box::new(std::io::stdout().lock()),
    };
    // Programs get the lines byte for byte, so that they can verify them.
    let on_terminal = file.is_none() && std::io::stdout().is_terminal();
    let mut buffered = BufWriter::new(&mut out);
    let mut written = Ok(());
    if args.format == AuditFormat::Csv {
        written = buffered.write_all(export::csv_head().as_bytes());
    }
    each_record(config, &args.query, &mut |record, line| {
        let text = match (args.format, args.query.payloads || record.arguments().is_none()) {
            (AuditFormat::Csv, _) => export::csv_row(record),
            // Byte for byte, so that it can be verified.
            (AuditFormat::Jsonl, true) => format!("{line}\n"),
            (AuditFormat::Jsonl, false) => format!("{}\n", record.without_payloads()),
        };
        if written.is_ok() {
            written = buffered.write_all(if on_terminal { printable::json(&text) } else { text }.as_bytes());
        }
        written.is_ok()
    })?;
    written.and_then(|()| buffered.flush()).map_err(Failure::Output)?;
    Ok(ExitCode::SUCCESS)
}
