//! Forms of a text in which data can leave unrecognised: base64, hex, escapes, reversed, letter by letter.
//!
//! Data that is searched for in a text has to be searched for in what the text decodes to as well. Decoding takes
//! linear time and goes two layers deep. What does not decode to printable text is left out.

mod digit_runs;
mod encoding_layers;
mod number_rows;
mod spaced_text;
#[cfg(test)]
mod tests;
mod text_encoding;
mod text_part;

pub use encoding_layers::EncodingLayers;
pub use text_encoding::TextEncoding;
pub(crate) use text_part::TextPart;

use crate::escaped_text;
use std::ops::{ControlFlow, Range};

/// Minimum length of a text that is decoded, in bytes. Shorter ones hold no value worth searching for.
const MIN_ENCODED: usize = 8;
/// Minimum number of printable characters in a row that are kept of decoded bytes.
const MIN_PRINTABLE: usize = 6;
/// Bytes of the second layer that are visited for each byte of the text.
const SECOND_LAYER_FACTOR: usize = 4;
/// Bytes of the second layer that are visited in any case.
const SECOND_LAYER_BYTES: usize = 64 << 10;

/// Receiver of decoded texts, with the place of each in the text it was decoded from.
type Emit<'a> = dyn FnMut(String, TextEncoding, Range<usize>) -> ControlFlow<()> + 'a;

/// Calls `visit` with the text itself, with each text decoded from it, and with each text decoded from those.
///
/// The whole first layer is visited before the second one. The second layer ends when it has become several times as
/// long as the text.
pub(crate) fn visit_parts(text: &str, visit: &mut dyn FnMut(&TextPart<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
    visit(&TextPart { text, layers: EncodingLayers::NONE, range: 0..text.len() })?;
    let mut first_layer = Vec::new();
    decode(text, &mut |part, encoding, range| {
        visit(&TextPart { text: &part, layers: EncodingLayers::NONE.with(encoding), range: range.clone() })?;
        first_layer.push((part, encoding, range));
        ControlFlow::Continue(())
    })?;
    let mut budget = text.len().saturating_mul(SECOND_LAYER_FACTOR).saturating_add(SECOND_LAYER_BYTES);
    for (part, outer, range) in first_layer {
        decode(&part, &mut |part, inner, _| {
            budget = budget.saturating_sub(part.len());
            if budget == 0 || outer == TextEncoding::Reversed && inner == outer {
                return ControlFlow::Continue(());
            }
            let layers = EncodingLayers::NONE.with(outer).with(inner);
            visit(&TextPart { text: &part, layers, range: range.clone() })
        })?;
        if budget == 0 {
            break;
        }
    }
    ControlFlow::Continue(())
}

/// Calls `visit` with the text of each run of base64, base32 or hex that is text for the most part.
pub(crate) fn visit_encoded_text(text: &str, visit: &mut dyn FnMut(&str)) {
    let _ = digit_runs::decode(text, &mut |part, _, range| {
        // Text of hex, the longest of these encodings, is half as long as its digits.
        if part.len() * 5 >= range.len() * 2 {
            visit(&part);
        }
        ControlFlow::Continue(())
    });
}

/// Emits each text that a text decodes to.
fn decode(text: &str, emit: &mut Emit<'_>) -> ControlFlow<()> {
    if text.len() < MIN_ENCODED {
        return ControlFlow::Continue(());
    }
    digit_runs::decode(text, emit)?;
    let whole = 0..text.len();
    if let Some(unescaped) = escaped_text::unescape_all(text) {
        let encoding = if unescaped.is_percent { TextEncoding::Percent } else { TextEncoding::Escapes };
        emit(unescaped.text, encoding, whole.clone())?;
    }
    if has_plus_between_words(text) {
        let spaced = text.replace('+', " ");
        let unescaped = escaped_text::unescape_all(&spaced).map(|unescaped| unescaped.text);
        emit(unescaped.unwrap_or(spaced), TextEncoding::Percent, whole.clone())?;
    }
    number_rows::decode(text, emit)?;
    spaced_text::decode(text, emit)?;
    emit(text.chars().rev().collect(), TextEncoding::Reversed, whole)
}

/// Returns true if a plus sign stands between two words, as a form of HTML writes a space.
fn has_plus_between_words(text: &str) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != b'+');
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'+', bytes)
        .any(|at| is_word(at.checked_sub(1).and_then(|before| bytes.get(before))) && is_word(bytes.get(at + 1)))
}

/// Returns the printable parts of decoded bytes, one per line, or `None` if there are none. Zero bytes are left out, so
/// that UTF-16 of Latin letters is read too.
fn printable_text(bytes: &[u8]) -> Option<String> {
    let without_zeros: Vec<u8>;
    let bytes = if bytes.contains(&0) {
        without_zeros = bytes.iter().copied().filter(|byte| *byte != 0).collect();
        &without_zeros
    } else {
        bytes
    };
    let mut printable = String::new();
    let mut add = |part: &str| {
        if part.chars().take(MIN_PRINTABLE).count() == MIN_PRINTABLE {
            if !printable.is_empty() {
                printable.push('\n');
            }
            printable.push_str(part);
        }
    };
    for chunk in bytes.utf8_chunks() {
        let is_break = |character: char| character.is_control() && !character.is_whitespace();
        chunk.valid().split(is_break).for_each(&mut add);
    }
    (!printable.is_empty()).then_some(printable)
}
