//! How far the plain part of a string reaches.

use memchr::memchr2;

/// How many words are looked at one by one. Most strings end within them.
const WORDS: usize = 4;
/// How many of them are looked at without a call.
const NEAR: usize = 2;
/// Longer strings are searched and judged a chunk at a time, so that a chunk is still at hand when it is judged.
const CHUNK: usize = 4096;
/// How many bytes are judged at once; the compiler turns them into vector code.
const LANES: usize = 16;
/// How many bytes are judged in one turn.
const BLOCK: usize = 4 * LANES;

const ONES: u64 = 0x0101_0101_0101_0101;

/// The beginning of a string.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Plain {
    /// How many bytes are neither quote nor backslash nor control character.
    pub length: usize,
    /// Not zero under [`HIGH`] where one of them may not be ASCII: bytes that follow them may count too.
    pub seen: u64,
}

/// The bits that no ASCII character has.
pub(crate) const HIGH: u64 = ONES << 7;

/// How far `bytes` are plain. Short strings end within the first words, which is found out in place.
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

/// The least of these bytes, and all of them together.
fn bounds(bytes: &[u8]) -> (u8, u8) {
    let Some(last) = bytes.last_chunk::<LANES>() else {
        return bytes.iter().fold((0xFF, 0), |(least, all), &byte| (byte.min(least), all | byte));
    };
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut bounds = ([0xFF; LANES], [0; LANES]);
    for block in blocks {
        for lanes in block.as_chunks::<LANES>().0 {
            bounds = widened(bounds, lanes);
        }
    }
    // The last lanes may overlap those before, which spares a loop over single bytes.
    for lanes in rest.as_chunks::<LANES>().0.iter().chain([last]) {
        bounds = widened(bounds, lanes);
    }
    let (least, all) = bounds;
    (least.iter().fold(0xFF, |one, other| one.min(*other)), all.iter().fold(0, |one, other| one | other))
}

#[inline]
fn widened((least, all): ([u8; LANES], [u8; LANES]), lanes: &[u8; LANES]) -> ([u8; LANES], [u8; LANES]) {
    (std::array::from_fn(|lane| least[lane].min(lanes[lane])), std::array::from_fn(|lane| all[lane] | lanes[lane]))
}

#[inline]
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

/// The lowest bit set marks the first special byte of `word`. Bits above it may be wrong.
#[inline]
fn special_bytes(word: u64) -> u64 {
    let quote = (word ^ (ONES * 0x22)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * 0x5C)).wrapping_sub(ONES);
    let control = word.wrapping_sub(ONES * 0x20);
    // Neither of the two characters has a high bit, so a byte without one keeps none under them.
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
