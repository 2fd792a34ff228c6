//! Reads a journal from one record on.

use super::{segment_path, segments};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

/// Size of the read buffer.
const BUFFER: usize = 64 << 10;
/// Typical size of a record. Few are longer.
const USUAL: usize = 1_024;

/// Record on its way to a sink.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalRecord {
    /// Number of the record; of a gap, the last one that is missing.
    pub seq: u64,
    /// Text of the record, without the line break.
    pub text: String,
}

/// Reads records in order.
#[derive(Debug)]
pub struct JournalReader {
    folder: PathBuf,
    /// Open segment, and the number of the next record in it.
    open: Option<(BufReader<File>, u64)>,
}

impl JournalReader {
    /// Creates a reader of this journal.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: None }
    }

    /// Returns the records from `next` to `upto`, at most `most` of them and not many more than `bytes` bytes.
    pub fn read(&mut self, next: u64, upto: u64, most: usize, bytes: usize) -> io::Result<Vec<JournalRecord>> {
        let (mut lines, mut size) = (Vec::new(), 0);
        while lines.len() < most && size < bytes {
            let seq = next + lines.len() as u64;
            if seq > upto {
                break;
            }
            match self.line(seq)? {
                Some(text) => {
                    size += text.len();
                    lines.push(JournalRecord { seq, text });
                }
                None => break,
            }
        }
        Ok(lines)
    }

    /// Returns the text of one record; none if it is not there.
    fn line(&mut self, seq: u64) -> io::Result<Option<String>> {
        // A segment ends where the next one begins, so a second attempt is enough.
        for _ in 0..2 {
            if self.open.as_ref().is_none_or(|(_, at)| *at > seq) {
                let Some(first) = segments(&self.folder)?.into_iter().rfind(|first| *first <= seq) else {
                    return Ok(None);
                };
                self.open =
                    Some((BufReader::with_capacity(BUFFER, File::open(segment_path(&self.folder, first))?), first));
            }
            while let Some((file, at)) = &mut self.open {
                let mut text = String::with_capacity(USUAL);
                if file.read_line(&mut text)? == 0 || !text.ends_with('\n') {
                    self.open = None;
                    break;
                }
                *at += 1;
                if *at > seq {
                    text.truncate(text.trim_end().len());
                    return Ok(Some(text));
                }
            }
        }
        Ok(None)
    }
}
