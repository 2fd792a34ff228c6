//! Decides if two requests are the same call.

use crate::paths::Paths;
use foldhash::quality::RandomState;
use serde_json::{Value, json};
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;

/// Lookup key of a call: its method and its params as JSON values. The key ignores the order of members, the spelling
/// of numbers, `_meta`, the ignored paths, and values minted by the server for one conversation ([`MINTED`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatchKey([u8; 16]);

/// Params whose value the server made up in an earlier answer.
pub const MINTED: [&str; 3] = ["cursor", "requestState", "inputResponses"];

impl MatchKey {
    /// Computes the key of a request. Returns `None` if the request is not an object with a method.
    #[must_use]
    pub fn of(request: &Value, ignored: &Paths) -> Option<Self> {
        static EMPTY: Value = Value::Null;
        let (method, params) = (request.get("method")?, request.get("params").unwrap_or(&EMPTY));
        let mut written = Vec::with_capacity(256);
        written.push(u8::from(is_round(params)));
        if ignored.is_empty() {
            write_canonical(method, &mut written);
            match params {
                Value::Object(_) | Value::Null => write_members(identifying_members(params), &mut written),
                other => write_canonical(other, &mut written),
            }
        } else {
            let mut message = json!({"method": method, "params": comparable_params(params)});
            ignored.remove_from(&mut message);
            for part in ["method", "params"] {
                write_canonical(message.get(part).unwrap_or(&EMPTY), &mut written);
            }
        }
        Some(Self::digest(&written))
    }

    /// Returns the first half of the key, for hash tables. All of its bits are well mixed.
    pub(crate) fn short(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    /// Hashes with a fast, randomly seeded function. Keys never leave the process, and the seed keeps the author of a
    /// tape from choosing calls that collide.
    fn digest(written: &[u8]) -> Self {
        static STATES: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        let mut key = [0; 16];
        for (part, state) in key.chunks_exact_mut(8).zip(&*STATES) {
            part.copy_from_slice(&state.hash_one(written).to_ne_bytes());
        }
        Self(key)
    }
}

impl fmt::Debug for MatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MatchKey(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// Returns `true` for a follow-up request that brings input the server asked for.
fn is_round(params: &Value) -> bool {
    params.get("requestState").is_some() || params.get("inputResponses").is_some()
}

/// Returns the part of the params that identifies a call. Absent and empty params are equal.
#[must_use]
pub fn comparable_params(params: &Value) -> Value {
    match params {
        Value::Object(_) | Value::Null => {
            Value::Object(identifying_members(params).map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        other => other.clone(),
    }
}

/// Iterates over the params that identify a call.
fn identifying_members(params: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let kept = params.as_object().into_iter().flatten();
    let kept = kept.filter(|(name, _)| *name != "_meta" && !MINTED.contains(&name.as_str()));
    // Some clients omit empty arguments, others send `{}`.
    kept.filter(|(name, value)| *name != "arguments" || value.as_object().is_none_or(|all| !all.is_empty()))
}

/// Writes a value in canonical form: members sorted, numbers by value. Equal values yield equal bytes.
pub fn write_canonical(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::Object(members) => write_members(members.iter(), to),
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

fn write_members<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>, to: &mut Vec<u8>) {
    let mut sorted: Vec<_> = members.collect();
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

fn write_text(text: &str, to: &mut Vec<u8>) {
    to.push(b'"');
    to.extend_from_slice(text.len().to_string().as_bytes());
    to.push(b'"');
    to.extend_from_slice(text.as_bytes());
}

/// Writes `1`, `1.0` and `1e0` the same way.
fn write_number(number: &serde_json::Number, to: &mut Vec<u8>) {
    /// Largest value up to which every whole number has an exact float.
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
