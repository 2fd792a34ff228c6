//! Values that only differ in their spelling from what a schema asks for.

use super::json_text::count_values;
use super::json_types::JsonTypes;
use super::limits::MAX_COERCED_NODES;
use serde_json::Value;

/// Returns the value of one of these types that a string spells, without loss. Nothing else is coerced: a number where
/// a string is expected may have lost zeros or digits already.
pub(super) fn coerce(value: &Value, types: JsonTypes) -> Option<Value> {
    let text = value.as_str()?;
    if count_values(text.as_bytes()) > MAX_COERCED_NODES {
        return None;
    }
    let is_bare = text.trim() == text;
    // Not `parse_json`: a clamped number is not the one that was spelled.
    let parsed: Value = serde_json::from_str(text).ok()?;
    let fits = match &parsed {
        Value::Bool(_) => is_bare && types.intersects(JsonTypes::BOOLEAN),
        Value::Number(_) => is_bare && is_lossless(text, &parsed) && types.intersects(JsonTypes::of(&parsed)),
        Value::Array(_) => types.intersects(JsonTypes::ARRAY),
        Value::Object(_) => types.intersects(JsonTypes::OBJECT),
        Value::Null | Value::String(_) => false,
    };
    fits.then_some(parsed)
}

/// Checks whether a number kept its digits: beyond 64 bits, an integer becomes a double.
fn is_lossless(text: &str, number: &Value) -> bool {
    const EXACT_DIGITS: usize = 15;
    number.is_i64() || number.is_u64() || text.bytes().filter(u8::is_ascii_digit).count() <= EXACT_DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_lossless_spellings_are_coerced() {
        let cases = [
            ("5", JsonTypes::INTEGER, Some(json!(5))),
            ("5.0", JsonTypes::INTEGER, Some(json!(5.0))),
            ("5.5", JsonTypes::INTEGER, None),
            ("1.5", JsonTypes::NUMBER, Some(json!(1.5))),
            (" 5", JsonTypes::INTEGER, None),
            ("5a", JsonTypes::INTEGER, None),
            ("", JsonTypes::INTEGER, None),
            ("123456789012345678901234", JsonTypes::INTEGER, None),
            ("18446744073709551615", JsonTypes::INTEGER, Some(json!(u64::MAX))),
            ("1e400", JsonTypes::NUMBER, None),
            ("true", JsonTypes::BOOLEAN, Some(json!(true))),
            ("True", JsonTypes::BOOLEAN, None),
            ("1", JsonTypes::BOOLEAN, None),
            ("null", JsonTypes::NULL, None),
            ("[1]", JsonTypes::ARRAY, Some(json!([1]))),
            ("{\"a\": 1}", JsonTypes::OBJECT, Some(json!({"a": 1}))),
            ("[1]", JsonTypes::OBJECT, None),
        ];
        for (text, types, expected) in cases {
            assert_eq!(coerce(&json!(text), types), expected, "{text}");
        }
        assert_eq!(coerce(&json!(5), JsonTypes::STRING), None);
        assert_eq!(coerce(&json!(1), JsonTypes::BOOLEAN), None);
    }
}
