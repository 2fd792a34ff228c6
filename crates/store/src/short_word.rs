//! Words of up to 16 ASCII letters and digits, read eight bytes at a time.
//!
//! Nearly all words of a text are such words. They are compared as numbers, without a copy and without a pointer to
//! follow.

/// Maximum length of a short word, in bytes.
pub const MAX_SHORT: usize = 16;

/// The high bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;
const LOW_BITS: u64 = !HIGH;

/// ASCII letters and digits in lower case, the first in the lowest byte. The rest is zero.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct ShortWord(pub u128);

impl ShortWord {
    /// Reads the word that begins at `at`. Returns `None` if it is empty or too long, or stands too close to the end of
    /// the text to be read at once.
    pub fn read(bytes: &[u8], at: usize) -> Option<(Self, usize)> {
        let (first, second) = bytes.get(at..at + MAX_SHORT)?.split_first_chunk()?;
        let (low, length) = lower(u64::from_le_bytes(*first));
        if length < 8 {
            return (length > 0).then_some((Self(u128::from(low)), length));
        }
        let (high, more) = lower(u64::from_le_bytes(*second.first_chunk()?));
        (more < 8).then_some((Self(u128::from(low) | u128::from(high) << 64), length + more))
    }

    /// Calls `each` with the word as text.
    pub fn with<R>(self, length: usize, each: impl FnOnce(&str) -> R) -> R {
        let bytes = self.0.to_le_bytes();
        // Only ASCII letters and digits are in it.
        each(std::str::from_utf8(&bytes[..length.min(MAX_SHORT)]).unwrap_or_default())
    }
}

/// Returns the letters and digits that begin these eight bytes, in lower case, and their number.
fn lower(bytes: u64) -> (u64, usize) {
    let ascii = bytes & LOW_BITS;
    let folded = ascii | splat(0x20);
    let letters = (folded + splat(0x80 - b'a')) & !(folded + splat(0x80 - b'z' - 1));
    let digits = (ascii + splat(0x80 - b'0')) & !(ascii + splat(0x80 - b'9' - 1));
    let others = !((letters | digits) & !bytes) & HIGH;
    let length = others.trailing_zeros() as usize / 8;
    let small = ascii | (letters & HIGH) >> 2;
    match length {
        8.. => (small, 8),
        length => (small & ((1 << (8 * length)) - 1), length),
    }
}

const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Option<String> {
        let padded = [text.as_bytes(), b" ".repeat(MAX_SHORT).as_slice()].concat();
        let (word, length) = ShortWord::read(&padded, 0)?;
        Some(word.with(length, str::to_owned))
    }

    #[test]
    fn every_byte_is_part_of_a_word_if_it_is_a_letter_or_digit() {
        for (byte, at) in (0..=255u8).flat_map(|byte| (0..15).map(move |at| (byte, at))) {
            let mut bytes = [b'x'; 32];
            bytes[at] = byte;
            bytes[15] = b'.';
            let expected = if byte.is_ascii_alphanumeric() { 15 } else { at };
            let read = ShortWord::read(&bytes, 0).map_or(0, |(_, length)| length);
            assert_eq!(read, expected, "{byte} at {at}");
        }
    }

    #[test]
    fn words_are_read_in_lower_case_up_to_their_limit() {
        for text in ["a", "Zebra9", "ABCDEFGH", "aBcDeFgHi", "abcdefghijklmno"] {
            assert_eq!(word(text), Some(text.to_lowercase()));
        }
        assert_eq!(word("abcdefghijklmnop"), None, "it may go on");
        assert_eq!(word("-a"), None);
        assert_eq!(ShortWord::read(b"near the end", 9), None);
    }
}
