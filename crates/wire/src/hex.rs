//! Hexadecimal encoding of bytes.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Formats bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(&mut text, bytes);
    text
}

/// Appends bytes as lower-case hexadecimal digits.
pub fn push_hex(text: &mut String, bytes: &[u8]) {
    for part in bytes.chunks(32) {
        let mut digits = [[0; 2]; 32];
        for (pair, byte) in digits.iter_mut().zip(part) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        // Digits are valid UTF-8.
        text.push_str(str::from_utf8(digits[..part.len()].as_flattened()).unwrap_or_default());
    }
}

/// Decodes hexadecimal digits of either case. Returns `None` for any other text.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_and_read_as_digits() {
        assert_eq!(hex(&[0, 0x9f, 0xff]), "009fff");
        assert_eq!(unhex("009FfF"), Some(vec![0, 0x9f, 0xff]));
        assert_eq!(unhex(""), Some(Vec::new()));
        for text in ["0", "0g", "é", "0x00"] {
            assert_eq!(unhex(text), None, "{text}");
        }
    }
}
