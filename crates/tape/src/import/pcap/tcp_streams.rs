//! Reassembles TCP connections: drops retransmissions and overlaps, orders segments by sequence number, and ends a
//! stream at the first gap.

use super::segment::Segment;
use crate::import::error::ImportError;
use bytes::Bytes;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;

/// Maximum number of connections of a file.
const MAX_CONNECTIONS: usize = 100_000;
/// Maximum number of segments with data of a file.
const MAX_SEGMENTS: usize = 2_000_000;

/// All connections of a file.
#[derive(Default)]
pub(super) struct TcpStreams<'a> {
    connections: Vec<Connection<'a>>,
    /// Latest connection between two addresses, the lower one first.
    latest: HashMap<(SocketAddr, SocketAddr), usize>,
    segments: usize,
}

/// One TCP connection between two addresses.
pub(super) struct Connection<'a> {
    /// Addresses of both ends.
    pub(super) ends: [SocketAddr; 2],
    /// Segments that each end sent.
    pub(super) ways: [Way<'a>; 2],
    /// Index of the end that opened the connection, if the capture shows it.
    pub(super) opened_by: Option<usize>,
}

/// Segments that one end sent.
#[derive(Default)]
pub(super) struct Way<'a> {
    /// Sequence number of its SYN.
    first: Option<u32>,
    /// Last sequence number, and its distance from the first one that was seen.
    last: Option<(u32, i64)>,
    /// Offset of the first byte, if the SYN was seen.
    start: Option<i64>,
    pieces: Vec<Piece<'a>>,
}

/// Data of one segment.
#[derive(Copy, Clone)]
pub(super) struct Piece<'a> {
    offset: i64,
    pub(super) mark: Mark,
    pub(super) data: &'a [u8],
}

/// Packet that completed the bytes up to some offset.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Mark {
    /// Number of the packet.
    pub(super) packet: u64,
    /// Time of the packet.
    pub(super) at: Option<u64>,
}

/// Bytes that one side sent, in order.
#[derive(Default, Debug)]
pub(super) struct Stream {
    pub(super) bytes: Bytes,
    /// Offsets up to which the bytes had arrived, each with its packet.
    marks: Vec<(usize, Mark)>,
    /// First packet after a gap.
    pub(super) lost_before: Option<u64>,
    /// True if bytes were sent before the first captured one.
    pub(super) begins_late: bool,
}

impl<'a> TcpStreams<'a> {
    /// Adds the next segment.
    ///
    /// # Errors
    /// Fails if there are too many segments or connections.
    pub(super) fn push(&mut self, mark: Mark, segment: &Segment<'a>) -> Result<(), ImportError> {
        let connection = self.connection(segment)?;
        let side = usize::from(connection.ends[0] != segment.from);
        if segment.syn {
            connection.opened_by = Some(if segment.ack { 1 - side } else { side });
        }
        let kept = connection.ways[side].push(mark, segment);
        self.segments += usize::from(kept);
        if self.segments > MAX_SEGMENTS {
            return Err(ImportError::TooMany { what: "TCP segments with data", most: MAX_SEGMENTS });
        }
        Ok(())
    }

    /// Returns all connections, in the order of their first packets.
    pub(super) fn connections(self) -> Vec<Connection<'a>> {
        self.connections
    }

    fn connection(&mut self, segment: &Segment<'a>) -> Result<&mut Connection<'a>, ImportError> {
        let ends = [segment.from, segment.to];
        let key = (segment.from.min(segment.to), segment.from.max(segment.to));
        let known = self.latest.get(&key).copied();
        let known = known.filter(|index| self.connections.get(*index).is_some_and(|known| !known.is_over(segment)));
        let index = known.unwrap_or(self.connections.len());
        if known.is_none() {
            if self.connections.len() >= MAX_CONNECTIONS {
                return Err(ImportError::TooMany { what: "TCP connections", most: MAX_CONNECTIONS });
            }
            self.connections.push(Connection { ends, ways: Default::default(), opened_by: None });
            self.latest.insert(key, index);
        }
        Ok(&mut self.connections[index])
    }
}

impl Connection<'_> {
    /// Returns true if this segment opens another connection between the same addresses.
    fn is_over(&self, segment: &Segment<'_>) -> bool {
        let side = usize::from(self.ends[0] != segment.from);
        let way = &self.ways[side];
        segment.syn && !segment.ack && way.last.is_some() && way.first != Some(segment.sequence)
    }
}

impl<'a> Way<'a> {
    /// Adds a segment. Returns false if it has no data to keep.
    fn push(&mut self, mark: Mark, segment: &Segment<'a>) -> bool {
        let offset = match self.last {
            // Sequence numbers wrap around; take the shorter way around the circle.
            Some((last, offset)) => offset + i64::from(segment.sequence.wrapping_sub(last).cast_signed()),
            None => 0,
        };
        self.last = Some((segment.sequence, offset));
        // A SYN takes one sequence number.
        let offset = offset + i64::from(segment.syn);
        if segment.syn {
            self.first = Some(segment.sequence);
            self.start = Some(offset);
        }
        if segment.payload.is_empty() || segment.rst {
            return false;
        }
        self.pieces.push(Piece { offset, mark, data: segment.payload });
        true
    }

    /// Returns the data of the segments in the order of their capture.
    pub(super) fn pieces(&self) -> &[Piece<'a>] {
        &self.pieces
    }

    /// Puts the bytes in order. If the capture does not show where they begin, they start with the first segment for
    /// which `is_start` holds.
    pub(super) fn join(&self, is_start: impl Fn(&Piece<'a>) -> bool) -> Stream {
        let mut pieces = self.pieces.clone();
        // Of two pieces with the same bytes, the one that arrived first comes first.
        pieces.sort_by_key(|piece| piece.offset);
        let mut pieces = &pieces[..];
        if self.start.is_none() {
            let skipped = pieces.iter().position(is_start).unwrap_or(pieces.len());
            pieces = &pieces[skipped..];
        }
        let mut stream =
            Stream { begins_late: self.start.is_none() && pieces.len() < self.pieces.len(), ..Stream::default() };
        let Some(mut next) = self.start.or_else(|| pieces.first().map(|piece| piece.offset)) else { return stream };
        let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.data.len()).sum());
        let mut arrived = Mark::default();
        for piece in pieces {
            let known = match usize::try_from(next - piece.offset) {
                Ok(known) => known,
                Err(_) => {
                    stream.lost_before = Some(piece.mark.packet);
                    break;
                }
            };
            let Some(new) = piece.data.get(known..).filter(|new| !new.is_empty()) else { continue };
            bytes.extend_from_slice(new);
            next += new.len() as i64;
            // A byte counts as arrived once all bytes before it have.
            if piece.mark.packet > arrived.packet {
                arrived = piece.mark;
            }
            stream.marks.push((bytes.len(), arrived));
        }
        stream.bytes = bytes.into();
        stream
    }
}

impl Stream {
    /// Returns the packet that completed the bytes up to `end`.
    pub(super) fn mark_before(&self, end: usize) -> Mark {
        let index = self.marks.partition_point(|(until, _)| *until < end);
        self.marks.get(index).or(self.marks.last()).map(|(_, mark)| *mark).unwrap_or_default()
    }

    /// Returns the bytes of a range, split where another packet begins.
    pub(super) fn cut(&self, range: Range<usize>) -> impl Iterator<Item = (&[u8], Mark)> {
        let first = self.marks.partition_point(|(until, _)| *until <= range.start);
        let mut from = range.start;
        self.marks.iter().skip(first).map_while(move |(until, mark)| {
            let part = self.bytes.get(from..(*until).min(range.end)).filter(|part| !part.is_empty())?;
            from += part.len();
            Some((part, *mark))
        })
    }
}
