//! `signalbox tape export`: writes a tape to a file in one of several formats.

use super::step_counter::StepCounter;
use super::{keys, read_tape};
use crate::cli::{ExportArgs, Format, Global};
use crate::failure::Failure;
use crate::output;
use signalbox_control::table;
use signalbox_engine::record::{Entry, SessionInfo, StoreError, TapeInfo};
use signalbox_tape::TapeFileWriter;
use signalbox_tape::export::{
    ExportError, ExportTarget, Source, curl, har, html, insomnia, is_url, jsonl, k6, otlp, playwright, postman, pytest,
    vitest,
};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn run(global: &Global, args: &ExportArgs) -> Result<ExitCode, Failure> {
    let mut source = read_tape(global, &args.tape, "tape export")?;
    let mut info = source.info().clone();
    let mut sessions = source.sessions()?;
    sessions.retain(|(number, _)| args.session.is_none_or(|wanted| wanted == *number));
    let format = match args.format {
        Some(format) => format,
        None => by_name(&args.output)?,
    };
    if let Some(url) = args.url.as_deref().filter(|url| !is_url(url)) {
        let why = format!(
            "`{}` is not an address for calls; give one that begins with http:// or https://",
            table::harmless(url)
        );
        return Err(Failure::Usage(why));
    }
    let target = ExportTarget::new(&info, args.url.clone(), args.tape.clone());
    let mut progress = StepCounter::new("exported", global.json);
    let mut decryptor = keys::decryptor(&args.key_file)?;
    // The seal covers the whole recorded tape, not a part of it and not decrypted messages.
    let other = args.session.is_some() || decryptor.is_some();
    if other && info.seal.take().is_some() {
        let why = match args.session {
            Some(_) => "a part of a tape is not the tape that was sealed",
            None => "decrypted messages are not those that were sealed",
        };
        output::say(format_args!(
            "the seal does not carry over: {why}; hand out the whole tape, a redacted copy (`tape redact`) or single entries \
             (`tape prove`) to prove something"
        ));
    }
    let mut decrypted = |entry: Entry| {
        let seal = if other { None } else { entry.seal.clone() };
        let entry = match &mut decryptor {
            Some(decryptor) => decryptor.entry(entry),
            None => entry,
        };
        Entry { seal, ..entry }
    };
    let mut entries = source.entries(args.session).inspect(|_| progress.step()).map(|entry| entry.map(&mut decrypted));
    if args.output == Path::new("-") {
        write(&info, &sessions, &mut entries, format, &target, io::stdout().lock())?;
        return Ok(ExitCode::SUCCESS);
    }
    // Write to a temporary name, so that a partial file is never taken for the whole.
    let beside = args.output.with_extension("part");
    let failed = |error| Failure::File { path: args.output.clone(), error };
    let file = create(&beside).map_err(failed)?;
    let written = write(&info, &sessions, &mut entries, format, &target, BufWriter::new(file));
    drop(entries);
    if let Err(error) = written {
        let _ = std::fs::remove_file(&beside);
        return Err(error.into());
    }
    std::fs::rename(&beside, &args.output).map_err(failed)?;
    progress.done();
    keys::tell(decryptor.as_ref());
    if let Some(missing) = source.missing() {
        output::say(format_args!("the tape is incomplete: {}", table::harmless(missing)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Creates the file for the current user only: arguments of tools are private.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// File name suffixes and their formats, the longer ones first.
const ENDS: [(&str, Format); 20] = [
    (".postman_collection.json", Format::Postman),
    (".postman.json", Format::Postman),
    (".insomnia.json", Format::Insomnia),
    (".k6.js", Format::K6),
    (".spec.js", Format::Playwright),
    (".spec.ts", Format::Playwright),
    (".spec.mjs", Format::Playwright),
    (".test.js", Format::Vitest),
    (".test.ts", Format::Vitest),
    (".test.mjs", Format::Vitest),
    (".tape", Format::Tape),
    (".jsonl", Format::Jsonl),
    (".ndjson", Format::Jsonl),
    (".har", Format::Har),
    (".otlp", Format::Otlp),
    (".json", Format::Otlp),
    (".html", Format::Html),
    (".htm", Format::Html),
    (".sh", Format::Curl),
    (".py", Format::Pytest),
];

/// Returns the format that a file name implies.
fn by_name(path: &Path) -> Result<Format, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let known = ENDS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| *format);
    known.ok_or_else(|| {
        Failure::Usage(format!(
            "`{}` does not show which format to write; name a file that ends in {}, or use --format",
            path.display(),
            ENDS.map(|(end, _)| end).join(", "),
        ))
    })
}

fn write(
    info: &TapeInfo,
    sessions: &[(u64, SessionInfo)],
    entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>,
    format: Format,
    target: &ExportTarget,
    to: impl Write,
) -> Result<(), ExportError> {
    let source = Source { info, sessions, entries };
    match format {
        Format::Tape => tape(source, to),
        Format::Jsonl => jsonl::write(source, to),
        Format::Har => har::write(source, to),
        Format::Otlp => otlp::write(source, to),
        Format::Html => html::write(source, html::Bounds::default(), to),
        Format::Curl => curl::write(source, target, to),
        Format::Postman => postman::write(source, target, to),
        Format::Insomnia => insomnia::write(source, target, to),
        Format::K6 => k6::write(source, target, to),
        Format::Playwright => playwright::write(source, target, to),
        Format::Pytest => pytest::write(source, target, to),
        Format::Vitest => vitest::write(source, target, to),
    }
}

fn tape(source: Source<'_>, to: impl Write) -> Result<(), ExportError> {
    let file = |error| ExportError::Store(StoreError::from(error));
    let mut writer = TapeFileWriter::new(to, source.info, source.sessions).map_err(file)?;
    for entry in source.entries {
        writer.push(&entry?).map_err(file)?;
    }
    writer.finish(source.info.ended).map_err(file)?.flush()?;
    Ok(())
}
