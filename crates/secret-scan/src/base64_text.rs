//! Decodes text in base64, in either alphabet, and in hex digits, one level deep.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

/// Minimum length of a run that is decoded: 15 bytes of text.
const SHORTEST: usize = 20;
/// Maximum number of characters of a run that are decoded; the rest of the run is skipped.
const LONGEST: usize = 1 << 20;
/// Number of characters that are decoded to check whether a run is text at all.
const SAMPLE: usize = 16;

/// Accepts missing padding and surplus bits, which encoders often produce.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Characters of either base64 alphabet.
const OF_BASE64: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'+' | b'/' | b'-' | b'_');
        byte += 1;
    }
    table
};

/// Notation of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Form {
    Base64,
    Hex,
}

/// A run of base64 or hex digits that decodes to text.
pub(crate) struct Run {
    form: Form,
    /// Offset of its first digit.
    start: usize,
    /// Offset after its last digit.
    end: usize,
    /// Text that the digits encode.
    pub(crate) bytes: Vec<u8>,
}

impl Run {
    /// Returns the range of the characters that encode the bytes `from..to`.
    pub(crate) fn place(&self, from: usize, to: usize) -> (usize, usize) {
        let (from, to) = match self.form {
            Form::Base64 => (from / 3 * 4, to.div_ceil(3) * 4),
            Form::Hex => (from * 2, to * 2),
        };
        (self.start + from, (self.start + to).min(self.end))
    }
}

/// Iterates over the runs of a text that decode to text themselves.
pub(crate) fn runs(text: &[u8]) -> impl Iterator<Item = Run> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let (start, end) = next(text, at)?;
            at = end;
            if let Some(run) = read(text, start, end) {
                return Some(run);
            }
        }
    })
}

/// Returns the next run of digits that is long enough. It examines the far end of each stretch first, so that most
/// bytes of ordinary text are never examined.
fn next(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let is_digit = |byte: &u8| OF_BASE64.get(usize::from(*byte)).is_some_and(|digit| *digit);
    let mut start = from;
    loop {
        let stretch = text.get(start..start + SHORTEST)?;
        match stretch.iter().rposition(|byte| !is_digit(byte)) {
            Some(other) => start += other + 1,
            None => {
                let rest = text.get(start + SHORTEST..).unwrap_or_default();
                let more = rest.iter().position(|byte| !is_digit(byte)).unwrap_or(rest.len());
                return Some((start, start + SHORTEST + more));
            }
        }
    }
}

/// Decodes a run, if it is text. After a backslash the first letter belongs to an escape like `\n`.
fn read(text: &[u8], start: usize, end: usize) -> Option<Run> {
    let escaped = start.checked_sub(1).and_then(|before| text.get(before)) == Some(&b'\\');
    let start = start + usize::from(escaped);
    let digits = text.get(start..end.min(start + LONGEST))?;
    let sample = digits.get(..SAMPLE)?;
    if unhex(sample).is_some_and(|bytes| is_text(&bytes)) {
        return Some(Run { form: Form::Hex, start, end, bytes: unhex(digits)? });
    }
    if !is_text(&decode(sample)?) {
        return None;
    }
    let whole = digits.len() - usize::from(digits.len() % 4 == 1);
    Some(Run { form: Form::Base64, start, end, bytes: decode(digits.get(..whole)?)? })
}

/// Decodes pairs of hex digits; returns `None` if there are other characters.
fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| u8::try_from(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?).ok();
    digits.chunks_exact(2).map(byte).collect()
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'))
}

fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let usual = |byte: &u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => *other,
    };
    LENIENT.decode(digits.iter().map(usual).collect::<Vec<u8>>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(text: &str) -> Vec<String> {
        runs(text.as_bytes()).map(|run| String::from_utf8_lossy(&run.bytes).into_owned()).collect()
    }

    #[test]
    fn text_is_decoded_with_and_without_padding_and_in_both_alphabets() {
        let plain = "user: ann, password: ~~~???>>> and so on";
        let padded = base64::engine::general_purpose::STANDARD.encode(plain);
        let url = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(plain);
        assert_ne!(padded, url);
        assert_eq!(meant(&format!("x = {padded};")), [plain]);
        assert_eq!(meant(&format!("\"{url}\"")), [plain]);
        assert_eq!(meant(&format!("first\\n{url}\\n")), [plain], "behind an escape within a JSON string");
    }

    #[test]
    fn hex_digits_are_decoded_and_their_place_is_known() {
        let text = "id 70617373776f72643d7a6562726120343711 end";
        let run = runs(text.as_bytes()).next().unwrap();
        assert!(run.bytes.starts_with(b"password=zebra 47"));
        let (from, to) = run.place(9, 14);
        assert_eq!(&text[from..to], "7a65627261");
    }

    #[test]
    fn identifiers_paths_and_pictures_mean_no_text() {
        for text in [
            "a_rather_long_identifier_of_some_program",
            "/usr/local/lib/python3/site-packages/something",
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
            "0123456789abcdef0123456789abcdef01234567",
        ] {
            assert_eq!(meant(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn the_place_of_a_part_covers_all_of_its_digits() {
        let text = base64::engine::general_purpose::STANDARD.encode("before SECRET behind it");
        let run = runs(text.as_bytes()).next().unwrap();
        let (from, to) = run.place(7, 13);
        let left = format!("{}{}", &text[..from], &text[to..]);
        let left = base64::engine::general_purpose::STANDARD.decode(left).unwrap();
        assert!(!String::from_utf8_lossy(&left).contains(['S', 'E', 'C', 'R', 'T']));
    }
}
