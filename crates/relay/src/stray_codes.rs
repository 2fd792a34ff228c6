//! Session codes in places where no code belongs: under the names that legacy clients use, for this page or another.

use crate::code::Code;
use crate::entry::META_CODE;
use signalbox_wire::{Edits, Envelope, Span, json, method};

/// Member names by which legacy clients pass a code. Case, `_` and `-` are ignored.
const NAMES: [&str; 3] = ["sessioncode", "code", "sessionid"];

/// Removes codes from the params, from the arguments of a call and from `_meta`. A code is recognized by its form,
/// never by a lookup: a caller could otherwise test guesses by what is removed.
pub(crate) fn without_stray_codes(message: Envelope) -> Envelope {
    let edits = edits(&message);
    if edits.is_empty() {
        return message;
    }
    Envelope::parse(edits.apply(message.bytes())).unwrap_or(message)
}

/// Returns true if a message contains such a code.
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

/// Removes the members of an object that contain a code.
fn remove_codes(bytes: &[u8], object: Span, edits: &mut Edits) {
    let inner = object.of(bytes);
    for member in json::members(inner) {
        let Some(name) = json::string(member.key.of(inner)) else { continue };
        let plain: String = name.chars().filter(|c| !matches!(c, '_' | '-')).take(16).collect();
        let Some(known) = NAMES.into_iter().find(|known| plain.eq_ignore_ascii_case(known)) else { continue };
        // No tool has an argument of the first name, so a mistyped code is removed too.
        if known == NAMES[0] || holds_code(member.value.of(inner)) {
            edits.remove_member(bytes, object, &name);
        }
    }
}

/// Returns true for a code, or a list or object that directly contains one.
fn holds_code(value: &[u8]) -> bool {
    let is_code = |value: &[u8]| json::string(value).is_some_and(|text| Code::parse(&text).is_ok());
    is_code(value)
        || json::elements(value).any(|element| is_code(element.of(value)))
        || json::members(value).any(|member| is_code(member.value.of(value)))
}
