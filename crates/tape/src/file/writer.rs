//! Writes a tape file from beginning to end, to any byte sink.

use super::error::TapeFileError;
use super::frame::{self, FULL_BYTES, FULL_ENTRIES, FrameKind, MAGIC, MAX_CONTENT, MAX_RECORD, PREAMBLE, VERSION};
use super::{proto, record};
use prost::Message;
use signalbox_engine::record::{Body, Content, Entry, Gap, SessionInfo, TapeInfo};
use std::io::Write;
use std::sync::Arc;

/// Maximum number of sessions that the index names per frame. Frames with more are marked `many_sessions`.
const MAX_SESSIONS: usize = 64;

/// Writer of a tape file. Entries are pushed in order; [`TapeFileWriter::finish`] adds the index. Without the index the
/// file is still readable up to its last complete frame.
#[derive(Debug)]
pub struct TapeFileWriter<W: Write> {
    to: W,
    at: u64,
    content: Vec<u8>,
    frame: proto::Frame,
    index: proto::Index,
}

impl<W: Write> TapeFileWriter<W> {
    /// Starts a file with the head of the tape.
    ///
    /// # Errors
    /// Returns the error of `to`.
    pub fn new(mut to: W, info: &TapeInfo, sessions: &[(u64, SessionInfo)]) -> Result<Self, TapeFileError> {
        to.write_all(&MAGIC)?;
        to.write_all(&VERSION.to_le_bytes())?;
        let head = record::of_head(info, sessions).encode_to_vec();
        let at = PREAMBLE + frame::write(&mut to, FrameKind::Head, &head)?;
        let (content, frame) = (Vec::with_capacity(FULL_BYTES), proto::Frame::default());
        Ok(Self { to, at, content, frame, index: proto::Index { ended: info.ended, ..proto::Index::default() } })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// Returns the error of the sink.
    pub fn push(&mut self, entry: &Entry) -> Result<(), TapeFileError> {
        let (mut told, mut body) = record::of_entry(entry);
        if body.len() + MAX_RECORD > MAX_CONTENT
            && let Content::Message(message) = &entry.content
        {
            let message = signalbox_engine::record::MessageEntry { body: Body::Left, ..message.clone() };
            (told, body) = record::of_entry(&Entry { content: Content::Message(message), ..entry.clone() });
        }
        if told.encoded_len() > MAX_RECORD {
            let gap = Gap { facts: 1, reason: "too_large".to_owned() };
            (told, body) =
                record::of_entry(&Entry { content: Content::Gap(gap), principal: Arc::default(), ..entry.clone() });
        }
        if self.content.len() + told.encoded_len() + body.len() + 16 > MAX_CONTENT {
            self.close_frame()?;
        }
        self.content.extend_from_slice(&told.encode_length_delimited_to_vec());
        self.content.extend_from_slice(&body);
        note(&mut self.frame, entry);
        if self.content.len() >= FULL_BYTES || self.frame.entries >= FULL_ENTRIES {
            self.close_frame()?;
        }
        Ok(())
    }

    /// Writes the pending entries and the index, and returns the sink. `ended` is the time at which the tape ended, if
    /// it has.
    ///
    /// # Errors
    /// Returns the error of the sink.
    pub fn finish(mut self, ended: Option<u64>) -> Result<W, TapeFileError> {
        self.close_frame()?;
        self.index.ended = ended.or(self.index.ended);
        let place = self.at;
        frame::write(&mut self.to, FrameKind::Index, &self.index.encode_to_vec())?;
        self.to.write_all(&frame::trailer(place))?;
        self.to.flush()?;
        Ok(self.to)
    }

    /// Stores the closing part of the seal in the index.
    pub fn close_seal(&mut self, closing: &[u8]) {
        self.index.closing = Some(closing.to_vec());
    }

    /// Writes the pending entries as a frame, so that they survive a crash.
    ///
    /// # Errors
    /// Returns the error of the sink.
    pub fn flush(&mut self) -> Result<(), TapeFileError> {
        self.close_frame()?;
        Ok(self.to.flush()?)
    }

    fn close_frame(&mut self) -> Result<(), TapeFileError> {
        if self.frame.entries == 0 {
            return Ok(());
        }
        let written = frame::write(&mut self.to, FrameKind::Entries, &self.content)?;
        self.content.clear();
        let done = std::mem::take(&mut self.frame);
        self.index.frames.push(proto::Frame { offset: self.at, ..done });
        self.at += written;
        Ok(())
    }
}

/// Adds an entry to the description of its frame in the index.
pub(super) fn note(frame: &mut proto::Frame, entry: &Entry) {
    if frame.entries == 0 {
        (frame.first_seq, frame.first_at) = (entry.seq, entry.at);
    }
    frame.entries += 1;
    (frame.last_seq, frame.last_at) = (entry.seq, entry.at);
    match entry.session {
        // A gap belongs to every session.
        _ if matches!(entry.content, Content::Gap(_)) => frame.many_sessions = true,
        Some(session) if !frame.many_sessions && !frame.sessions.contains(&session) => {
            frame.sessions.push(session);
            frame.many_sessions = frame.sessions.len() > MAX_SESSIONS;
        }
        _ => {}
    }
    if frame.many_sessions {
        frame.sessions.clear();
    }
}
