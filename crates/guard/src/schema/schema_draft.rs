//! Dialects of JSON Schema.

use super::InvalidSchema;
use super::limits::MAX_VIOLATION_CHARS;
use serde_json::Value;
use signalbox_wire::printable;

/// Dialect of JSON Schema that a schema was compiled as.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SchemaDraft {
    /// Draft-07, which many generators of tool schemas still write.
    Draft7,
    /// 2020-12, the default of MCP.
    Draft2020,
}

impl SchemaDraft {
    /// Returns the dialect that `$schema` names, or `None` without one.
    pub(super) fn declared(schema: &Value) -> Result<Option<Self>, InvalidSchema> {
        let Some(uri) = schema.get("$schema").and_then(Value::as_str) else { return Ok(None) };
        Self::from_library(referencing::Draft::from_schema_uri(uri))
            .map(Some)
            .ok_or_else(|| InvalidSchema::UnknownDialect { uri: printable::beginning(uri, MAX_VIOLATION_CHARS) })
    }

    /// Maps the dialect of the validator, which knows more of them.
    pub(super) fn from_library(draft: referencing::Draft) -> Option<Self> {
        match draft {
            referencing::Draft::Draft7 => Some(Self::Draft7),
            referencing::Draft::Draft202012 => Some(Self::Draft2020),
            _ => None,
        }
    }

    pub(super) fn to_library(self) -> referencing::Draft {
        match self {
            Self::Draft7 => referencing::Draft::Draft7,
            Self::Draft2020 => referencing::Draft::Draft202012,
        }
    }
}
