//! A client's declared capabilities in a form that can be compared and used as a key.
//!
//! Old servers choose their offer at `initialize` by the client's capabilities, so lists and connections are stored per
//! capability set.

use bytes::Bytes;
use serde_json::Value;
use signalbox_wire::json;
use std::sync::{Arc, LazyLock};

/// Maximum size of declared capabilities, so that a key cannot be used to store a client's data.
pub const MAX_CAPABILITIES: usize = 16 * 1024;

/// Capabilities that let a server send requests to the client.
const CALLBACKS: [&str; 3] = ["sampling", "elicitation", "roots"];

/// Member with the extensions, by which a server chooses its offer (MCP Apps, for example).
const EXTENSIONS: &str = "extensions";

/// Capability object with its keys sorted at every level, so that equal sets are equal bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CapSet(Arc<str>);

impl CapSet {
    /// Returns the set of a client that declares nothing.
    #[must_use]
    pub fn bare() -> Self {
        static BARE: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("{}"));
        Self(Arc::clone(&BARE))
    }

    /// Reads the `capabilities` object of an `initialize` request. Anything but an object counts as nothing declared.
    ///
    /// For a client that declares none of sampling, elicitation and roots, only its extensions count, and without any
    /// it is bare. Such clients may share a connection.
    #[must_use]
    pub fn read(json: &[u8]) -> Self {
        if json.len() > MAX_CAPABILITIES {
            return Self::bare();
        }
        let Ok(Value::Object(mut map)) = serde_json::from_slice::<Value>(json) else { return Self::bare() };
        if !CALLBACKS.iter().any(|name| map.contains_key(*name)) {
            map.retain(|name, value| name == EXTENSIONS && value.as_object().is_some_and(|all| !all.is_empty()));
        }
        if map.is_empty() {
            return Self::bare();
        }
        let mut text = String::with_capacity(json.len());
        write_sorted(&Value::Object(map), &mut text);
        Self(Arc::from(text))
    }

    /// Rebuilds a set from its text in the data folder.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self::read(text.as_bytes())
    }

    /// Returns true if nothing is declared that counts for lists or connections.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        &*self.0 == "{}"
    }

    /// Returns true if the server may send requests to the client. Other clients with the same set may share a
    /// connection.
    #[must_use]
    pub fn may_be_asked(&self) -> bool {
        CALLBACKS.iter().any(|name| json::member(self.0.as_bytes(), name).is_some())
    }

    /// Returns the JSON object.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Returns the JSON object as bytes to splice.
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

    /// Servers show their apps to clients that declare them.
    #[test]
    fn extensions_are_a_set_of_clients_that_cannot_be_asked() {
        let caps = CapSet::read(br#"{"tasks":{},"extensions":{"b/c":{},"a/ui":{"mimeTypes":["x"]}}}"#);
        assert_eq!(caps.as_json(), r#"{"extensions":{"a/ui":{"mimeTypes":["x"]},"b/c":{}}}"#);
        assert!(!caps.is_bare() && !caps.may_be_asked());
        assert_eq!(CapSet::from_text(caps.as_json()), caps);
        assert!(CapSet::read(br#"{"extensions":{}}"#).is_bare());
        assert!(CapSet::read(br#"{"extensions":{"a/ui":{}},"roots":{}}"#).may_be_asked());
    }
}
