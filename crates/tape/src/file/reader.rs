//! Reads tape files: complete ones by their index, truncated ones as far as they go.

use super::error::TapeFileError;
use super::frame::{self, END, FrameKind, HEADER, Header, MAGIC, MAX_RECORD, PREAMBLE, TRAILER, VERSION};
use super::select::Select;
use super::weight::{self, weigh};
use super::writer::note;
use super::{proto, record, upgrade};
use bytes::{Buf, Bytes};
use prost::Message;
use signalbox_engine::record::{Content, Entry, SessionInfo, TapeInfo};
use signalbox_seal::TapeSeal;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

/// Maximum number of sessions that are gathered from entries.
pub(crate) const MAX_SESSIONS: usize = 100_000;
/// Memory that an entry takes besides its record.
const ENTRY_COST: u64 = 64;
/// Maximum weight of the records of a file, however small the file is.
pub const MAX_SMALL_FILE: usize = 16 << 20;
/// Weight that each byte of the file adds to the allowance.
const MAX_GROWTH: u64 = 200;
const TOO_MUCH: &str = "the file unpacks to more than a recording of its size holds";

/// Maximum amount of memory that a file may unpack to: a fixed sum plus a multiple of its size. Otherwise a few
/// kilobytes of repetitions would cause hours of work. Recorded tapes stay far below.
#[derive(Copy, Clone, Debug)]
struct Allowance {
    records: u64,
    bodies: u64,
}

impl Allowance {
    fn of_file(length: u64) -> Self {
        let records = MAX_SMALL_FILE as u64 + length.saturating_mul(MAX_GROWTH);
        Self { records, bodies: (256 << 20) + length.saturating_mul(1_000) }
    }

    /// Takes the record of an entry and its elements from the allowance; `None` if too little is left.
    fn take_record(&mut self, bytes: usize, weight: u64) -> Option<()> {
        self.records = self.records.checked_sub((bytes as u64 + ENTRY_COST).saturating_add(weight))?;
        Some(())
    }

    /// Checks that a head or an index weighs no more than all records of the file may.
    fn admit(self, content: &[u8], fields: &[weight::Field]) -> Result<(), &'static str> {
        let weight = weigh(content, fields)?;
        if weight > self.records { Err(TOO_MUCH) } else { Ok(()) }
    }

    fn take_body(&mut self, bytes: usize) -> Option<()> {
        self.bodies = self.bodies.checked_sub(bytes as u64)?;
        Some(())
    }
}

/// A tape file. Opening it reads its head and its index, not its entries.
#[derive(Debug)]
pub struct TapeFile<R> {
    from: R,
    version: u32,
    info: TapeInfo,
    sessions: Vec<(u64, SessionInfo)>,
    pub(super) frames: Vec<proto::Frame>,
    /// Message that says which part is missing.
    missing: Option<String>,
    /// Offsets of the first frame of entries and of the index.
    first: u64,
    index: Option<u64>,
    /// Damage at the end of the file that no crash leaves: offset and description.
    damage: Option<(u64, String)>,
    /// Allowance for reading the whole file once.
    allowance: Allowance,
}

impl<R: Read + Seek> TapeFile<R> {
    /// Opens a file. A truncated file is opened as far as it goes, which [`TapeFile::missing`] reports.
    ///
    /// # Errors
    /// Fails if the file is not a tape, is of a later version, or has a damaged head.
    pub fn open(mut from: R) -> Result<Self, TapeFileError> {
        let length = from.seek(SeekFrom::End(0))?;
        from.seek(SeekFrom::Start(0))?;
        let version = read_preamble(&mut from)?;
        let header = Header::read(&mut from, PREAMBLE)?.filter(|header| header.kind == FrameKind::Head);
        let header = header.ok_or_else(|| TapeFileError::damaged(PREAMBLE, "the header is missing"))?;
        let content = header.content(&mut from, PREAMBLE)?;
        let allowance = Allowance::of_file(length);
        allowance.admit(&content, weight::HEAD).map_err(|why| TapeFileError::damaged(PREAMBLE, why))?;
        let head = proto::Head::decode(content).map_err(|error| TapeFileError::damaged(PREAMBLE, error.to_string()))?;
        // Files of older versions do not repeat the version in their head.
        if ![0, version].contains(&head.version) {
            return Err(TapeFileError::damaged(PREAMBLE, "the file begins with another version than its head has"));
        }
        let (info, sessions) = record::to_head(head).map_err(|why| TapeFileError::damaged(PREAMBLE, why))?;
        let first = PREAMBLE + HEADER as u64 + u64::from(header.stored);
        let (frames, missing, index, damage) = (vec![], None, None, None);
        let mut file = Self { from, version, info, sessions, frames, missing, first, index, damage, allowance };
        match file.read_index(length) {
            Ok(index) => {
                file.frames = index.frames;
                file.info.ended = index.ended.or(file.info.ended);
                if let (Some(seal), Some(closing)) = (&file.info.seal, &index.closing) {
                    file.info.seal = Some(TapeSeal::closed(seal, closing));
                }
            }
            Err(TapeFileError::Io(error)) => return Err(error.into()),
            Err(_) => file.find_frames(first, length)?,
        }
        Ok(file)
    }

    /// Returns the head of the tape.
    #[must_use]
    pub fn info(&self) -> &TapeInfo {
        &self.info
    }

    /// Returns the sessions that the head lists. Entries may introduce more: see [`TapeFile::all_sessions`].
    #[must_use]
    pub fn sessions(&self) -> &[(u64, SessionInfo)] {
        &self.sessions
    }

    /// Returns the sessions from the head or, if it lists none or the tape had not ended, from the entries too: the
    /// head of a file that was written or copied live dates from before the last sessions. Unreadable entries are
    /// skipped.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn all_sessions(&mut self) -> Result<Vec<(u64, SessionInfo)>, TapeFileError> {
        if !self.sessions.is_empty() && self.info.ended.is_some() {
            return Ok(self.sessions.clone());
        }
        let mut found: BTreeMap<u64, SessionInfo> = self.sessions.iter().cloned().collect();
        for entry in self.entries(Select::default()) {
            match entry {
                Ok(Entry { session: Some(number), content: Content::Session(info), .. })
                    if found.len() < MAX_SESSIONS || found.contains_key(&number) =>
                {
                    found.insert(number, info);
                }
                Err(TapeFileError::Io(error)) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Returns the version of the format.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the number of frames of entries that were found.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Returns a message that says which part of the file is missing, or `None` if it is complete.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// Iterates over the selected entries in order. Reads only frames that may hold some, one at a time.
    pub fn entries(&mut self, select: Select) -> Entries<'_, R> {
        let allowance = self.allowance;
        Entries { file: self, select, next: 0, content: Bytes::new(), length: 0, place: 0, ended: false, allowance }
    }

    /// Passes all entries to `each` in order, until it returns false, and checks that the file is laid out as a writer
    /// leaves it: contiguous frames, an index that describes them, and nothing else.
    ///
    /// # Errors
    /// Fails if the layout is wrong or the file cannot be read. A truncated end, as a crash leaves it, is accepted.
    pub fn audit(&mut self, each: &mut dyn FnMut(Entry) -> bool) -> Result<(), TapeFileError> {
        let (mut at, mut allowance) = (self.first, self.allowance);
        let frames = std::mem::take(&mut self.frames);
        for frame in &frames {
            if frame.offset != at {
                return Err(TapeFileError::damaged(at, "frames do not follow each other"));
            }
            self.from.seek(SeekFrom::Start(at))?;
            let header = Header::read(&mut self.from, at)?.filter(|header| header.kind == FrameKind::Entries);
            let header = header.ok_or_else(|| TapeFileError::damaged(at, "entries are missing here"))?;
            let content = header.content(&mut self.from, at)?;
            let length = content.len();
            let mut noted = proto::Frame { offset: at, ..proto::Frame::default() };
            let (select, ended) = (Select::default(), false);
            let mut entries = Entries { file: self, select, next: 0, content, length, place: at, ended, allowance };
            while !entries.content.is_empty() {
                let entry = entries.entry()?;
                note(&mut noted, &entry);
                if !each(entry) {
                    return Ok(());
                }
            }
            allowance = entries.allowance;
            if self.missing.is_none() && noted != *frame {
                return Err(TapeFileError::damaged(at, "the index does not say what is in this frame"));
            }
            at += HEADER as u64 + u64::from(header.stored);
        }
        match &self.damage {
            Some((at, why)) => Err(TapeFileError::damaged(*at, why.clone())),
            None if self.missing.is_none() && Some(at) != self.index => {
                Err(TapeFileError::damaged(at, "the index does not follow the last frame"))
            }
            None => Ok(()),
        }
    }

    fn read_index(&mut self, length: u64) -> Result<proto::Index, TapeFileError> {
        let no_index = |why: &str| TapeFileError::damaged(length, why);
        let end = length.checked_sub(TRAILER as u64).ok_or_else(|| no_index("too short"))?;
        self.from.seek(SeekFrom::Start(end))?;
        let mut trailer = [0; TRAILER];
        self.from.read_exact(&mut trailer)?;
        let place = frame::index_place(trailer).filter(|place| *place < end).ok_or_else(|| no_index("no index"))?;
        self.from.seek(SeekFrom::Start(place))?;
        let header = Header::read(&mut self.from, place)?.filter(|header| header.kind == FrameKind::Index);
        let header = header.ok_or_else(|| no_index("no index"))?;
        if place + HEADER as u64 + u64::from(header.stored) != end {
            return Err(no_index("the index does not end where the file does"));
        }
        let content = header.content(&mut self.from, place)?;
        self.allowance.admit(&content, weight::INDEX).map_err(no_index)?;
        let index = proto::Index::decode(content).map_err(|error| no_index(&error.to_string()))?;
        let ordered =
            index.frames.is_sorted_by(|one, other| one.offset < other.offset && one.last_seq < other.first_seq);
        if !ordered || index.frames.iter().any(|frame| frame.offset >= place) {
            return Err(no_index("the index is out of order"));
        }
        self.index = Some(place);
        Ok(index)
    }

    /// Finds the frames of a file without an index by going from header to header.
    fn find_frames(&mut self, first: u64, length: u64) -> Result<(), TapeFileError> {
        let mut at = first;
        self.missing = Some("the end of the file is missing".to_owned());
        loop {
            self.from.seek(SeekFrom::Start(at))?;
            let header = match Header::read(&mut self.from, at) {
                Ok(Some(header)) => header,
                Ok(None) => return Ok(()),
                Err(TapeFileError::Io(error)) => return Err(error.into()),
                Err(error) => {
                    // A crash leaves incomplete headers, never complete invalid ones.
                    if length - at >= HEADER as u64 {
                        self.damage = Some((at, error.to_string()));
                    }
                    break;
                }
            };
            let end = at + HEADER as u64 + u64::from(header.stored);
            if header.kind == FrameKind::Index {
                self.missing = Some("the index at the end of the file is damaged".to_owned());
                if length >= end + TRAILER as u64 {
                    self.damage = Some((at, "the index or the end of the file is damaged".to_owned()));
                }
                return self.find_end(length);
            }
            if header.kind != FrameKind::Entries || end > length {
                break;
            }
            // Without an index the contents of the frame are unknown, so it must count as a match for every selection.
            let unknown = proto::Frame { offset: at, last_seq: u64::MAX, last_at: u64::MAX, ..proto::Frame::default() };
            self.frames.push(proto::Frame { many_sessions: true, ..unknown });
            at = end;
        }
        let rest = length - at;
        self.missing =
            Some(format!("the end of the file is missing: the {rest} bytes after byte {at} are not a complete frame"));
        self.find_end(length)
    }

    /// Reports damage if the file ends as a finished one does although its index cannot be read.
    fn find_end(&mut self, length: u64) -> Result<(), TapeFileError> {
        let mut end = [0; END.len()];
        let Some(place) = length.checked_sub(end.len() as u64) else { return Ok(()) };
        self.from.seek(SeekFrom::Start(place))?;
        self.from.read_exact(&mut end)?;
        if end == END && self.damage.is_none() {
            self.damage = Some((place, "the file was finished, but its index cannot be read".to_owned()));
        }
        Ok(())
    }

    fn content(&mut self, place: u64) -> Result<Bytes, TapeFileError> {
        self.from.seek(SeekFrom::Start(place))?;
        let header = Header::read(&mut self.from, place)?.filter(|header| header.kind == FrameKind::Entries);
        let header = header.ok_or_else(|| TapeFileError::damaged(place, "entries are missing here"))?;
        header.content(&mut self.from, place)
    }
}

fn read_preamble(from: &mut impl Read) -> Result<u32, TapeFileError> {
    let mut preamble = [0; PREAMBLE as usize];
    from.read_exact(&mut preamble).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => TapeFileError::NotATape,
        _ => error.into(),
    })?;
    let [magic @ .., v0, v1, v2, v3] = preamble;
    if magic != MAGIC {
        return Err(TapeFileError::NotATape);
    }
    match u32::from_le_bytes([v0, v1, v2, v3]) {
        0 => Err(TapeFileError::damaged(MAGIC.len() as u64, "there is no format version 0")),
        found if found > VERSION => Err(TapeFileError::Future { found, known: VERSION }),
        known => Ok(known),
    }
}

/// Entries of a file, with one frame in memory at a time. Iteration ends after the first error.
#[derive(Debug)]
pub struct Entries<'a, R> {
    file: &'a mut TapeFile<R>,
    select: Select,
    next: usize,
    /// Unread rest of the current frame, and the full length of that frame.
    content: Bytes,
    length: usize,
    place: u64,
    ended: bool,
    /// Amount that may still be unpacked.
    allowance: Allowance,
}

impl<R: Read + Seek> Entries<'_, R> {
    fn step(&mut self) -> Result<Option<Entry>, TapeFileError> {
        loop {
            while self.content.is_empty() {
                let Some(frame) = self.file.frames.get(self.next) else { return Ok(None) };
                self.next += 1;
                if self.select.may_be_in(frame) {
                    self.place = frame.offset;
                    self.content = self.file.content(self.place)?;
                    self.length = self.content.len();
                }
            }
            let entry = self.entry()?;
            if self.select.wants(&entry) {
                return Ok(Some(entry));
            }
        }
    }

    fn entry(&mut self) -> Result<Entry, TapeFileError> {
        let damaged = |why: &str| TapeFileError::damaged(self.place, why);
        let length = prost::decode_length_delimiter(&mut self.content).map_err(|error| damaged(&error.to_string()))?;
        if length > self.content.remaining() || length > MAX_RECORD {
            return Err(damaged("a record is longer than its frame"));
        }
        let record = self.content.split_to(length);
        let weight = weigh(&record, weight::ENTRY).map_err(damaged)?;
        self.allowance.take_record(length, weight).ok_or_else(|| damaged(TOO_MUCH))?;
        let told = proto::Entry::decode(record).map_err(|error| damaged(&error.to_string()))?;
        let told = upgrade::entry(told, self.file.version);
        let body = usize::try_from(record::body_bytes(&told)).ok().filter(|body| *body <= self.content.remaining());
        let body = body.ok_or_else(|| damaged("a message is longer than its frame"))?;
        self.allowance.take_body(body).ok_or_else(|| damaged(TOO_MUCH))?;
        let body = self.content.split_to(body);
        // A slice of the frame would keep the whole frame in memory, so small bodies are copied.
        let is_small = body.len() < self.length / 2;
        let body = if is_small { Bytes::copy_from_slice(&body) } else { body };
        record::to_entry(told, body).map_err(damaged)
    }
}

impl<R: Read + Seek> Iterator for Entries<'_, R> {
    type Item = Result<Entry, TapeFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let step = self.step().transpose();
        self.ended = !matches!(step, Some(Ok(_)));
        step
    }
}
