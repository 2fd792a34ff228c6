//! Session codes where no code belongs: under the names that old clients use, for this page or another one.

use crate::code::Code;
use crate::entry::META_CODE;
use signalbox_wire::{Edits, Envelope, Span, json, method};

/// Names by which clients of the legacy API and of the document give a code. Case, `_` and `-` make no difference.
const NAMES: [&str; 3] = ["sessioncode", "code", "sessionid"];

/// Returns the message without codes in its params, in the arguments of a call and in `_meta`. A code is known by its
/// form, never by asking the store: a caller could guess codes by what is left.
pub(crate) fn without_stray_codes(message: Envelope) -> Envelope {
    let edits = edits(&message);
    if edits.is_empty() {
        return message;
    }
    Envelope::parse(edits.apply(message.bytes())).unwrap_or(message)
}

/// True if a message holds such a code.
pub(crate) fn has_stray_codes(message: &Envelope) -> bool {
    !edits(message).is_empty()
}

fn edits(message: &Envelope) -> Edits {
    let (bytes, mut edits) = (message.bytes(), Edits::new());
    if let Some(object) = message.params_span() {
        remove_codes(bytes, object, &mut edits);
    }
    if message.method() == Some(method::TOOLS_CALL)
        && let Some(object) = message.param("arguments")
    {
        remove_codes(bytes, object, &mut edits);
    }
    if message.param_meta(META_CODE).is_some()
        && let Some(object) = message.param("_meta")
    {
        edits.remove_member(bytes, object, META_CODE);
    }
    edits
}

/// Removes the members of an object that give a code.
fn remove_codes(bytes: &[u8], object: Span, edits: &mut Edits) {
    let inner = object.of(bytes);
    for member in json::members(inner) {
        let Some(name) = json::string(member.key.of(inner)) else { continue };
        let plain: String = name.chars().filter(|c| !matches!(c, '_' | '-')).take(16).collect();
        let Some(known) = NAMES.into_iter().find(|known| plain.eq_ignore_ascii_case(known)) else { continue };
        // No tool has an argument of the first name, so that a mistyped code goes too.
        if known == NAMES[0] || holds_code(member.value.of(inner)) {
            edits.remove_member(bytes, object, &name);
        }
    }
}

/// True for a code, and for a list or an object with one in it.
fn holds_code(value: &[u8]) -> bool {
    let is_code = |value: &[u8]| json::string(value).is_some_and(|text| Code::parse(&text).is_ok());
    is_code(value)
        || json::elements(value).any(|element| is_code(element.of(value)))
        || json::members(value).any(|member| is_code(member.value.of(value)))
}
