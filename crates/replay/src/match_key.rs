//! When two requests are the same call.

use crate::paths::Paths;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// What a call is found by: its method and its params as JSON values. The order of members and the spelling of numbers do
/// not count, and neither do `_meta`, the ignored paths, and what a server minted for one conversation only
/// ([`MINTED`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatchKey([u8; 16]);

/// Members of params whose value a server made up in an earlier answer.
pub const MINTED: [&str; 3] = ["cursor", "requestState", "inputResponses"];

impl MatchKey {
    /// The key of a request, or none if the request is not an object.
    #[must_use]
    pub fn of(request: &Value, ignored: &Paths) -> Option<Self> {
        let mut message = Map::new();
        message.insert("method".to_owned(), request.get("method")?.clone());
        let none = Value::Object(Map::new());
        let params = request.get("params").unwrap_or(&none);
        message.insert("params".to_owned(), compared(params));
        message.insert("round".to_owned(), is_round(params).into());
        let mut message = Value::Object(message);
        ignored.remove_from(&mut message);
        let mut written = Vec::with_capacity(128);
        write_canonical(&message, &mut written);
        let digest = Sha256::digest(&written);
        let mut key = [0; 16];
        key.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        Some(Self(key))
    }
}

impl fmt::Debug for MatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MatchKey(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// True for a further round of a call, which brings what the server asked for.
fn is_round(params: &Value) -> bool {
    params.get("requestState").is_some() || params.get("inputResponses").is_some()
}

/// The part of params that tells one call from another. Absent and empty params are the same.
#[must_use]
pub fn compared(params: &Value) -> Value {
    let Value::Object(members) = params else { return params.clone() };
    let kept = members.iter().filter(|(name, _)| *name != "_meta" && !MINTED.contains(&name.as_str()));
    // Clients leave empty arguments out, or do not.
    let kept = kept.filter(|(name, value)| *name != "arguments" || value.as_object().is_none_or(|all| !all.is_empty()));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Writes a value so that equal values are written equally: members sorted, numbers by their value.
pub fn write_canonical(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            to.push(b'{');
            for (name, value) in sorted {
                write_text(name, to);
                to.push(b':');
                write_canonical(value, to);
                to.push(b',');
            }
            to.push(b'}');
        }
        Value::Array(items) => {
            to.push(b'[');
            for item in items {
                write_canonical(item, to);
                to.push(b',');
            }
            to.push(b']');
        }
        Value::Number(number) => write_number(number, to),
        Value::String(text) => write_text(text, to),
        Value::Bool(true) => to.extend_from_slice(b"true"),
        Value::Bool(false) => to.extend_from_slice(b"false"),
        Value::Null => to.extend_from_slice(b"null"),
    }
}

fn write_text(text: &str, to: &mut Vec<u8>) {
    to.push(b'"');
    to.extend_from_slice(text.len().to_string().as_bytes());
    to.push(b'"');
    to.extend_from_slice(text.as_bytes());
}

/// `1`, `1.0` and `1e0` are one number.
fn write_number(number: &serde_json::Number, to: &mut Vec<u8>) {
    /// Every whole number up to here has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let text = match number.as_f64() {
        Some(float) if !number.is_i64() && !number.is_u64() && float.fract() == 0.0 && float.abs() <= EXACT => {
            format!("{float:.0}").replace("-0", "0")
        }
        _ => number.to_string(),
    };
    to.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(text: &str) -> MatchKey {
        MatchKey::of(&serde_json::from_str(text).unwrap(), &Paths::default()).unwrap()
    }

    #[test]
    fn order_spelling_meta_and_ids_do_not_count() {
        let one = key(r#"{"id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":[2.0,"x"]}}}"#);
        let same = [
            r#"{"jsonrpc":"2.0","method":"tools/call","id":"z","params":{"arguments":{"b":[2,"x"],"a":1e0},"name":"add"}}"#,
            r#"{"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"add","arguments":{"a":1.0,"b":[2,"\u0078"]}}}"#,
        ];
        assert!(same.iter().all(|text| key(text) == one));
        let others = [
            r#"{"method":"tools/call","params":{"name":"add","arguments":{"a":"1","b":[2,"x"]}}}"#,
            r#"{"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":["x",2]}}}"#,
            r#"{"method":"prompts/get","params":{"name":"add","arguments":{"a":1,"b":[2,"x"]}}}"#,
        ];
        assert!(others.iter().all(|text| key(text) != one));
    }

    #[test]
    fn numbers_that_no_float_can_tell_apart_stay_apart() {
        let call = |number: &str| key(&format!(r#"{{"method":"m","params":{{"n":{number}}}}}"#));
        assert_ne!(call("9007199254740993"), call("9007199254740992"));
        assert_eq!(call("-0"), call("0"));
        assert_eq!(call("-0.0"), call("0"));
        assert_ne!(call("0.5"), call("0"));
        assert_eq!(call("1e3"), call("1000"));
        assert_ne!(call("-10"), call("10"));
    }

    #[test]
    fn empty_and_absent_arguments_are_the_same() {
        let with = key(r#"{"method":"tools/call","params":{"name":"now","arguments":{}}}"#);
        assert_eq!(with, key(r#"{"method":"tools/call","params":{"name":"now"}}"#));
    }

    #[test]
    fn a_further_round_is_a_call_of_its_own_whatever_it_brings() {
        let first = key(r#"{"method":"tools/call","params":{"name":"ask"}}"#);
        let second =
            key(r#"{"method":"tools/call","params":{"name":"ask","requestState":"a","inputResponses":{"x":1}}}"#);
        assert_ne!(first, second);
        assert_eq!(second, key(r#"{"method":"tools/call","params":{"name":"ask","requestState":"b"}}"#));
    }

    #[test]
    fn ignored_paths_do_not_count() {
        let ignored = Paths::parse(["/params/arguments/at", "/params/arguments/items/*/id"]).unwrap();
        let of = |at: u32, id: u32, name: &str| {
            let message = json!({"method": "tools/call", "params": {"name": "log", "arguments":
                {"at": at, "items": [{"id": id, "name": name}]}}});
            MatchKey::of(&message, &ignored).unwrap()
        };
        assert_eq!(of(1, 2, "x"), of(3, 4, "x"));
        assert_ne!(of(1, 2, "x"), of(1, 2, "y"));
    }
}
