//! Texts about values that do not fit, as far as records may quote the message.

use crate::schema::{Schema, SchemaValidity, SchemaViolation};
use bytes::Bytes;
use signalbox_engine::message_redactor::{MessageRedactor, RedactedMessage};
use signalbox_wire::Envelope;

/// Returns a line for callers and records. It quotes values as redaction leaves them: the same line is recorded, and a
/// caller that is told more would have it in its own logs. `instance` finds the checked value in a message.
pub(crate) fn explain(
    violations: Vec<SchemaViolation>,
    schema: &Schema,
    message: &Envelope,
    redactor: Option<&dyn MessageRedactor>,
    instance: impl Fn(&Envelope) -> Option<Bytes>,
) -> String {
    let redacted = redactor.map_or(RedactedMessage::Same, |one| one.redact(message.bytes(), message.method()));
    let lines: Vec<String> = match redacted {
        RedactedMessage::Same => violations.iter().map(ToString::to_string).collect(),
        RedactedMessage::Changed(bytes) => {
            let left = Envelope::parse(bytes).ok().and_then(|message| instance(&message));
            let known = match left.map(|instance| schema.check(&instance)) {
                Some(SchemaValidity::Invalid(known)) => known,
                _ => Vec::new(),
            };
            let same =
                |one: &SchemaViolation| known.iter().find(|other| other.place == one.place).map(ToString::to_string);
            violations.into_iter().map(|one| same(&one).unwrap_or_else(|| without_value(one))).collect()
        }
        RedactedMessage::Withheld => violations.into_iter().map(without_value).collect(),
    };
    lines.join("; ")
}

fn without_value(violation: SchemaViolation) -> String {
    let is_missing = violation.found.is_empty();
    let found = if is_missing { String::new() } else { "another value".to_owned() };
    SchemaViolation { found, ..violation }.to_string()
}
