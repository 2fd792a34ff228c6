//! Corrupts the texts of an answer. The message stays valid, since it would not reach the client otherwise.

use crate::action::FailKind;
use crate::live::mixed;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Span, json};

/// Maximum number of corrupted texts in an answer.
const TEXTS: usize = 1000;
/// Maximum depth of the search for texts.
const DEPTH: usize = 64;

/// Truncates or garbles all texts of the answer, depending on the draw. Returns `None` if it has no text.
pub(crate) fn damage(message: &Envelope, kind: FailKind, draw: u64) -> Option<Bytes> {
    let bytes = message.bytes();
    let mut texts = Vec::new();
    find(bytes, message.result_span()?, 0, &mut texts);
    let mut edits = Edits::new();
    for (number, span) in (0..).zip(&texts) {
        let Some(text) = json::string(span.of(bytes)) else { continue };
        let draw = mixed(draw, number);
        let spoiled = if kind == FailKind::Truncate { cut(&text, draw) } else { garble(&text, draw) };
        edits.replace(*span, json::quote(&spoiled));
    }
    if edits.is_empty() { None } else { Some(edits.apply(bytes)) }
}

/// Collects the texts that are content: no member names, and no members that identify a type.
fn find(bytes: &[u8], here: Span, depth: usize, out: &mut Vec<Span>) {
    if depth > DEPTH || out.len() >= TEXTS {
        return;
    }
    let value = here.of(bytes);
    match value.first() {
        Some(b'{') => {
            for member in json::members(value) {
                let fixed = ["type", "mimeType", "resultType", "_meta", "uri"];
                if !fixed.iter().any(|name| json::key_eq(member.key.of(value), name)) {
                    find(bytes, member.value.shift(here.start), depth + 1, out);
                }
            }
        }
        Some(b'[') => json::elements(value).for_each(|item| find(bytes, item.shift(here.start), depth + 1, out)),
        Some(b'"') if value.len() > 2 => out.push(here),
        _ => {}
    }
}

fn cut(text: &str, draw: u64) -> String {
    let letters = text.chars().count() as u64;
    text.chars().take(usize::try_from(draw % letters.max(1)).unwrap_or(0)).collect()
}

/// Replaces about a quarter of the letters, and at least one, with U+FFFD.
fn garble(text: &str, draw: u64) -> String {
    let letters = text.chars().count() as u64;
    let sure = draw % letters.max(1);
    let spoiled = |place: u64| place == sure || mixed(draw, place).is_multiple_of(4);
    (0..).zip(text.chars()).map(|(place, letter)| if spoiled(place) { '\u{fffd}' } else { letter }).collect()
}
