//! The journal: the records of one chain on disk. Every sink reads it at its own pace.
//!
//! It is a folder of segments, each named after its first record. A segment is deleted once every sink has its records,
//! or has fallen too far behind. The last segment with a record stays, so that the chain resumes there.

mod loss_count;
mod reader;

pub(crate) use loss_count::UntoldLoss;
pub use reader::{JournalReader, JournalRecord};

use crate::chain::ChainPlace;
use crate::place::SinkPlace;
use crate::record::AuditRecord;
use loss_count::LossCount;
use signalbox_seal::keys::files::{KeyStorageError, try_lock};
use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Maximum number of chains in one folder: one for each process that runs at the same time.
pub const MAX_CHAINS: usize = 64;
/// File of the last signed head.
pub const HEAD_FILE: &str = "head.json";
const LOCK_FILE: &str = "lock";
/// Bounds of a segment's size, which is otherwise an eighth of the spool's limit.
const LEAST_SEGMENT: u64 = 16 << 10;
const MOST_SEGMENT: u64 = 4 << 20;

/// Error of opening a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The operating system reported an error.
    #[error("{}: {why}", path.display())]
    Io {
        /// Path of the operation.
        path: PathBuf,
        /// Error of the operating system.
        why: io::Error,
    },
    /// The lock cannot be taken.
    #[error(transparent)]
    Lock(#[from] KeyStorageError),
    /// Too many processes write at the same time.
    #[error("{} holds {MAX_CHAINS} audit logs, and other processes write to all of them", .0.display())]
    TooMany(PathBuf),
}

/// Journal open for writing.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// Lock on the journal, held while it is open.
    _lock: File,
    file: File,
    /// First record and size in bytes of each segment.
    segments: VecDeque<(u64, u64)>,
    segment_max: u64,
    fsync: bool,
    /// Place for the count of lost records; none if it could not be created.
    losses: Option<LossCount>,
}

impl Journal {
    /// Opens a journal in this folder that no other process has locked. Returns it with the end of its chain and its
    /// own folder; `fresh` names the chain of a new one.
    pub fn open(
        folder: &Path,
        fresh: &str,
        spool_max: u64,
        fsync: bool,
    ) -> Result<(Self, ChainPlace, PathBuf), JournalError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |why| JournalError::Io { path, why }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io(folder))?;
        let mut known = chains(folder).map_err(io(folder))?;
        if known.len() >= MAX_CHAINS {
            known.truncate(MAX_CHAINS);
        } else {
            known.push(fresh.to_owned());
        }
        for chain in known {
            if let Some(opened) = Self::open_chain(folder, &chain, spool_max, fsync)? {
                return Ok(opened);
            }
        }
        Err(JournalError::TooMany(folder.to_owned()))
    }

    /// Opens the journal of this chain; `None` if another process has it locked.
    pub fn open_chain(
        folder: &Path,
        chain: &str,
        spool_max: u64,
        fsync: bool,
    ) -> Result<Option<(Self, ChainPlace, PathBuf)>, JournalError> {
        let own = folder.join(chain);
        let io = |why| JournalError::Io { path: own.clone(), why };
        let Some(lock) = try_lock(&own.join(LOCK_FILE))? else { return Ok(None) };
        let (segments, place) = recover(&own, chain).map_err(io)?;
        let segment_max = segment_max(spool_max);
        let last = segments.back().map_or(1, |(first, _)| *first);
        let file = segment(&own, last).map_err(io)?;
        let losses = LossCount::open(&own)
            .inspect_err(|error| tracing::warn!(%error, "lost audit records cannot be counted on the disk"))
            .ok();
        let journal = Self { folder: own.clone(), _lock: lock, file, segments, segment_max, fsync, losses };
        Ok(Some((journal, place, own)))
    }

    /// Applies a new spool limit and sync mode.
    pub fn follow(&mut self, spool_max: u64, fsync: bool) {
        (self.segment_max, self.fsync) = (segment_max(spool_max), fsync);
    }

    /// Appends records, all or none. `first` is the number of the first.
    pub fn append(&mut self, text: &str, first: u64) -> io::Result<()> {
        if self.segments.back().is_none_or(|(_, bytes)| *bytes >= self.segment_max) {
            self.file = segment(&self.folder, first)?;
            self.segments.push_back((first, 0));
        }
        let Some((_, bytes)) = self.segments.back_mut() else { return Ok(()) };
        let written = self.file.write_all(text.as_bytes());
        let written = written.and_then(|()| if self.fsync { self.file.sync_data() } else { Ok(()) });
        match written {
            Ok(()) => *bytes += text.len() as u64,
            // A partial write may be there. Truncate it.
            Err(_) => self.file.set_len(*bytes)?,
        }
        written
    }

    /// Returns how many records an earlier process could not write behind `last`, the last record of the journal.
    pub fn lost_behind(&self, last: u64) -> u64 {
        UntoldLoss::read(&self.folder).behind(last)
    }

    /// Stores how many records could not be written behind `after`, the last record of the journal.
    pub fn keep_lost(&self, after: u64, count: u64) -> io::Result<()> {
        self.losses.as_ref().map_or(Ok(()), |losses| losses.keep(UntoldLoss { after, count }, self.fsync))
    }

    /// Deletes the segments whose records, up to this one, no sink still needs.
    pub fn release(&mut self, upto: u64) {
        while let [Some(&(first, _)), Some(&(next, bytes))] = [self.segments.front(), self.segments.get(1)]
            && next <= upto.saturating_add(1)
            // Recovery needs the last record.
            && (self.segments.len() > 2 || bytes > 0)
        {
            if std::fs::remove_file(segment_path(&self.folder, first)).is_err() {
                return;
            }
            self.segments.pop_front();
        }
    }

    /// Returns the first record that stays if the journal may take at most `most` bytes.
    pub fn keeps_from(&self, most: u64) -> u64 {
        let mut bytes: u64 = self.segments.iter().map(|(_, bytes)| bytes).sum();
        let mut from = self.segments.front().map_or(1, |(first, _)| *first);
        for (first, next) in self.segments.iter().zip(self.segments.iter().skip(1)) {
            if bytes <= most {
                break;
            }
            bytes -= first.1;
            from = next.0;
        }
        from
    }

    /// Stores the last signed head beside the records.
    pub fn keep_head(&self, head: &str) -> io::Result<()> {
        let (path, draft) = (self.folder.join(HEAD_FILE), self.folder.join("head.new"));
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?
            .write_all(head.as_bytes())?;
        std::fs::rename(draft, path)
    }
}

fn segment_max(spool_max: u64) -> u64 {
    (spool_max / 8).clamp(LEAST_SEGMENT, MOST_SEGMENT)
}

/// Returns the names of the chains in a folder, sorted.
pub fn chains(folder: &Path) -> io::Result<Vec<String>> {
    let mut known = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            known.push(name);
        }
    }
    known.sort();
    Ok(known)
}

/// Returns the chains in a folder of which a sink lacks records. Their processes were killed, or ended while the sink
/// could not be reached.
pub fn undelivered(folder: &Path) -> io::Result<Vec<String>> {
    let known = match chains(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        known => known?,
    };
    let mut left = Vec::new();
    for chain in known {
        if is_undelivered(&folder.join(&chain), &chain)? {
            left.push(chain);
        }
    }
    Ok(left)
}

fn is_undelivered(own: &Path, chain: &str) -> io::Result<bool> {
    let Some(last) = last_record(own, chain)?.filter(|last| *last > 0) else { return Ok(false) };
    let lacks = |cursor: PathBuf| number_in(&cursor).is_none_or(|taken| taken < last);
    for entry in std::fs::read_dir(own)? {
        let name = entry?.file_name();
        let Some((sink, kind)) = name.to_str().and_then(|name| name.rsplit_once('.')) else { continue };
        let place = (kind == "place").then(|| place_before(own, sink)).flatten();
        // A sink with places has one cursor for each. Its cursor from before it had places does not count.
        let lacking = match (kind, place) {
            ("place", Some(mark)) => lacks(own.join(format!("{sink}-{mark:.16}.cursor"))),
            ("cursor", _) if !sink.contains('-') && place_before(own, sink).is_none() => lacks(own.join(&name)),
            _ => false,
        };
        if lacking {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the number of the last complete record of a journal.
fn last_record(own: &Path, chain: &str) -> io::Result<Option<u64>> {
    let Some(first) = segments(own)?.pop() else { return Ok(None) };
    let text = std::fs::read(segment_path(own, first))?;
    let whole = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let mut places = whole.filter_map(|line| place_of(std::str::from_utf8(line).ok()?, chain));
    Ok(places.next_back().map(|place| place.seq).or_else(|| first.checked_sub(1)))
}

fn number_in(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok())
}

/// Returns the first record of each segment of a journal, in ascending order.
pub(crate) fn segments(folder: &Path) -> io::Result<Vec<u64>> {
    let mut firsts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let first: Option<u64> =
            name.to_str().and_then(|name| name.strip_suffix(".jsonl")).and_then(|name| name.parse().ok());
        firsts.extend(first);
    }
    firsts.sort_unstable();
    Ok(firsts)
}

fn segment_path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}.jsonl"))
}

fn segment(folder: &Path, first: u64) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(segment_path(folder, first))
}

/// Finds the end of the chain and truncates what a crash of the machine has torn.
fn recover(folder: &Path, chain: &str) -> io::Result<(VecDeque<(u64, u64)>, ChainPlace)> {
    let mut segments_found = VecDeque::new();
    let mut place = ChainPlace::start(chain);
    for first in segments(folder)? {
        let text = std::fs::read(segment_path(folder, first))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut kept = 0;
        let mut next = place.clone();
        for line in text[..whole].split_inclusive(|byte| *byte == b'\n') {
            let Some(found) = std::str::from_utf8(line).ok().and_then(|line| place_of(line, chain)) else { break };
            kept += line.len() as u64;
            next = found;
        }
        if kept < text.len() as u64 {
            tracing::warn!(folder = %folder.display(), first, "the end of an audit journal was torn, and is cut off");
            OpenOptions::new().write(true).open(segment_path(folder, first))?.set_len(kept)?;
        }
        place = next;
        segments_found.push_back((first, kept));
    }
    Ok((segments_found, place))
}

fn place_of(line: &str, chain: &str) -> Option<ChainPlace> {
    let record = AuditRecord::read(line.trim_end()).ok().filter(|record| record.chain == chain)?;
    let (_, hash) = record.hashes()?;
    Some(ChainPlace { chain: chain.to_owned(), seq: record.seq, hash })
}

/// Returns the path of the cursor of a sink, or of one of its places.
fn cursor_path(folder: &Path, sink: &str, place: Option<&SinkPlace>) -> PathBuf {
    let mark = place.map(|place| format!("-{:.16}", place.mark())).unwrap_or_default();
    folder.join(format!("{sink}{mark}.cursor"))
}

/// Returns the mark of the place that a sink last wrote to.
fn place_before(folder: &Path, sink: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(format!("{sink}.place"))).ok()
}

/// File with the last record that a sink has.
#[derive(Debug)]
pub(crate) struct Cursor(File);

/// Point from which a sink resumes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ResumePoint {
    /// Last record that its place received; `None` if no cursor exists.
    pub last: Option<u64>,
    /// True if the log wrote to another place before.
    pub moved: bool,
}

impl Cursor {
    /// Returns the last record that a place received; `None` if no cursor exists.
    pub fn read(folder: &Path, place: &SinkPlace) -> Option<u64> {
        let number = |path: PathBuf| number_in(&path);
        // Earlier versions had one cursor for all places of a sink.
        let former = || {
            let is_own = place_before(folder, place.sink).is_none_or(|before| before == place.former_mark());
            is_own.then(|| number(cursor_path(folder, place.sink, None))).flatten()
        };
        number(cursor_path(folder, place.sink, Some(place))).or_else(former)
    }

    /// Returns true if the log currently writes to this place, according to the cursors of a chain.
    pub fn is_current(folder: &Path, place: &SinkPlace) -> bool {
        let is_own = |before: String| before == place.mark() || before == place.former_mark();
        place_before(folder, place.sink).is_none_or(is_own)
    }

    /// Opens the cursor of a sink. Each place that the log ever wrote to has its own, so that a log that returns to a
    /// place resumes after the records that the place received.
    pub fn open(folder: &Path, sink: &str, place: Option<&SinkPlace>) -> io::Result<(Self, ResumePoint)> {
        let path = cursor_path(folder, sink, place);
        let open = |path| OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        let Some(place) = place else {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let resumed = ResumePoint { last: text.trim().parse().ok(), moved: false };
            return Ok((Self(open(path)?), resumed));
        };
        let resumed = ResumePoint { last: Self::read(folder, place), moved: !Self::is_current(folder, place) };
        let cursor = Self(open(path)?);
        resumed.last.map_or(Ok(()), |last| cursor.keep(last))?;
        std::fs::write(folder.join(format!("{sink}.place")), place.mark())?;
        Ok((cursor, resumed))
    }

    /// Stores the last record that the sink received.
    pub fn keep(&self, last: u64) -> io::Result<()> {
        self.0.write_all_at(format!("{last:020}\n").as_bytes(), 0)
    }
}

#[cfg(test)]
mod tests;
