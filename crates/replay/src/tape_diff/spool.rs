//! Stores messages in an unnamed temporary file, which the system deletes when the process ends.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};

/// Position of a message in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    at: u64,
    length: u32,
}

/// Temporary file. All writes must precede the first read.
#[derive(Debug)]
pub(super) struct Spool {
    file: BufWriter<File>,
    end: u64,
}

impl Spool {
    pub fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(64 << 10, tempfile::tempfile()?), end: 0 })
    }

    pub fn put(&mut self, bytes: &[u8]) -> io::Result<Place> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.file.write_all(bytes)?;
        let at = self.end;
        self.end += u64::from(length);
        Ok(Place { at, length })
    }

    pub fn get(&mut self, place: Place) -> io::Result<Vec<u8>> {
        self.file.flush()?;
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(place.at))?;
        let mut bytes = vec![0; place.length as usize];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
