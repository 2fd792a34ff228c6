//! Decodes rows of numbers that stand for bytes.

use super::{Emit, TextEncoding};
use crate::encoded_text;
use std::ops::{ControlFlow, Range};

/// Minimum count of numbers in a row.
const MIN_COUNT: usize = 6;
/// Maximum length of a separator between two numbers.
const MAX_GAP: usize = 3;

/// Emits the text of each row.
pub(super) fn decode(text: &str, emit: &mut Emit<'_>) -> ControlFlow<()> {
    let (mut row, mut count) = (0..0, 0_usize);
    let mut at = 0;
    while let Some(number) = next_word(text, at) {
        at = number.end;
        let is_number = is_byte(text.as_bytes().get(number.clone()).unwrap_or_default());
        if count > 0 && is_number && number.start - row.end <= MAX_GAP {
            (row.end, count) = (number.end, count + 1);
            continue;
        }
        emit_row(text, &row, count, emit)?;
        (row, count) = (number, usize::from(is_number));
    }
    emit_row(text, &row, count, emit)
}

/// Returns the place of the next letters or digits.
fn next_word(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80;
    let start = from + bytes.get(from..)?.iter().position(is_part)?;
    let rest = bytes.get(start..)?;
    Some(start..start + rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len()))
}

/// Returns true for a number that [`encoded_text::decode_numbers`] reads.
fn is_byte(word: &[u8]) -> bool {
    matches!(word.len(), 1..=3 | 8) && word.iter().all(u8::is_ascii_hexdigit)
}

fn emit_row(text: &str, row: &Range<usize>, count: usize, emit: &mut Emit<'_>) -> ControlFlow<()> {
    let bytes = (count >= MIN_COUNT).then(|| encoded_text::decode_numbers(text.get(row.clone())?)).flatten();
    match bytes {
        Some(bytes) => emit(String::from_utf8_lossy(&bytes).into_owned(), TextEncoding::Numbers, row.clone()),
        None => ControlFlow::Continue(()),
    }
}
