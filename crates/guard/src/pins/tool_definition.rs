//! Tool definition as listed by a server, and the hashes that identify it.

use super::canonical_value::CanonicalValue;
use signalbox_seal::{hex, sha256_of, unhex};
use signalbox_wire::ScanError;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Maximum size of a definition in bytes. A larger one cannot be pinned, and must not be shown to a client.
pub const MAX_DEFINITION: usize = 1024 * 1024;
/// Maximum length of a tool's name in bytes.
const MAX_NAME: usize = 512;
/// Domains keep a hash of one kind from being taken for one of another.
const TOOL_DOMAIN: &[u8] = b"signalbox tool definition 1\n";
const SHAPE_DOMAIN: &[u8] = b"signalbox tool shape 1\n";
const INSTRUCTIONS_DOMAIN: &[u8] = b"signalbox instructions 1\n";
/// Prefix of a hash in text, in the manner of container digests.
const PREFIX: &str = "sha256:";
/// Members of a schema that explain it to a reader and do not restrict the data.
const ANNOTATIONS: [&str; 5] = ["title", "description", "examples", "$comment", "$id"];
/// Members of a schema whose own members are named by the author: a property may be called `title`.
const NAMED_SCHEMAS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Members of a schema that hold data, not schemas.
const DATA: [&str; 3] = ["const", "enum", "default"];

/// SHA-256 over the canonical form of a definition, a shape or instructions.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionHash(pub [u8; 32]);

impl fmt::Display for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex(&self.0))
    }
}

impl fmt::Debug for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Error for a text that is not a hash in the form of the lock file.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected `sha256:` and 64 hexadecimal digits")]
pub struct UnknownHash;

impl FromStr for DefinitionHash {
    type Err = UnknownHash;

    fn from_str(text: &str) -> Result<Self, UnknownHash> {
        let bytes = text.strip_prefix(PREFIX).and_then(unhex).ok_or(UnknownHash)?;
        Ok(Self(bytes.try_into().map_err(|_| UnknownHash)?))
    }
}

/// Reason why a definition cannot be pinned.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The text is not JSON, two readers could understand it differently, or it exceeds a limit.
    #[error("the definition is not JSON that can be pinned: {0}")]
    Json(#[from] ScanError),
    /// A number has an exponent beyond 64 bits.
    #[error("the number at byte {0} has an exponent that is too large")]
    Number(usize),
    /// The definition is not an object.
    #[error("the definition is not an object")]
    NotAnObject,
    /// The definition has no name, or one that is empty or too long.
    #[error("the definition has no name of 1 to {MAX_NAME} bytes")]
    NoName,
}

/// Definition of a tool in canonical form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolDefinition {
    /// Name that the server gave the tool.
    pub name: String,
    /// Identifies everything but the name.
    pub hash: DefinitionHash,
    /// Identifies the schemas without their descriptions.
    pub shape: DefinitionHash,
    /// `false` if the schemas restrict nothing. Such tools are alike without being related.
    pub(super) has_parameters: bool,
    /// Members of the definition other than the name.
    pub(super) content: CanonicalValue,
}

impl ToolDefinition {
    /// Parses an entry of a `tools/list` result.
    ///
    /// # Errors
    /// If the definition is ambiguous, exceeds a limit or has no name.
    pub fn parse(definition: &[u8]) -> Result<Self, DefinitionError> {
        let CanonicalValue::Object(mut members) = CanonicalValue::parse(definition, MAX_DEFINITION)? else {
            return Err(DefinitionError::NotAnObject);
        };
        let name = members.remove("name").and_then(|name| name.text().map(str::to_owned));
        let name = name.filter(|name| (1..=MAX_NAME).contains(&name.len())).ok_or(DefinitionError::NoName)?;
        Ok(Self::of(name, CanonicalValue::Object(members)))
    }

    pub(super) fn of(name: String, content: CanonicalValue) -> Self {
        let shape = shape(&content);
        let properties = ["inputSchema", "outputSchema"].into_iter().filter_map(|key| shape.object()?.get(key));
        let has_parameters =
            properties.filter_map(CanonicalValue::object).any(|schema| schema.keys().any(|key| !is_trivial(key)));
        Self {
            name,
            hash: hash(TOOL_DOMAIN, &content.compact()),
            shape: hash(SHAPE_DOMAIN, &shape.compact()),
            has_parameters,
            content,
        }
    }
}

/// Returns `true` for members that schemas of tools without parameters have.
fn is_trivial(key: &str) -> bool {
    matches!(key, "type" | "additionalProperties" | "$schema" | "required")
}

/// Returns the hash of a definition. The tool's name does not count, and neither do the order of members, whitespace
/// and the way in which strings and numbers are written.
///
/// # Errors
/// If the definition is ambiguous, exceeds a limit or has no name.
pub fn hash_tool(definition: &[u8]) -> Result<DefinitionHash, DefinitionError> {
    ToolDefinition::parse(definition).map(|definition| definition.hash)
}

/// Returns the hash of the input and output schemas without their titles, descriptions and examples. It finds a tool
/// again that was renamed.
///
/// # Errors
/// The same as [`hash_tool`].
pub fn hash_shape(definition: &[u8]) -> Result<DefinitionHash, DefinitionError> {
    ToolDefinition::parse(definition).map(|definition| definition.shape)
}

/// Returns the hash of the instructions that a server gives in its `initialize` result.
#[must_use]
pub fn hash_instructions(text: &str) -> DefinitionHash {
    hash(INSTRUCTIONS_DOMAIN, text)
}

fn hash(domain: &[u8], text: &str) -> DefinitionHash {
    DefinitionHash(sha256_of([domain, text.as_bytes()]))
}

/// Returns the schemas of a definition without annotations.
fn shape(content: &CanonicalValue) -> CanonicalValue {
    let schemas = ["inputSchema", "outputSchema"].into_iter().filter_map(|key| {
        let schema = content.object()?.get(key)?;
        Some((key.to_owned(), without_annotations(schema)))
    });
    CanonicalValue::Object(schemas.collect())
}

/// Returns a schema without annotations. An empty map of properties is dropped: `{"type": "object"}` means the same.
fn without_annotations(schema: &CanonicalValue) -> CanonicalValue {
    match schema {
        CanonicalValue::Array(items) => CanonicalValue::Array(items.iter().map(without_annotations).collect()),
        CanonicalValue::Object(members) => {
            let stripped = members.iter().filter(|(key, _)| !ANNOTATIONS.contains(&key.as_str()));
            let stripped = stripped.filter(|(key, value)| {
                let is_empty = value.object().is_some_and(BTreeMap::is_empty);
                !(is_empty && NAMED_SCHEMAS.contains(&key.as_str()))
            });
            let stripped = stripped.map(|(key, value)| {
                let value = match (key.as_str(), value) {
                    (key, data) if DATA.contains(&key) => data.clone(),
                    (key, CanonicalValue::Object(named)) if NAMED_SCHEMAS.contains(&key) => CanonicalValue::Object(
                        named.iter().map(|(name, schema)| (name.clone(), without_annotations(schema))).collect(),
                    ),
                    (_, value) => without_annotations(value),
                };
                (key.clone(), value)
            });
            CanonicalValue::Object(stripped.collect())
        }
        simple => simple.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(schema: &str) -> DefinitionHash {
        hash_shape(format!(r#"{{"name":"a","inputSchema":{schema}}}"#).as_bytes()).unwrap()
    }

    #[test]
    fn the_name_does_not_count_and_everything_else_does() {
        let plain = hash_tool(br#"{"name":"a","description":"d"}"#).unwrap();
        assert_eq!(hash_tool(br#"{"description":"\u0064","name":"b"}"#), Ok(plain));
        for other in [
            r#"{"name":"a","description":"d "}"#,
            r#"{"name":"a","description":"d","title":"t"}"#,
            r#"{"name":"a","description":"d","annotations":{}}"#,
            r#"{"name":"a","description":"d","_meta":{"x":1}}"#,
            r#"{"name":"a","description":"d","inputSchema":{}}"#,
            r#"{"name":"a","description":"d\u200b"}"#,
            r#"{"name":"a","descriptio\u0301n":"d"}"#,
        ] {
            assert_ne!(hash_tool(other.as_bytes()), Ok(plain), "{other}");
        }
    }

    #[test]
    fn descriptions_do_not_count_in_a_shape_but_properties_called_so_do() {
        let plain = shape_of(r#"{"type":"object","properties":{"title":{"type":"string"}}}"#);
        assert_eq!(
            plain,
            shape_of(r#"{"title":"T","properties":{"title":{"description":"x","type":"string"}},"type":"object"}"#)
        );
        assert_ne!(plain, shape_of(r#"{"type":"object","properties":{}}"#));
        assert_ne!(plain, shape_of(r#"{"type":"object","properties":{"title":{"type":"string","default":"x"}}}"#));
        assert_eq!(shape_of(r#"{"type":"object"}"#), shape_of(r#"{"type":"object","properties":{}}"#));
        let data = |text: &str| shape_of(&format!(r#"{{"properties":{{"a":{{"const":{{"title":"{text}"}}}}}}}}"#));
        assert_ne!(data("a"), data("b"));
    }

    #[test]
    fn unusable_definitions_are_errors() {
        for (text, expected) in [
            ("[]", DefinitionError::NotAnObject),
            ("{}", DefinitionError::NoName),
            (r#"{"name":1}"#, DefinitionError::NoName),
            (r#"{"name":""}"#, DefinitionError::NoName),
            (&format!(r#"{{"name":"{}"}}"#, "a".repeat(MAX_NAME + 1)), DefinitionError::NoName),
            (r#"{"name":"a","x":1e-99999999999999999999}"#, DefinitionError::Number(16)),
        ] {
            assert_eq!(ToolDefinition::parse(text.as_bytes()), Err(expected), "{text}");
        }
        for text in ["", r#"{"name":"a","name":"b"}"#, r#"{"name":"\ud800"}"#, "{\"name\":\"a\"} x"] {
            assert!(matches!(ToolDefinition::parse(text.as_bytes()), Err(DefinitionError::Json(_))), "{text}");
        }
    }

    #[test]
    fn large_and_deep_definitions_are_bounded() {
        let sized = |size: usize| format!(r#"{{"name":"a","description":"{}"}}"#, "x".repeat(size));
        assert!(hash_tool(sized(64 * 1024).as_bytes()).is_ok());
        assert!(matches!(hash_tool(sized(MAX_DEFINITION).as_bytes()), Err(DefinitionError::Json(_))));
        let deep = format!(r#"{{"name":"a","x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(hash_tool(deep.as_bytes()), Err(DefinitionError::Json(_))));
    }

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = hash_instructions("Use the tools.");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for text in ["", "sha256:", "sha256:00", &hash.to_string().replace("sha256", "sha512"), &format!("{hash}00")] {
            assert_eq!(text.parse::<DefinitionHash>(), Err(UnknownHash), "{text}");
        }
        assert_ne!(hash_instructions("{}").0, hash_tool(br#"{"name":"a"}"#).unwrap().0);
    }
}
