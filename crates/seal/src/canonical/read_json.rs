//! Conversion of JSON text to canonical bytes in one pass, after the strict scan.

use signalbox_wire::json::{self, skip_string, skip_value, skip_whitespace};
use signalbox_wire::{Limits, ScanError, ScanErrorKind, scan};

use super::encode_error::EncodeError;
use super::encoder::Value;

/// Maximum number of characters of a number in an error.
const SHOWN: usize = 40;

/// Writes the value of a JSON text.
pub(super) fn write(value: Value<'_>, text: &[u8]) -> Result<(), EncodeError> {
    scan(text, &Limits::default())?;
    write_at(value, text, skip_whitespace(text, 0)).map(drop)
}

/// Writes the value that starts at `at`, and returns its end. The text has passed the scan.
fn write_at(value: Value<'_>, text: &[u8], at: usize) -> Result<usize, EncodeError> {
    let end = |end: Option<usize>| end.ok_or_else(|| unexpected(at));
    match text.get(at) {
        Some(b'{') => object(value, text, at + 1),
        Some(b'[') => array(value, text, at + 1),
        Some(b'"') => {
            let end = end(skip_string(text, at))?;
            value.text(&string(text, at, end)?);
            Ok(end)
        }
        Some(b't') => {
            value.bool(true);
            Ok(at + 4)
        }
        Some(b'f') => {
            value.bool(false);
            Ok(at + 5)
        }
        Some(b'n') => {
            value.null();
            Ok(at + 4)
        }
        _ => {
            let end = end(skip_value(text, at))?;
            let token = text.get(at..end).and_then(|token| std::str::from_utf8(token).ok());
            number(value, token.ok_or_else(|| unexpected(at))?)?;
            Ok(end)
        }
    }
}

fn object(value: Value<'_>, text: &[u8], mut at: usize) -> Result<usize, EncodeError> {
    value.map(|map| {
        at = skip_whitespace(text, at);
        while text.get(at) == Some(&b'"') {
            let end = skip_string(text, at).ok_or_else(|| unexpected(at))?;
            let key = string(text, at, end)?;
            let colon = skip_whitespace(text, end);
            at = write_at(map.entry(&key), text, skip_whitespace(text, colon + 1))?;
            at = after_comma(text, at);
        }
        Ok(())
    })?;
    Ok(at + 1)
}

fn array(value: Value<'_>, text: &[u8], mut at: usize) -> Result<usize, EncodeError> {
    value.array(|array| {
        at = skip_whitespace(text, at);
        while text.get(at).is_some_and(|byte| *byte != b']') {
            at = write_at(array.item(), text, at)?;
            at = after_comma(text, at);
        }
        Ok(())
    })?;
    Ok(at + 1)
}

/// Returns the position of the next member or element, or of the closing bracket.
fn after_comma(text: &[u8], at: usize) -> usize {
    let at = skip_whitespace(text, at);
    if text.get(at) == Some(&b',') { skip_whitespace(text, at + 1) } else { at }
}

fn string(text: &[u8], start: usize, end: usize) -> Result<std::borrow::Cow<'_, str>, EncodeError> {
    text.get(start..end).and_then(json::string).ok_or_else(|| unexpected(start))
}

fn number(value: Value<'_>, token: &str) -> Result<(), EncodeError> {
    let shown = || token.chars().take(SHOWN).collect();
    let whole = !token.contains(['.', 'e', 'E']);
    if whole && token != "-0" {
        match (token.parse::<u64>(), token.parse::<i64>()) {
            (Ok(number), _) => value.unsigned(number),
            (_, Ok(number)) => value.signed(number),
            _ => return Err(EncodeError::IntegerTooLarge(shown())),
        }
        return Ok(());
    }
    let number: f64 = token.parse().map_err(|_| EncodeError::NumberLost(shown()))?;
    let mantissa = token.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if !number.is_finite() || (number == 0.0 && !is_zero) {
        return Err(EncodeError::NumberLost(shown()));
    }
    value.float(number)
}

fn unexpected(at: usize) -> EncodeError {
    ScanError { kind: ScanErrorKind::UnexpectedByte, at }.into()
}
