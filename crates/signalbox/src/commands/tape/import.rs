//! `signalbox tape import`: reads a tape file, exported JSON lines or a recording of another program into the store.

use super::step_counter::StepCounter;
use super::{config, head};
use crate::cli::{Global, ImportFormatArg};
use crate::failure::Failure;
use crate::output;
use bytes::Bytes;
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::recording::{StorePlace, redactor, session_hash, tape_id, unix_nanos};
use signalbox_config::Config;
use signalbox_control::table;
use signalbox_engine::record::{Entry, StoreError, TapeInfo, TapeKind};
use signalbox_tape::export::jsonl::Reader;
use signalbox_tape::import::{self, Entries, FileContent, ImportError, ImportFormat, LeftOut};
use signalbox_tape::recorder::Sampling;
use signalbox_tape::{Select, TapeFile};
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;
use std::process::ExitCode;

/// Bytes read first to detect the format. Large documents need more.
const LOOK: u64 = 1 << 20;
/// Maximum number of skipped items reported one by one.
const MAX_SAID: usize = 20;

pub(super) fn run(global: &Global, path: &Path, format: Option<ImportFormatArg>) -> Result<ExitCode, Failure> {
    let config = config(global)?;
    DataDir::prepare(&config.data_dir)?;
    let store = StorePlace::of(&config.record, &config.data_dir).open()?;
    let mut progress = StepCounter::new("imported", global.json);
    let mut keep = |info: &TapeInfo, entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>| {
        store.import(info, &mut entries.inspect(|_| progress.step()))
    };
    let content = match format {
        Some(format) => named(format),
        None => look(path)?,
    };
    let mut left_out = Vec::new();
    let (info, count, missing) = match content {
        FileContent::Jsonl => {
            let reader = Reader::open(open(path)?)?;
            let info = reader.info().clone();
            let mut entries = reader.map(|entry| entry.map_err(|error| StoreError::Other(error.to_string())));
            let count = keep(&info, &mut entries)?;
            (info, count, None)
        }
        FileContent::Tape => {
            let mut file = TapeFile::open(open(path)?)?;
            let info = file.info().clone();
            let count = keep(&info, &mut file.entries(Select::default()).map(|entry| entry.map_err(StoreError::from)))?;
            let missing = file.missing().map(str::to_owned);
            (info, count, missing)
        }
        FileContent::Other(format) => {
            let (info, entries, omitted) = foreign(&config, path, format)?;
            let count = keep(&info, &mut entries.map(Ok))?;
            left_out = omitted;
            (info, count, None)
        }
    };
    progress.done();
    if let Some(missing) = missing {
        output::say(format_args!("the file is incomplete: {}", table::harmless(&missing)));
    }
    say_left_out(&left_out);
    let text = match global.json {
        true => head(&info, Some(count)).to_string(),
        false => format!("{}: {count} entries", table::harmless(&info.id)),
    };
    output::in_form(global.json, &format!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    File::open(path).map(BufReader::new).map_err(|error| Failure::File { path: path.into(), error })
}

fn named(format: ImportFormatArg) -> FileContent {
    FileContent::Other(match format {
        ImportFormatArg::Tape => return FileContent::Tape,
        ImportFormatArg::Jsonl => return FileContent::Jsonl,
        ImportFormatArg::Har => ImportFormat::Har,
        ImportFormatArg::Pcap => ImportFormat::Pcap,
        ImportFormatArg::Messages => ImportFormat::Messages,
        ImportFormatArg::Mcporter => ImportFormat::Mcporter,
        ImportFormatArg::McpRec => ImportFormat::McpRec,
        ImportFormatArg::McpRecorder => ImportFormat::McpRecorder,
        ImportFormatArg::Mcpsnoop => ImportFormat::Mcpsnoop,
    })
}

/// Detects the format by content, and failing that by the file extension.
pub(super) fn look(path: &Path) -> Result<FileContent, Failure> {
    let mut content = FileContent::of(&bytes(path, LOOK)?);
    if content.is_err() {
        content = FileContent::of(&bytes(path, import::MAX_FILE)?);
    }
    let by_name = match path.extension().and_then(|end| end.to_str()) {
        Some("tape") => Some(FileContent::Tape),
        Some("har") => Some(FileContent::Other(ImportFormat::Har)),
        _ => None,
    };
    content.or_else(|error| by_name.ok_or(error)).map_err(|error| unreadable(path, error))
}

fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(most).read_to_end(&mut bytes);
    read.map_err(|error| Failure::File { path: path.into(), error })?;
    Ok(bytes)
}

fn unreadable(path: &Path, error: ImportError) -> Failure {
    Failure::Import { path: path.into(), error }
}

fn say_left_out(all: &[LeftOut]) {
    for one in all.iter().take(MAX_SAID) {
        output::say(format_args!("{}", table::harmless(&one.to_string())));
    }
    if let Some(more) = all.len().checked_sub(MAX_SAID).filter(|more| *more > 0) {
        output::say(format_args!("{more} more of what could not be read were left out"));
    }
}

/// Metadata of a tape, its entries, and the items that could not be read.
type Foreign = (TapeInfo, Entries, Vec<LeftOut>);

/// Reads a recording of another program, and creates the metadata of a tape for it.
fn foreign(config: &Config, path: &Path, format: ImportFormat) -> Result<Foreign, Failure> {
    let file = Bytes::from(bytes(path, import::MAX_FILE + 1)?);
    let mut recording = import::read(&file, format).map_err(|error| unreadable(path, error))?;
    let left_out = std::mem::take(&mut recording.left_out);
    let redactor = redactor(&config.record.redaction)?;
    let (started, ended) = recording.times().unwrap_or_else(|| (unix_nanos(), unix_nanos()));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let info = TapeInfo {
        ended: Some(ended),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        redaction: redactor.describe(),
        sampling: Sampling::All.words(),
        ..TapeInfo::new(
            tape_id().map_err(Failure::Start)?,
            TapeKind::Import,
            format!("{}: {name}", format.word()),
            started,
        )
    };
    let hash = session_hash(&config.data_dir).map_err(Failure::Start)?;
    Ok((info, Entries::new(recording, redactor, Some(&hash), started), left_out))
}
