//! A client's declared capabilities in a form that can be compared and used as a key.
//!
//! Old servers decide at `initialize` what they offer, by the capabilities they are shown, so lists and connections are
//! kept per capability set.

use bytes::Bytes;
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// Maximum size of declared capabilities, so that a key cannot be used to store a client's data.
pub const MAX_CAPABILITIES: usize = 16 * 1024;

/// The capabilities by which a server may send requests to the client.
const CALLBACKS: [&str; 3] = ["sampling", "elicitation", "roots"];

/// A capability object with its keys sorted at every level, so that equal sets are equal bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CapSet(Arc<str>);

impl CapSet {
    /// The set of a client that declares nothing.
    #[must_use]
    pub fn bare() -> Self {
        static BARE: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("{}"));
        Self(Arc::clone(&BARE))
    }

    /// Reads the `capabilities` object of an `initialize` request. Anything but an object counts as nothing declared.
    ///
    /// A client that declares none of sampling, elicitation and roots is bare, whatever else it declares: bare
    /// clients may share a connection, which is opened without any capability.
    #[must_use]
    pub fn read(json: &[u8]) -> Self {
        if json.len() > MAX_CAPABILITIES {
            return Self::bare();
        }
        match serde_json::from_slice::<Value>(json) {
            Ok(Value::Object(map)) if CALLBACKS.iter().any(|name| map.contains_key(*name)) => {
                let mut text = String::with_capacity(json.len());
                write_sorted(&Value::Object(map), &mut text);
                Self(Arc::from(text))
            }
            _ => Self::bare(),
        }
    }

    /// Rebuilds a set from its text, as kept in the data folder.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self::read(text.as_bytes())
    }

    /// True if the server has no way to call the client back, so that a connection may be shared.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        &*self.0 == "{}"
    }

    /// The JSON object.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The JSON object as bytes to splice.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(self.0.as_bytes())
    }
}

fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_sorted(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_sorted(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_in_another_order_are_one_key() {
        let one = CapSet::read(br#"{"sampling":{},"roots":{"listChanged":true,"x":1}}"#);
        let two = CapSet::read(br#"{ "roots" : {"x":1,"listChanged":true}, "sampling" : {} }"#);
        assert_eq!(one, two);
        assert!(!one.is_bare());
    }

    #[test]
    fn what_cannot_call_back_is_bare() {
        for json in [&b"{}"[..], br#"{"experimental":{"a":1}}"#, b"[]", b"7", b"{", br#"{"tasks":{}}"#] {
            assert!(CapSet::read(json).is_bare(), "{}", String::from_utf8_lossy(json));
        }
    }
}
