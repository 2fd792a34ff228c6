//! Text messages from the frames that one side of a WebSocket sent.

use super::tcp_streams::{Mark, Stream};
use bytes::Bytes;
use signalbox_wire::Limits;

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

/// Error that ends the reading of frames.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum FrameError {
    /// A frame is compressed or uses another extension.
    Extension(Mark),
    /// A message exceeds the size limit.
    TooLarge(Mark),
}

/// Collects the text messages from this offset of a stream on, each with the packet that completed it.
pub(super) fn text_messages(stream: &Stream, from: usize, found: &mut Vec<(Bytes, Mark)>) -> Result<(), FrameError> {
    let limit = Limits::default().message;
    let mut at = from;
    // Partial message of the frames read so far, and whether it is text.
    let (mut message, mut is_text) = (Vec::new(), false);
    while let Some(frame) = Frame::read(&stream.bytes, at) {
        let mark = stream.mark_before(frame.end);
        if frame.first & RESERVED != 0 {
            return Err(FrameError::Extension(mark));
        }
        let opcode = frame.first & OPCODE;
        let Some(payload) = stream.bytes.get(frame.payload..frame.end) else { return Ok(()) };
        at = frame.end;
        // Control frames may come in the middle of a message.
        if opcode >= 8 {
            continue;
        }
        if opcode != 0 {
            message.clear();
            is_text = opcode == 1;
        }
        if message.len() + payload.len() > limit {
            return Err(FrameError::TooLarge(mark));
        }
        let key = frame.key.iter().cycle();
        message.extend(payload.iter().zip(key).map(|(byte, key)| byte ^ key));
        if frame.first & FINAL != 0 && is_text {
            found.push((Bytes::from(std::mem::take(&mut message)), mark));
        }
    }
    Ok(())
}

/// Head of a frame.
struct Frame {
    first: u8,
    /// Masking key, all zeros if the frame is not masked.
    key: [u8; 4],
    /// Offsets of the payload's begin and end.
    payload: usize,
    end: usize,
}

impl Frame {
    fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let [first, second, rest @ ..] = bytes.get(at..)? else { return None };
        let (length, wide) = match second & LENGTH {
            126 => (u64::from(u16::from_be_bytes(*rest.first_chunk()?)), 2),
            127 => (u64::from_be_bytes(*rest.first_chunk()?), 8),
            short => (u64::from(short), 0),
        };
        let (key, masked) = match second & MASKED != 0 {
            true => (*rest.get(wide..)?.first_chunk()?, 4),
            false => ([0; 4], 0),
        };
        let payload = at + 2 + wide + masked;
        Some(Self { first: *first, key, payload, end: payload.checked_add(usize::try_from(length).ok()?)? })
    }
}
