//! Made up damage to an answer. The message stays valid, as it would not reach the client otherwise; its texts do not.

use crate::action::FailKind;
use crate::live::mixed;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Span, json};

/// Most texts of one answer that are damaged.
const TEXTS: usize = 1000;
/// Deepest value that is looked for texts in.
const DEPTH: usize = 64;

/// The answer with all its texts cut off or spoiled, as the draw says; `None` if there is nothing to spoil.
pub(crate) fn damaged(message: &Envelope, kind: FailKind, draw: u64) -> Option<Bytes> {
    let bytes = message.bytes();
    let mut texts = Vec::new();
    find(bytes, message.result_span()?, 0, &mut texts);
    let mut edits = Edits::new();
    for (number, span) in (0..).zip(&texts) {
        let Some(text) = json::string(span.of(bytes)) else { continue };
        let draw = mixed(draw, number);
        let spoiled = if kind == FailKind::Truncate { cut(&text, draw) } else { garbled(&text, draw) };
        edits.replace(*span, json::quote(&spoiled));
    }
    if edits.is_empty() { None } else { Some(edits.apply(bytes)) }
}

/// The texts below a value that are content: not names of members, and not the words that say of what type something is.
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

/// About every fourth letter, and at least one, becomes a sign for letters that cannot be read.
fn garbled(text: &str, draw: u64) -> String {
    let letters = text.chars().count() as u64;
    let sure = draw % letters.max(1);
    let spoiled = |place: u64| place == sure || mixed(draw, place).is_multiple_of(4);
    (0..).zip(text.chars()).map(|(place, letter)| if spoiled(place) { '\u{fffd}' } else { letter }).collect()
}
