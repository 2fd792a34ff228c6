//! Decodes runs of digits of base64, base32 and hex.

use super::{Emit, MIN_ENCODED, TextEncoding, printable_text};
use crate::encoded_text::{self, MAX_DECODED};
use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

/// Minimum length of a run of hexadecimal digits.
const MIN_HEX: usize = 12;
/// Minimum length of a run that is decoded from each of the places where a group can begin.
const MIN_PHASES: usize = 24;
/// Minimum length of a run that is decoded even though it looks like a word.
const MIN_WORD_LIKE: usize = 16;
/// Maximum number of digits that the decoders take at once; each is a multiple of their groups.
const BASE64_CHUNK: usize = MAX_DECODED / 3 * 4;
const BASE32_CHUNK: usize = MAX_DECODED / 5 * 8;
const HEX_CHUNK: usize = MAX_DECODED * 2;

/// Emits the text of each run of digits. A long run may begin in the middle of a group, because other letters can stand
/// directly before it. A run may go on over line breaks.
pub(super) fn decode(text: &str, emit: &mut Emit<'_>) -> ControlFlow<()> {
    for run in runs(text, MIN_HEX, |byte| byte.is_ascii_hexdigit()) {
        let digits = join_lines(text, &run);
        for phase in 0..2 {
            let digits = digits.get(phase..).unwrap_or_default();
            let even = digits.get(..digits.len() & !1).unwrap_or_default();
            if let Some(decoded) = decode_chunks(even, HEX_CHUNK, encoded_text::decode_hex) {
                emit(decoded, TextEncoding::Hex, run.clone())?;
            }
        }
    }
    for run in runs(text, MIN_ENCODED, |byte| encoded_text::base64_value(byte).is_some()) {
        let digits = join_lines(text, &run);
        if is_word(&digits) {
            continue;
        }
        if digits.bytes().all(|digit| matches!(digit, b'A'..=b'Z' | b'2'..=b'7'))
            && let Some(decoded) = decode_chunks(&digits, BASE32_CHUNK, encoded_text::decode_base32)
        {
            emit(decoded, TextEncoding::Base32, run.clone())?;
        }
        let mut decode_part = |digits: &str| match decode_base64(digits) {
            Some(decoded) => emit(decoded, TextEncoding::Base64, run.clone()),
            None => ControlFlow::Continue(()),
        };
        if digits.len() >= MIN_PHASES {
            (0..4).try_for_each(|phase| decode_part(digits.get(phase..).unwrap_or_default()))?;
        } else {
            decode_part(&digits)?;
            // Words and signs may stand before a short run.
            let parts = digits.split(['-', '_', '/', '+']).filter(|part| part.len() < digits.len());
            parts.filter(|part| part.len() >= MIN_ENCODED && !is_word(part)).try_for_each(decode_part)?;
        }
    }
    ControlFlow::Continue(())
}

fn decode_base64(digits: &str) -> Option<String> {
    // A single digit after the last group holds no byte.
    let end = if digits.len() % 4 == 1 { digits.len() - 1 } else { digits.len() };
    decode_chunks(digits.get(..end)?, BASE64_CHUNK, encoded_text::decode_base64)
}

/// Returns the places of runs of digits with line breaks between them.
fn runs(text: &str, min: usize, is_digit: impl Fn(u8) -> bool) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += bytes.get(at..)?.iter().position(|byte| is_digit(*byte))?;
            let start = at;
            let rest = bytes.get(at..)?;
            let is_end = |byte: &u8| !is_digit(*byte) && !matches!(*byte, b'\n' | b'\r');
            at += rest.iter().position(is_end).unwrap_or(rest.len());
            if at - start >= min {
                return Some(start..at);
            }
        }
    })
}

/// Returns the digits of a run without line breaks.
fn join_lines<'t>(text: &'t str, run: &Range<usize>) -> Cow<'t, str> {
    let digits = text.get(run.clone()).unwrap_or_default();
    match digits.contains(['\n', '\r']) {
        true => Cow::Owned(digits.replace(['\n', '\r'], "")),
        false => Cow::Borrowed(digits),
    }
}

/// Returns true for a short run without digits or capitals, except for the first letter. Encoded text hardly ever
/// looks like that.
fn is_word(run: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_' || byte == b'/';
    run.len() < MIN_WORD_LIKE && run.bytes().skip(1).all(is_plain)
}

/// Decodes a run piece by piece.
fn decode_chunks(digits: &str, size: usize, decode: fn(&str) -> Option<Vec<u8>>) -> Option<String> {
    if digits.len() <= size {
        return printable_text(&decode(digits)?);
    }
    let mut bytes = Vec::with_capacity(digits.len());
    // Digits are ASCII, so that every chunk is a text.
    for chunk in digits.as_bytes().chunks(size) {
        bytes.extend(decode(std::str::from_utf8(chunk).ok()?)?);
    }
    printable_text(&bytes)
}
