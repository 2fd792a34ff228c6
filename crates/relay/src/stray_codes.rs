//! Session codes in places where no code belongs: under the names that legacy clients use, for this page or another.

use crate::code::Code;
use crate::entry::META_CODE;
use signalbox_wire::{Edits, Envelope, Span, json};

/// Member names by which legacy clients pass a code. Case, `_` and `-` are ignored.
const NAMES: [&str; 3] = ["sessioncode", "code", "sessionid"];

/// Removes codes from the params, from the arguments of a call, prompt or completion, and from `_meta`. A code is
/// recognized by its form, never by a lookup: a caller could otherwise test guesses by what is removed.
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
    let inside = |outer: &str, inner: &str| {
        let outer = message.param(outer)?;
        Some(json::member(outer.of(bytes), inner)?.shift(outer.start))
    };
    for object in [message.param("arguments"), inside("context", "arguments")].into_iter().flatten() {
        remove_codes(bytes, object, &mut edits);
    }
    // A completion names its argument in a member of its own.
    let name = inside("argument", "name").and_then(|span| json::string(span.of(bytes)));
    if let (Some(name), Some(value)) = (name.and_then(|name| code_name(&name)), inside("argument", "value"))
        && may_be_code(name, value.of(bytes))
        && value.of(bytes) != b"\"\""
    {
        edits.replace(value, "\"\"");
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
        let Some(known) = code_name(&name) else { continue };
        if may_be_code(known, member.value.of(inner)) {
            edits.remove_member(bytes, object, &name);
        }
    }
}

/// Returns the name by which a code is passed, if this is a spelling of one.
fn code_name(name: &str) -> Option<&'static str> {
    let plain: String = name.chars().filter(|c| !matches!(c, '_' | '-')).take(16).collect();
    NAMES.into_iter().find(|known| plain.eq_ignore_ascii_case(known))
}

/// Returns true if a member with this name has a code. No tool has an argument of the first name, so a mistyped code
/// under it counts too.
fn may_be_code(name: &str, value: &[u8]) -> bool {
    name == NAMES[0] || holds_code(value)
}

/// Returns true for a code, or a list or object that directly contains one.
fn holds_code(value: &[u8]) -> bool {
    let is_code = |value: &[u8]| json::string(value).is_some_and(|text| Code::parse(&text).is_ok());
    is_code(value)
        || json::elements(value).any(|element| is_code(element.of(value)))
        || json::members(value).any(|member| is_code(member.value.of(value)))
}
