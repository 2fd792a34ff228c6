//! Writers for the kinds of fields that messages have.

use prost_types::Timestamp;

use crate::canonical::{EncodeError, MapEncoder};
use crate::message_error::MessageError;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Converts a timestamp to nanoseconds since 1970. Fails if that does not fit 64 bits.
pub(crate) fn nanos(field: &'static str, time: &Timestamp) -> Result<i64, MessageError> {
    let within = (0..NANOS_PER_SECOND).contains(&i64::from(time.nanos));
    time.seconds
        .checked_mul(NANOS_PER_SECOND)
        .and_then(|nanos| nanos.checked_add(time.nanos.into()))
        .filter(|_| within)
        .ok_or(MessageError::TimeOutOfRange(field))
}

/// Converts an optional timestamp to nanoseconds since 1970.
pub(super) fn nanos_of(field: &'static str, time: Option<&Timestamp>) -> Result<Option<i64>, MessageError> {
    time.map(|time| nanos(field, time)).transpose()
}

/// Writes a text unless it is empty.
pub(super) fn text(map: &mut MapEncoder<'_>, key: &str, value: &str) {
    if !value.is_empty() {
        map.entry(key).text(value);
    }
}

/// Writes bytes unless they are empty.
pub(super) fn bytes(map: &mut MapEncoder<'_>, key: &str, value: &[u8]) {
    if !value.is_empty() {
        map.entry(key).bytes(value);
    }
}

/// Writes the number of an enum unless it is unspecified.
pub(super) fn number(map: &mut MapEncoder<'_>, key: &str, value: i64) {
    if value != 0 {
        map.entry(key).signed(value);
    }
}

/// Writes a time if it is present.
pub(super) fn time(map: &mut MapEncoder<'_>, key: &str, nanos: Option<i64>) {
    if let Some(nanos) = nanos {
        map.entry(key).time(nanos);
    }
}

/// Writes a float if it is present.
pub(super) fn float(map: &mut MapEncoder<'_>, key: &str, value: Option<f64>) -> Result<(), EncodeError> {
    value.map_or(Ok(()), |value| map.entry(key).float(value))
}

/// Writes a list of texts unless it is empty.
pub(super) fn texts(map: &mut MapEncoder<'_>, key: &str, values: &[String]) -> Result<(), EncodeError> {
    if values.is_empty() {
        return Ok(());
    }
    map.entry(key).array(|array| {
        values.iter().for_each(|value| array.item().text(value));
        Ok(())
    })
}

/// Writes the value of a JSON text unless that is empty.
pub(super) fn json(map: &mut MapEncoder<'_>, key: &str, value: &[u8]) -> Result<(), EncodeError> {
    if value.is_empty() { Ok(()) } else { map.entry(key).json(value) }
}
