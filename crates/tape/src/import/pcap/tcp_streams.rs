//! TCP connections put together from their segments: retransmissions and overlaps are left out, segments are put in order by
//! their sequence numbers, and where bytes are missing a stream ends.

use super::segment::Segment;
use crate::import::error::ImportError;
use bytes::Bytes;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;

/// Most connections of a file.
const MAX_CONNECTIONS: usize = 100_000;
/// Most segments with data of a file.
const MAX_SEGMENTS: usize = 2_000_000;

/// All connections of a file.
#[derive(Default)]
pub(super) struct TcpStreams<'a> {
    connections: Vec<Connection<'a>>,
    /// The latest connection between two addresses, the lower one first.
    latest: HashMap<(SocketAddr, SocketAddr), usize>,
    segments: usize,
}

/// One connection.
pub(super) struct Connection<'a> {
    /// Who sends one way, and who the other.
    pub(super) ends: [SocketAddr; 2],
    /// What each of them sent.
    pub(super) ways: [Way<'a>; 2],
    /// Which of them opened the connection, if the capture shows it.
    pub(super) opened_by: Option<usize>,
}

/// What one side sent.
#[derive(Default)]
pub(super) struct Way<'a> {
    /// The sequence number of its SYN.
    first: Option<u32>,
    /// The last sequence number, and how far that is from the first one that was seen.
    last: Option<(u32, i64)>,
    /// Where its bytes begin, if its SYN was seen.
    start: Option<i64>,
    pieces: Vec<Piece<'a>>,
}

/// The data of one segment.
#[derive(Copy, Clone)]
pub(super) struct Piece<'a> {
    offset: i64,
    pub(super) mark: Mark,
    pub(super) data: &'a [u8],
}

/// The packet by which a byte had arrived.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Mark {
    /// Its number.
    pub(super) packet: u64,
    /// Its time.
    pub(super) at: Option<u64>,
}

/// The bytes that one side sent, in their order.
#[derive(Default, Debug)]
pub(super) struct Stream {
    /// The bytes.
    pub(super) bytes: Bytes,
    /// Up to where bytes had arrived with which packet.
    marks: Vec<(usize, Mark)>,
    /// The first packet after bytes that are missing.
    pub(super) lost_before: Option<u64>,
    /// Something was sent before the first byte.
    pub(super) begins_late: bool,
}

impl<'a> TcpStreams<'a> {
    /// Takes in the next segment.
    ///
    /// # Errors
    /// If there are too many.
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

    /// All connections, in the order of their first packets.
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
    /// Whether this segment opens another connection between the same addresses.
    fn is_over(&self, segment: &Segment<'_>) -> bool {
        let side = usize::from(self.ends[0] != segment.from);
        let way = &self.ways[side];
        segment.syn && !segment.ack && way.last.is_some() && way.first != Some(segment.sequence)
    }
}

impl<'a> Way<'a> {
    /// Takes in a segment, and says whether anything of it is kept.
    fn push(&mut self, mark: Mark, segment: &Segment<'a>) -> bool {
        let offset = match self.last {
            // The nearer way around the circle of sequence numbers.
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

    /// The data of its segments, in the order in which they were captured.
    pub(super) fn pieces(&self) -> &[Piece<'a>] {
        &self.pieces
    }

    /// Puts its bytes in order. If the capture does not show where they begin, they begin with the first segment for which
    /// `is_start` holds.
    pub(super) fn join(&self, is_start: impl Fn(&Piece<'a>) -> bool) -> Stream {
        let mut pieces = self.pieces.clone();
        // The first of two with the same bytes is the one that arrived first.
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
            // A byte has arrived when all before it have.
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
    /// The packet by which the byte before this place had arrived.
    pub(super) fn mark_before(&self, end: usize) -> Mark {
        let index = self.marks.partition_point(|(until, _)| *until < end);
        self.marks.get(index).or(self.marks.last()).map(|(_, mark)| *mark).unwrap_or_default()
    }

    /// The bytes of a range, cut where another packet begins.
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
