//! Tape file as the destination of a recorder.

use signalbox_engine::record::{Entry, StoreError, TapeInfo, TapeWriter};
use signalbox_tape::{TapeFileError, TapeFileWriter};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Mode of a file that only its owner may read.
const PRIVATE: u32 = 0o600;

/// Writes one tape into one file. A failed write ends the file: it is readable up to its last whole part, and later
/// entries count as missing.
#[derive(Debug)]
pub struct TapeToFile {
    file: Option<TapeFileWriter<File>>,
    handle: File,
    failed: Option<StoreError>,
}

impl TapeToFile {
    /// Creates a file, which must not exist yet.
    ///
    /// # Errors
    /// If the file cannot be created or written.
    pub fn create(path: &Path, info: &TapeInfo) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)?;
        let handle = file.try_clone()?;
        let file = TapeFileWriter::new(file, info, &[]).map_err(io::Error::other)?;
        Ok(Self { file: Some(file), handle, failed: None })
    }

    fn written(&mut self, outcome: Result<(), TapeFileError>) -> Result<(), StoreError> {
        let outcome = outcome.map_err(StoreError::from);
        if let Err(error) = &outcome {
            // The file may end in half a part, so nothing may follow it.
            self.failed = Some(error.clone());
            self.file = None;
        }
        outcome
    }
}

impl TapeWriter for TapeToFile {
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError> {
        let Some(file) = &mut self.file else {
            return Err(self.failed.clone().unwrap_or_else(|| StoreError::Other("the tape file has ended".to_owned())));
        };
        let mut outcome = entries.iter().try_for_each(|entry| file.push(entry)).and_then(|()| file.flush());
        if durable && outcome.is_ok() {
            outcome = self.handle.sync_data().map_err(TapeFileError::from);
        }
        self.written(outcome)
    }

    fn idle(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn end(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        if let Some(closing) = closing {
            file.close_seal(closing);
        }
        let outcome = file.finish(Some(at)).map(drop);
        self.written(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::record::{Content, TapeKind};
    use signalbox_tape::{Select, TapeFile};
    use std::os::unix::fs::PermissionsExt as _;

    fn info() -> TapeInfo {
        TapeInfo::new("t".to_owned(), TapeKind::Wrap, "x".to_owned(), 1)
    }

    fn entry(seq: u64) -> Entry {
        Entry { session: Some(1), ..Entry::new(seq, seq, "me".into(), Content::SessionEnded) }
    }

    /// Proves S-31.
    #[test]
    fn a_tape_file_is_private_never_overwritten_and_readable_while_it_grows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tape");
        let mut tape = TapeToFile::create(&path, &info()).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(TapeToFile::create(&path, &info()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let read = || TapeFile::open(File::open(&path).unwrap()).unwrap().entries(Select::default()).count();
        tape.append(&[entry(1), entry(2)], false).unwrap();
        assert_eq!(read(), 2);
        tape.append(&[entry(3)], true).unwrap();
        tape.end(9, None).unwrap();
        assert_eq!(read(), 3);
        let whole = TapeFile::open(File::open(&path).unwrap()).unwrap();
        assert_eq!((whole.missing(), whole.info().ended), (None, Some(9)));
        assert!(tape.append(&[entry(4)], false).is_err());
    }
}
