//! Opens a stored tape or a tape file. A file is imported into a temporary store, so that every query on stored tapes
//! works on files.

use super::step_counter::StepCounter;
use super::{last_tape, note_reading, store, unreadable};
use crate::cli::Global;
use crate::failure::Failure;
use crate::output;
use signalbox_assembly::recording::StorePlace;
use signalbox_control::table;
use signalbox_engine::record::{StoreError, TapeInfo, TapeStore};
use signalbox_tape::source::is_file;
use signalbox_tape::{Select, TapeFile};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// A store, with the tape that the user named.
pub struct NamedTape {
    /// Store that has the tape.
    pub store: Arc<dyn TapeStore>,
    /// Tape that was named; `None` means all tapes.
    pub tape: Option<TapeInfo>,
    /// Folder of the temporary store for a file. Private to its owner, and removed on drop.
    folder: Option<TempDir>,
}

impl NamedTape {
    /// Finds a tape by file name or id. Without a name, selects all tapes.
    pub fn find(global: &Global, name: Option<&str>) -> Result<Self, Failure> {
        if let Some(path) = name.filter(|name| is_file(name)) {
            return Self::of_file(global, Path::new(path));
        }
        let store = store(global)?;
        let tape = name.map(|name| last_tape::find(global, &*store, name)).transpose()?;
        Ok(Self { store, tape, folder: None })
    }

    fn of_file(global: &Global, path: &Path) -> Result<Self, Failure> {
        let here = |error| Failure::File { path: path.into(), error };
        let file = BufReader::new(File::open(path).map_err(here)?);
        let mut file = TapeFile::open(file).map_err(|error| unreadable(path, error))?;
        let folder = tempfile::Builder::new().prefix("signalbox-").tempdir();
        let folder = folder.map_err(|error| Failure::File { path: std::env::temp_dir(), error })?;
        let store = StorePlace::Sqlite(folder.path().join("file.db")).open()?;
        let info = file.info().clone();
        let mut progress = StepCounter::new("read", global.json);
        let entries = file.entries(Select::default()).map(|entry| entry.map_err(StoreError::from));
        store.import(&info, &mut entries.inspect(|_| progress.step()))?;
        progress.done();
        if let Some(missing) = file.missing() {
            output::say(format_args!("the file is incomplete: {}", table::harmless(missing)));
        }
        Ok(Self { store, tape: Some(info), folder: Some(folder) })
    }

    /// Records in the audit log that a command reads the messages of this tape, or of all.
    pub fn note_reading(&self, global: &Global, command: &str) -> Result<(), Failure> {
        match (&self.tape, &self.folder) {
            (_, Some(_)) => {}
            (Some(tape), None) => note_reading(global, &tape.id, command, None),
            (None, None) => note_reading(global, "*", command, Some(&self.tapes()?)),
        }
        Ok(())
    }

    /// Returns the tape, or all of them, oldest first.
    pub fn tapes(&self) -> Result<Vec<TapeInfo>, Failure> {
        if let Some(tape) = &self.tape {
            return Ok(vec![tape.clone()]);
        }
        let mut tapes: Vec<TapeInfo> = self.store.tapes()?.into_iter().map(|(tape, _)| tape).collect();
        tapes.sort_by_key(|tape| tape.started);
        Ok(tapes)
    }
}
