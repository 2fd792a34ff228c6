//! Session codes where no code belongs: under the names that old clients use, for this page or another one.

use crate::code::Code;
use crate::entry::META_CODE;
use crate::tools::SESSION_CODE;
use signalbox_wire::{Edits, Envelope, json, method};

/// Names of arguments by which clients of the legacy API and of the document give a code.
const NAMES: [&str; 3] = [SESSION_CODE, "code", "sessionId"];

/// Returns the message without codes in the arguments of a call and in `_meta`. A code is known by its form, never by
/// asking the store: a caller could guess codes by what is left.
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
    if message.method() == Some(method::TOOLS_CALL)
        && let Some(object) = message.param("arguments")
    {
        for name in NAMES {
            let value = json::member(object.of(bytes), name).map(|span| span.of(object.of(bytes)));
            // No tool has an argument of the first name, so that a mistyped code goes too.
            if value.is_some_and(|value| name == SESSION_CODE || holds_code(value)) {
                edits.remove_member(bytes, object, name);
            }
        }
    }
    if message.param_meta(META_CODE).is_some()
        && let Some(object) = message.param("_meta")
    {
        edits.remove_member(bytes, object, META_CODE);
    }
    edits
}

/// True for a code, and for a list with one in it.
fn holds_code(value: &[u8]) -> bool {
    let is_code = |value: &[u8]| json::string(value).is_some_and(|text| Code::parse(&text).is_ok());
    is_code(value) || json::elements(value).any(|element| is_code(element.of(value)))
}
