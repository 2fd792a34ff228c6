//! Finds the end of the plain part of a JSON string.

use memchr::memchr2;

/// Number of words checked one by one. Most strings end within them.
const WORDS: usize = 4;
/// Number of those words checked inline.
const NEAR: usize = 2;
/// Chunk size for longer strings. Each chunk is searched and then checked while it is still in the cache.
const CHUNK: usize = 4096;
/// Number of bytes checked at once. The compiler vectorizes this.
const LANES: usize = 16;
/// Number of bytes checked per iteration.
const BLOCK: usize = 4 * LANES;

const ONES: u64 = 0x0101_0101_0101_0101;

/// Plain prefix of a string.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Plain {
    /// Number of bytes before the first quote, backslash or control character.
    pub length: usize,
    /// Bitwise OR of the prefix. If masked with [`HIGH`] it is not zero, the string may contain non-ASCII bytes. May
    /// include bytes after the prefix.
    pub seen: u64,
}

/// High bit of every byte, which is clear in ASCII.
pub(crate) const HIGH: u64 = ONES << 7;

/// Scans the plain prefix of `bytes`. Checks the first words inline, where short strings end.
#[inline(always)]
pub(crate) fn plain(bytes: &[u8]) -> Plain {
    let (words, _) = bytes.as_chunks::<8>();
    let mut seen = 0;
    for index in 0..NEAR {
        let Some(word) = words.get(index) else { break };
        let word = u64::from_le_bytes(*word);
        seen |= word;
        let special = special_bytes(word);
        if special != 0 {
            return Plain { length: index * 8 + (special.trailing_zeros() / 8) as usize, seen };
        }
    }
    let far = plain_words(bytes);
    Plain { length: far.length, seen: seen | far.seen }
}

#[inline(never)]
fn plain_words(bytes: &[u8]) -> Plain {
    let (words, _) = bytes.as_chunks::<8>();
    let mut seen = 0;
    for (index, word) in words.iter().take(WORDS).enumerate().skip(NEAR) {
        let word = u64::from_le_bytes(*word);
        seen |= word;
        let special = special_bytes(word);
        if special != 0 {
            return Plain { length: index * 8 + (special.trailing_zeros() / 8) as usize, seen };
        }
    }
    let looked = words.len().min(WORDS) * 8;
    let rest = bytes.get(looked..).unwrap_or(&[]);
    let (length, more) = if words.len() > WORDS { plain_chunks(rest) } else { plain_bytes(rest) };
    Plain { length: looked + length, seen: seen | more }
}

fn plain_bytes(bytes: &[u8]) -> (usize, u64) {
    let length = bytes.iter().position(|&byte| is_special(byte)).unwrap_or(bytes.len());
    let all = bytes.iter().take(length).fold(0, |all, &byte| all | byte);
    (length, u64::from(all))
}

#[inline(never)]
fn plain_chunks(bytes: &[u8]) -> (usize, u64) {
    let mut length = 0;
    let mut all = 0;
    for chunk in bytes.chunks(CHUNK) {
        let found = memchr2(b'"', b'\\', chunk);
        let run = chunk.get(..found.unwrap_or(chunk.len())).unwrap_or(chunk);
        let (least, more) = bounds(run);
        all |= more;
        if least < 0x20 {
            let control = run.iter().position(|&byte| byte < 0x20).unwrap_or(run.len());
            return (length + control, u64::from(all));
        }
        length += run.len();
        if found.is_some() {
            break;
        }
    }
    (length, u64::from(all))
}

/// Returns the minimum and the bitwise OR of the bytes.
fn bounds(bytes: &[u8]) -> (u8, u8) {
    let Some(last) = bytes.last_chunk::<LANES>() else {
        return bytes.iter().fold((0xFF, 0), |(least, all), &byte| (byte.min(least), all | byte));
    };
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut bounds = ([0xFF; LANES], [0; LANES]);
    for block in blocks {
        for lanes in block.as_chunks::<LANES>().0 {
            bounds = widen(bounds.0, bounds.1, lanes);
        }
    }
    // The last lanes may overlap the previous ones, which saves a loop over single bytes.
    for lanes in rest.as_chunks::<LANES>().0.iter().chain([last]) {
        bounds = widen(bounds.0, bounds.1, lanes);
    }
    let (least, all) = bounds;
    (least.iter().fold(0xFF, |one, other| one.min(*other)), all.iter().fold(0, |one, other| one | other))
}

#[inline]
fn widen(least: [u8; LANES], all: [u8; LANES], lanes: &[u8; LANES]) -> ([u8; LANES], [u8; LANES]) {
    (std::array::from_fn(|lane| least[lane].min(lanes[lane])), std::array::from_fn(|lane| all[lane] | lanes[lane]))
}

#[inline]
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

/// Marks the special bytes of `word`. Only the lowest set bit is reliable.
#[inline]
fn special_bytes(word: u64) -> u64 {
    let quote = (word ^ (ONES * 0x22)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * 0x5C)).wrapping_sub(ONES);
    let control = word.wrapping_sub(ONES * 0x20);
    // Neither character has a high bit, so the result is exact for bytes without one.
    (quote | backslash | control) & !word & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, one byte after the other.
    fn slowly(bytes: &[u8]) -> usize {
        bytes.iter().position(|&byte| is_special(byte)).unwrap_or(bytes.len())
    }

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for length in (0..200).chain([CHUNK - 1, CHUNK, CHUNK + 33, 2 * CHUNK + 40]) {
            for special in [b'"', b'\\', 0, 0x1F] {
                for before in [b'x', b' ', b'!', b'#', b']', 0x7F, 0x80, 0xFF] {
                    let mut bytes = vec![before; length];
                    bytes.push(special);
                    bytes.extend_from_slice(b"yy\"yy\\yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
                    assert_eq!(plain(&bytes).length, slowly(&bytes), "{length} {special} {before}");
                    assert_eq!(plain(&bytes[..length]).length, length);
                    let high = plain(&bytes[..length]).seen & HIGH != 0;
                    assert_eq!(high, before >= 0x80 && length > 0, "{length} {before}");
                }
            }
        }
    }

    #[test]
    fn one_high_byte_anywhere_is_seen() {
        for length in [1, 7, 8, 9, 31, 32, 33, 40, 63, 64, 100, CHUNK + 50] {
            for at in (0..length).step_by(7) {
                let mut bytes = vec![b'x'; length];
                bytes[at] = 0xC3;
                assert_ne!(plain(&bytes).seen & HIGH, 0, "{at} of {length}");
            }
        }
    }
}
