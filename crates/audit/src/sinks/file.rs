//! The file sink: one record a line, and a new file every day.

use super::{JournalRecord, Sink, SinkError};
use crate::files;
use crate::log::unix_ms;
use crate::place::SinkPlace;
use crate::pruning::Pruner;
use crate::record::AuditRecord;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

/// Number of bytes at the end of a file that are searched for the last record of a chain.
const TAIL: u64 = 4 << 20;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// Appends records to a file.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    place: SinkPlace,
    retention_days: u64,
    pruner: Pruner,
    fsync: bool,
    /// Open file, and the day of its records.
    open: Option<(File, u64)>,
    /// Last record of the chain in the file when it was first opened.
    had: Option<u64>,
    /// Day of the last deletion of old files.
    pruned: Option<u64>,
    now: fn() -> u64,
}

impl FileSink {
    /// Creates a sink for this file. Files of earlier days are kept for `retention_days`.
    #[must_use]
    pub fn new(path: PathBuf, retention_days: u64, pruner: Pruner, fsync: bool) -> Self {
        let place = pruner.file_place(&path);
        Self { path, place, retention_days, pruner, fsync, open: None, had: None, pruned: None, now: unix_ms }
    }

    /// Returns the file of today, locked, because another process may write to it as well.
    fn ready(&mut self) -> io::Result<&File> {
        let today = (self.now)() / DAY_MS;
        // Another process may have replaced the file.
        let same = |file: &File| -> io::Result<bool> {
            let (own, there) = (file.metadata()?, std::fs::metadata(&self.path));
            Ok(there.is_ok_and(|there| there.ino() == own.ino() && there.dev() == own.dev()))
        };
        let current = match &self.open {
            Some((file, day)) => *day == today && same(file)?,
            None => false,
        };
        if !current {
            self.open = None;
            if let Some(folder) = self.path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            files::rotate(&self.path, today)?;
            // Prune once a day: a file that is reopened after each failure must not be reported each time.
            if self.pruned != Some(today) {
                self.pruner.prune_files(&self.path, today.saturating_sub(self.retention_days))?;
                self.pruned = Some(today);
            }
            let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path)?;
            self.open = Some((file, today));
        }
        match &self.open {
            Some((file, _)) => Ok(file),
            None => Err(io::Error::other("there is no file")),
        }
    }

    /// Returns the last record of this chain in the file, so that records whose position a crash lost are not written
    /// twice.
    fn last_in(file: &File, chain: &str) -> io::Result<u64> {
        let mut file = file;
        let length = file.metadata()?.len();
        if !file.metadata()?.is_file() {
            return Ok(0);
        }
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail)?;
        let tail = String::from_utf8_lossy(&tail);
        let of_chain = |line: &str| AuditRecord::read(line).ok().filter(|record| record.chain == chain);
        Ok(tail.lines().rev().find_map(of_chain).map_or(0, |record| record.seq))
    }
}

/// Returns the offset of the next record. Cuts off the rest of a line that a killed process left: its successor
/// writes that record again.
fn whole_lines(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    if last == *b"\n" {
        return Ok(length);
    }
    let begin = length.saturating_sub(TAIL);
    let mut tail = vec![0; usize::try_from(length - begin).unwrap_or_default()];
    file.read_exact_at(&mut tail, begin)?;
    let end = match tail.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => begin + last as u64 + 1,
        None if begin == 0 => 0,
        // No record is that long. It stays as a line that is not a record.
        None => {
            let mut file = file;
            file.write_all(b"\n")?;
            return Ok(length + 1);
        }
    };
    file.set_len(end)?;
    tracing::warn!(bytes = length - end, "the end of an audit log was torn, and is cut off");
    Ok(end)
}

impl Sink for FileSink {
    fn name(&self) -> &'static str {
        "file"
    }

    fn place(&self) -> Option<&SinkPlace> {
        Some(&self.place)
    }

    fn last_of(&mut self, chain: &str) -> Result<u64, SinkError> {
        // A pipe has no records to read, and opening it would wait for a writer.
        for path in files::all(&self.path)?.iter().rev().filter(|path| path.is_file()) {
            let last = Self::last_in(&File::open(path)?, chain)?;
            if last > 0 {
                return Ok(last);
            }
        }
        Ok(0)
    }

    fn write(&mut self, lines: &[JournalRecord]) -> Result<(), SinkError> {
        let (had, fsync) = (self.had, self.fsync);
        let mut file = self.ready()?;
        let regular = file.metadata()?.is_file();
        file.lock()?;
        let written = (|| {
            let had = match (had, lines.first().and_then(|line| AuditRecord::read(&line.text).ok())) {
                (Some(had), _) => had,
                (None, Some(record)) => Self::last_in(file, &record.chain)?,
                (None, None) => 0,
            };
            let new = || lines.iter().filter(|line| line.seq > had);
            let mut text = String::with_capacity(new().map(|line| line.text.len() + 1).sum());
            new().for_each(|line| text.extend([&line.text, "\n"]));
            let before = if regular { whole_lines(file)? } else { 0 };
            if let Err(error) = file.write_all(text.as_bytes()) {
                // A partial write may be there. Truncate it.
                if regular {
                    file.set_len(before)?;
                }
                return Err(error);
            }
            if fsync {
                file.sync_data()?;
            }
            Ok(had)
        })();
        let unlocked = file.unlock();
        if written.is_err() {
            self.open = None;
        }
        self.had = Some(written?);
        Ok(unlocked?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::ChainPlace;
    use crate::event::{AuditEvent, EventType, RiskLevel};
    use signalbox_seal::{KeySet, SigningKey};

    fn pruner() -> Pruner {
        Pruner::new(SigningKey::from_seed(&[7; 32]).unwrap(), KeySet::new(), std::path::Path::new("no journals"))
    }

    fn lines(place: &mut ChainPlace, count: u64) -> Vec<JournalRecord> {
        let mut line = |_| {
            let mut text = String::new();
            let event = AuditEvent::own(1, EventType::RecordsLost, "{}", RiskLevel::Low);
            place.append(&event, &mut text);
            JournalRecord { seq: place.seq, text: text.trim_end().to_owned() }
        };
        (0..count).map(&mut line).collect()
    }

    /// Records are in the file, once, even if they are given again after a crash.
    /// Proves G-39.
    #[test]
    fn records_are_appended_and_not_repeated_after_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/audit.log");
        let mut place = ChainPlace::start("c");
        let all = lines(&mut place, 5);
        FileSink::new(path.clone(), 90, pruner(), false).write(&all[..3]).unwrap();
        // The process was killed before it remembered the last two of them.
        let mut again = FileSink::new(path.clone(), 90, pruner(), true);
        again.write(&all[1..4]).unwrap();
        again.write(&all[4..]).unwrap();
        let expected: String = all.iter().map(|line| format!("{}\n", line.text)).collect();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    /// A process that is killed in the middle of a write leaves half a line, which is not there for the next one, nor
    /// for another process that goes on.
    #[test]
    fn half_a_line_of_a_killed_process_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut place = ChainPlace::start("c");
        let all = lines(&mut place, 5);
        let tear =
            |text: &str| OpenOptions::new().append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
        FileSink::new(path.clone(), 90, pruner(), false).write(&all[..2]).unwrap();
        tear(&all[2].text[..40]);
        let mut next = FileSink::new(path.clone(), 90, pruner(), false);
        next.write(&all[1..4]).unwrap();
        tear(&all[4].text[..60]);
        next.write(&all[4..]).unwrap();
        let expected: String = all.iter().map(|line| format!("{}\n", line.text)).collect();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        // A file of nothing but that.
        std::fs::write(&path, &all[0].text[..30]).unwrap();
        FileSink::new(path.clone(), 90, pruner(), false).write(&all).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        // What cannot be a record stays, and hides none.
        std::fs::write(&path, vec![b'x'; usize::try_from(TAIL).unwrap() + 10]).unwrap();
        FileSink::new(path.clone(), 90, pruner(), false).write(&all).unwrap();
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(kept.ends_with(&format!("x\n{expected}")));
    }

    /// A new file every day, and old ones go after `retention_days`.
    /// Proves G-38.
    #[test]
    fn there_is_a_file_a_day_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut place = ChainPlace::start("c");
        let all = lines(&mut place, 2);
        let days = |ago: u64| unix_ms() / DAY_MS - ago;
        for ago in [1, 2, 3, 4] {
            std::fs::write(files::of_day(&path, days(ago)), "").unwrap();
        }
        std::fs::write(folder.path().join("audit.log.txt"), "").unwrap();
        let mut sink = FileSink::new(path.clone(), 2, pruner(), false);
        sink.write(&all[..1]).unwrap();
        sink.now = || unix_ms() + DAY_MS;
        sink.write(&all[1..]).unwrap();
        let kept = |day: u64| files::of_day(&path, day).exists();
        assert!(kept(days(0)) && kept(days(1)), "today's records are set aside, and yesterday's kept");
        assert!(!kept(days(2)) && !kept(days(3)) && !kept(days(4)));
        assert!(folder.path().join("audit.log.txt").exists());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", all[1].text));
    }

    /// A full disk takes nothing, and says so.
    #[test]
    fn a_full_disk_is_an_error_each_time() {
        let mut sink = FileSink::new("/dev/full".into(), 90, pruner(), false);
        let mut place = ChainPlace::start("c");
        for line in lines(&mut place, 2) {
            assert!(sink.write(&[line]).is_err());
        }
    }
}
