//! Conversion between JSON and `google.protobuf.Struct`. Numbers are doubles there; a number that is not exactly
//! representable is rejected, not rounded.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use signalbox_wire::{Limits, json, scan};

use crate::canonical::EncodeError;
use crate::message_error::MessageError;

/// Magnitude up to which every integer is a double.
const EXACT: u64 = 1 << 53;

/// Converts a JSON object to a structure.
///
/// # Errors
/// If the text is not a JSON object, or contains an integer that is not a double.
pub fn struct_from_json(text: &[u8]) -> Result<Struct, MessageError> {
    scan(text, &Limits::default()).map_err(EncodeError::from)?;
    match value_of(text)?.kind {
        Some(Kind::StructValue(value)) => Ok(value),
        _ => Err(MessageError::NotAnObject),
    }
}

fn value_of(text: &[u8]) -> Result<Value, MessageError> {
    let start = json::skip_whitespace(text, 0);
    let text = text.get(start..).unwrap_or_default();
    let kind = match text.first() {
        Some(b'{') => {
            let members = json::members(text).map(|member| {
                let key = json::string(member.key.of(text)).unwrap_or_default().into_owned();
                Ok((key, value_of(member.value.of(text))?))
            });
            Kind::StructValue(Struct { fields: members.collect::<Result<_, MessageError>>()? })
        }
        Some(b'[') => {
            let values = json::elements(text).map(|element| value_of(element.of(text)));
            Kind::ListValue(ListValue { values: values.collect::<Result<_, _>>()? })
        }
        Some(b'"') => {
            let end = json::skip_string(text, 0).unwrap_or(text.len());
            let text = text.get(..end).and_then(json::string).unwrap_or_default();
            Kind::StringValue(text.into_owned())
        }
        Some(b't') => Kind::BoolValue(true),
        Some(b'f') => Kind::BoolValue(false),
        Some(b'n') => Kind::NullValue(0),
        _ => Kind::NumberValue(number(text)?),
    };
    Ok(Value { kind: Some(kind) })
}

fn number(token: &[u8]) -> Result<f64, MessageError> {
    let token = String::from_utf8_lossy(token);
    let token = token.trim_end();
    let lost = || MessageError::NumberLost(token.chars().take(40).collect());
    let number: f64 = token.parse().map_err(|_| lost())?;
    let whole = !token.contains(['.', 'e', 'E']);
    // The exact digits of a double are its text without an exponent.
    let exact = !whole || token == "-0" || format!("{number:.0}") == token;
    let underflow = number == 0.0
        && token.split(['e', 'E']).next().is_some_and(|digits| digits.contains(|c| ('1'..='9').contains(&c)));
    if number.is_finite() && exact && !underflow { Ok(number) } else { Err(lost()) }
}

/// Converts a structure to JSON text, with keys in lexicographic order. Whole numbers up to 2^53 are written as
/// integers.
///
/// # Errors
/// If it contains an empty value, or a number that JSON cannot represent.
pub fn struct_to_json(from: &Struct) -> Result<Vec<u8>, MessageError> {
    let mut out = Vec::new();
    write_struct(&mut out, from)?;
    Ok(out)
}

fn write_struct(out: &mut Vec<u8>, from: &Struct) -> Result<(), MessageError> {
    out.push(b'{');
    for (at, (key, value)) in from.fields.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        json::write_quoted(out, key);
        out.push(b':');
        write_value(out, value)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_value(out: &mut Vec<u8>, from: &Value) -> Result<(), MessageError> {
    match from.kind.as_ref().ok_or(MessageError::EmptyValue("google.protobuf.Struct"))? {
        Kind::NullValue(_) => out.extend_from_slice(b"null"),
        Kind::BoolValue(true) => out.extend_from_slice(b"true"),
        Kind::BoolValue(false) => out.extend_from_slice(b"false"),
        Kind::StringValue(text) => json::write_quoted(out, text),
        Kind::StructValue(inner) => write_struct(out, inner)?,
        Kind::NumberValue(number) if !number.is_finite() => {
            return Err(EncodeError::NotFinite(number.to_string()).into());
        }
        Kind::NumberValue(number) => out.extend_from_slice(number_text(*number).as_bytes()),
        Kind::ListValue(list) => {
            out.push(b'[');
            for (at, value) in list.values.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_value(out, value)?;
            }
            out.push(b']');
        }
    }
    Ok(())
}

fn number_text(number: f64) -> String {
    let is_minus_zero = number == 0.0 && number.is_sign_negative();
    if number.fract() == 0.0 && number.abs() <= EXACT as f64 && !is_minus_zero {
        return format!("{number:.0}");
    }
    format!("{number:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_survives_a_struct() {
        for text in [
            r#"{"a":[1,-2.5,true,false,null,"é\n",{"b":{}}],"n":9007199254740992}"#,
            r#"{"f":1e300,"s":5e-324,"z":-0.0}"#,
            "{}",
        ] {
            let value = struct_from_json(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(struct_to_json(&value).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn what_a_double_cannot_hold_is_refused_and_not_rounded() {
        for text in ["9007199254740993", "18446744073709551615", "-9007199254740993", "1e-400"] {
            let error = struct_from_json(format!(r#"{{"a":[{text}]}}"#).as_bytes()).unwrap_err();
            assert_eq!(error, MessageError::NumberLost(text.to_owned()));
        }
        assert!(struct_from_json(br#"{"a":18446744073709551616}"#).is_ok(), "2^64 is a double");
        assert_eq!(struct_from_json(b"[]"), Err(MessageError::NotAnObject));
        assert!(struct_from_json(b"{").is_err());
        let nan = Value { kind: Some(Kind::NumberValue(f64::NAN)) };
        assert!(struct_to_json(&Struct { fields: [("x".to_owned(), nan)].into() }).is_err());
    }
}
