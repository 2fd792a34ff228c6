//! Decodes base64 and hex that may hold text.

/// Maximum number of bytes that are decoded from one part.
pub(crate) const MAX_DECODED: usize = 16 << 10;
/// Share of the decoded bytes that must be printable, in percent.
const PRINTABLE_PERCENT: usize = 95;
/// Minimum number of decoded bytes that count as text. Shorter ones are printable by chance.
const MIN_TEXT: usize = 11;

/// Decodes a run of hexadecimal digits.
pub(crate) fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes().get(..text.len().min(MAX_DECODED * 2) & !1)?;
    if text.len() % 2 == 1 {
        return None;
    }
    let nibble = |byte: u8| char::from(byte).to_digit(16);
    let decode = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(nibble(*high)? << 4 | nibble(*low)?).ok(),
        _ => None,
    };
    bytes.chunks(2).map(decode).collect()
}

/// Decodes base64 in either alphabet, with or without padding.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let digits = digits.as_bytes().get(..digits.len().min(MAX_DECODED / 3 * 4))?;
    if digits.len() % 4 == 1 {
        return None;
    }
    let mut decoded = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for byte in group {
            bits = bits << 6 | u32::from(base64_value(*byte)?);
        }
        let [_, bytes @ ..] = (bits << (6 * (4 - group.len()))).to_be_bytes();
        decoded.extend(bytes.iter().take(group.len() * 6 / 8));
    }
    Some(decoded)
}

/// Decodes base32 of RFC 4648.
pub(crate) fn decode_base32(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let digits = digits.as_bytes().get(..digits.len().min(MAX_DECODED / 5 * 8))?;
    let (mut bits, mut count) = (0_u32, 0_u32);
    let mut decoded = Vec::with_capacity(digits.len() / 8 * 5 + 5);
    for byte in digits {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'2'..=b'7' => byte - b'2' + 26,
            _ => return None,
        };
        bits = (bits << 5 | u32::from(value)) & 0xfff;
        count += 5;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count & 0xff) as u8);
        }
    }
    Some(decoded)
}

/// Decodes numbers that stand for bytes: eight binary, two hexadecimal or three octal or up to three
/// decimal digits each.
pub(crate) fn decode_numbers(text: &str) -> Option<Vec<u8>> {
    let words: Vec<&str> =
        text.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let decode = |radix: u32, length: Option<usize>| -> Option<Vec<u8>> {
        let fits = |word: &&str| length.is_none_or(|length| word.len() == length);
        words
            .iter()
            .take(MAX_DECODED)
            .map(|word| Some(*word).filter(fits).and_then(|word| u8::from_str_radix(word, radix).ok()))
            .collect()
    };
    let all = [decode(2, Some(8)), decode(8, Some(3)), decode(10, None), decode(16, Some(2))];
    all.into_iter().flatten().find(|bytes| is_text(bytes))
}

/// Letters and digits in Morse code, in the order of the alphabet.
const MORSE: [&str; 36] = [
    ".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--", "-.", "---", ".--.",
    "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--", "--..", "-----", ".----", "..---", "...--",
    "....-", ".....", "-....", "--...", "---..", "----.",
];

/// Replaces signs of Morse code by letters. A slash or a longer gap ends a word.
pub(crate) fn decode_morse(text: &str) -> String {
    let letter = |sign: &str| {
        let at = MORSE.iter().position(|known| *known == sign)?;
        b"abcdefghijklmnopqrstuvwxyz0123456789".get(at).map(|byte| char::from(*byte))
    };
    text.split(' ').map(|sign| letter(sign).unwrap_or(' ')).collect()
}

/// The six bits of each byte that is a digit, and `NO_DIGIT` for the others.
static BASE64_VALUES: [u8; 256] = base64_values();
const NO_DIGIT: u8 = 0xff;

const fn base64_values() -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut byte = 0;
    while byte < 256 {
        values[byte] = match byte as u8 {
            digit @ b'A'..=b'Z' => digit - b'A',
            digit @ b'a'..=b'z' => digit - b'a' + 26,
            digit @ b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => NO_DIGIT,
        };
        byte += 1;
    }
    values
}

/// Returns the six bits of a digit.
pub(crate) fn base64_value(byte: u8) -> Option<u8> {
    Some(BASE64_VALUES[usize::from(byte)]).filter(|value| *value != NO_DIGIT)
}

/// Returns true if bytes are a text rather than random or binary data.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let printable = text.chars().filter(|character| !character.is_control() || character.is_whitespace()).count();
    let count = text.chars().count();
    text.len() >= MIN_TEXT && printable * 100 >= count * PRINTABLE_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of RFC 4648.
    #[test]
    fn vectors_of_the_standard_are_decoded() {
        for (encoded, text) in
            [("Zg==", "f"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9vYg", "foob"), ("Zm9vYmFy", "foobar")]
        {
            assert_eq!(decode_base64(encoded).unwrap(), text.as_bytes());
        }
        assert_eq!(decode_base64("_-8").unwrap(), [0xff, 0xef]);
        assert_eq!(decode_base64("Zg!v"), None);
        assert_eq!(decode_hex("666F6f").unwrap(), b"foo");
        assert_eq!(decode_hex("66f"), None);
    }

    #[test]
    fn base32_and_numbers_are_decoded() {
        for (encoded, text) in [("MY======", "f"), ("MZXW6===", "foo"), ("MZXW6YTBOI======", "foobar")] {
            assert_eq!(decode_base32(encoded).unwrap(), text.as_bytes());
        }
        assert_eq!(decode_base32("a"), None);
        for encoded in ["104 101 108 108 111 32 119 111 114 108 100", "68 65 6c 6c 6f 20 77 6f 72 6c 64"] {
            assert_eq!(decode_numbers(encoded).unwrap(), b"hello world");
        }
        let octal = "150 145 154 154 157 040 167 157 162 154 144 041";
        assert_eq!(decode_numbers(octal).unwrap(), b"hello world!");
        assert_eq!(decode_morse("... --- ... / .- 5"), "sos a ");
        assert_eq!(decode_numbers("1 2 3 4 5 6 7 8 9 10 11 12 13"), None);
    }

    #[test]
    fn random_bytes_are_no_text() {
        assert!(is_text("the secret is out".as_bytes()) && is_text("秘密のデータ".as_bytes()));
        assert!(!is_text(b"short") && !is_text(&[0x80; 20]) && !is_text(&[1; 20]));
    }
}
