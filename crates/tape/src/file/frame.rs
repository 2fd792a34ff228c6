//! Frames of a tape file: a kind, two lengths, a checksum, and compressed bytes.

use super::error::TapeFileError;
use bytes::Bytes;
use std::io::{ErrorKind, Read, Write};

/// Version of the format that is written.
pub const VERSION: u32 = 3;

/// First bytes of a file. The high bit and the line ends of both kinds reveal a transfer as text.
pub(crate) const MAGIC: [u8; 8] = *b"\x89TAPE\r\n\x1a";
/// Last bytes of a complete file.
pub(crate) const END: [u8; 8] = *b"TAPE-END";
/// Number of bytes before the first frame: the magic and the version.
pub(crate) const PREAMBLE: u64 = 12;
/// Number of bytes of a frame before its content.
pub(crate) const HEADER: usize = 13;
/// Number of bytes after the index: its offset, a checksum, and [`END`].
pub(crate) const TRAILER: usize = 20;

/// Maximum size of a frame, unpacked. A header that states more is rejected.
pub(crate) const MAX_CONTENT: usize = 48 << 20;
/// Maximum size of a head or index.
pub(crate) const MAX_META: usize = 16 << 20;
/// Maximum size of a record without the message that follows it.
pub(crate) const MAX_RECORD: usize = 4 << 20;
/// Number of bytes at which a frame is closed.
pub(crate) const FULL_BYTES: usize = 256 << 10;
/// Number of entries at which a frame is closed.
pub(crate) const FULL_ENTRIES: u64 = 1_000;

/// Level of zstd that is fast and compresses JSON nearly as well as slower ones.
const LEVEL: i32 = 3;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum FrameKind {
    Head = 1,
    Entries = 2,
    Index = 3,
}

impl FrameKind {
    fn most(self) -> usize {
        match self {
            Self::Entries => MAX_CONTENT,
            Self::Head | Self::Index => MAX_META,
        }
    }
}

/// Header of a frame.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) kind: FrameKind,
    content: u32,
    pub(crate) stored: u32,
    checksum: u32,
}

impl Header {
    /// Reads a header. Returns `None` at the very end of the file.
    pub(crate) fn read(from: &mut impl Read, at: u64) -> Result<Option<Self>, TapeFileError> {
        let mut bytes = [0; HEADER];
        let got = fill(from, &mut bytes)?;
        if got == 0 {
            return Ok(None);
        }
        if got < HEADER {
            return Err(TapeFileError::damaged(at, "a frame is cut off"));
        }
        let [kind, content @ .., _, _, _, _, _, _, _, _] = bytes;
        let [.., s0, s1, s2, s3, c0, c1, c2, c3] = bytes;
        let kind = match kind {
            1 => FrameKind::Head,
            2 => FrameKind::Entries,
            3 => FrameKind::Index,
            _ => return Err(TapeFileError::damaged(at, "an unknown kind of frame")),
        };
        let header = Self {
            kind,
            content: u32::from_le_bytes(content),
            stored: u32::from_le_bytes([s0, s1, s2, s3]),
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
        };
        if header.content as usize > kind.most()
            || header.stored as usize > zstd::zstd_safe::compress_bound(kind.most())
        {
            return Err(TapeFileError::damaged(at, "a frame claims to be larger than allowed"));
        }
        Ok(Some(header))
    }

    /// Reads the content of the frame. Allocates for the bytes that are present, never for the length that the header
    /// states.
    pub(crate) fn content(&self, from: &mut impl Read, at: u64) -> Result<Bytes, TapeFileError> {
        let mut stored = Vec::new();
        from.take(u64::from(self.stored)).read_to_end(&mut stored)?;
        if stored.len() < self.stored as usize {
            return Err(TapeFileError::damaged(at, "a frame is cut off"));
        }
        if checksum(self.kind, self.content, self.stored, &stored) != self.checksum {
            return Err(TapeFileError::damaged(at, "the checksum of a frame does not match"));
        }
        let content = zstd::bulk::decompress(&stored, self.content as usize)
            .map_err(|error| TapeFileError::damaged(at, format!("a frame cannot be unpacked: {error}")))?;
        if content.len() != self.content as usize {
            return Err(TapeFileError::damaged(at, "a frame holds less than it claims"));
        }
        Ok(Bytes::from(content))
    }
}

/// Writes a frame and returns its size in bytes.
pub(crate) fn write(to: &mut impl Write, kind: FrameKind, content: &[u8]) -> Result<u64, TapeFileError> {
    let too_large = || std::io::Error::new(ErrorKind::InvalidInput, "more than a frame of a tape file can hold");
    if content.len() > kind.most() {
        return Err(too_large().into());
    }
    let stored = zstd::bulk::compress(content, LEVEL)?;
    let content_length = u32::try_from(content.len()).map_err(|_| too_large())?;
    let stored_length = u32::try_from(stored.len()).map_err(|_| too_large())?;
    to.write_all(&[kind as u8])?;
    to.write_all(&content_length.to_le_bytes())?;
    to.write_all(&stored_length.to_le_bytes())?;
    to.write_all(&checksum(kind, content_length, stored_length, &stored).to_le_bytes())?;
    to.write_all(&stored)?;
    Ok((HEADER + stored.len()) as u64)
}

fn checksum(kind: FrameKind, content: u32, stored: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind as u8]);
    hasher.update(&content.to_le_bytes());
    hasher.update(&stored.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// Returns the last bytes of a file whose index begins at `index`.
pub(crate) fn trailer(index: u64) -> [u8; TRAILER] {
    let mut bytes = [0; TRAILER];
    let place = index.to_le_bytes();
    bytes[..8].copy_from_slice(&place);
    bytes[8..12].copy_from_slice(&crc32fast::hash(&place).to_le_bytes());
    bytes[12..].copy_from_slice(&END);
    bytes
}

/// Returns the offset of the index, if these are the last bytes of a complete file.
pub(crate) fn index_place(bytes: [u8; TRAILER]) -> Option<u64> {
    let [p0, p1, p2, p3, p4, p5, p6, p7, ..] = bytes;
    let place = u64::from_le_bytes([p0, p1, p2, p3, p4, p5, p6, p7]);
    (trailer(place) == bytes).then_some(place)
}

/// Reads until the buffer is full or the input ends.
fn fill(from: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
