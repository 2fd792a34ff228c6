//! `signalbox tape import`: reads a tape file, or exported JSON lines, into the store.

use super::progress::Progress;
use super::{config, head};
use crate::cli::Global;
use crate::failure::Failure;
use crate::output;
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::recording::StorePlace;
use signalbox_control::table;
use signalbox_engine::record::{Entry, StoreError, TapeInfo};
use signalbox_tape::export::jsonl::Reader;
use signalbox_tape::{Select, TapeFile};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

/// Does it.
pub(super) fn run(global: &Global, path: &Path) -> Result<ExitCode, Failure> {
    let config = config(global)?;
    DataDir::prepare(&config.data_dir)?;
    let store = StorePlace::of(&config.record, &config.data_dir).open()?;
    let open = || File::open(path).map(BufReader::new).map_err(|error| Failure::File { path: path.into(), error });
    let mut progress = Progress::new("imported", global.json);
    let mut keep = |info: &TapeInfo, entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>| {
        store.import(info, &mut entries.inspect(|_| progress.step()))
    };
    let lines = path.extension().is_some_and(|end| end == "jsonl" || end == "ndjson");
    let (info, count, missing) = if lines {
        let reader = Reader::open(open()?)?;
        let info = reader.info().clone();
        let mut entries = reader.map(|entry| entry.map_err(|error| StoreError::Other(error.to_string())));
        let count = keep(&info, &mut entries)?;
        (info, count, None)
    } else {
        let mut file = TapeFile::open(open()?)?;
        let info = file.info().clone();
        let count = keep(&info, &mut file.entries(Select::default()).map(|entry| entry.map_err(StoreError::from)))?;
        let missing = file.missing().map(str::to_owned);
        (info, count, missing)
    };
    progress.done();
    if let Some(missing) = missing {
        output::say(format_args!("the file is incomplete: {}", table::harmless(&missing)));
    }
    let text = match global.json {
        true => head(&info, Some(count)).to_string(),
        false => format!("{}: {count} entries", table::harmless(&info.id)),
    };
    output::result(&format!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}
