//! Reference in a completion request: `params.ref`.

use crate::Span;
use crate::json;

/// Kind of entry that a completion request refers to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReferenceKind {
    /// Prompt, referred to by name.
    Prompt,
    /// Resource or resource template, referred to by URI.
    Resource,
}

impl ReferenceKind {
    /// Returns the member of the reference that identifies the entry.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Prompt => "name",
            Self::Resource => "uri",
        }
    }
}

/// Reason why a reference is rejected: servers and the gateway might interpret it differently.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReferenceError {
    /// The type is missing or unknown.
    #[error("params.ref.type must be `ref/prompt` or `ref/resource`")]
    Type,
    /// The member required by its type is missing.
    #[error("params.ref must name a prompt or a resource: `{0}` is required, a string")]
    Missing(&'static str),
    /// The reference also has the member of the other type.
    #[error("params.ref has both `name` and `uri`")]
    Both,
}

/// Parses a reference. Returns its kind and the span of the name or URI.
///
/// # Errors
/// If the type is unknown, or the members do not match the type.
pub fn read(reference: &[u8]) -> Result<(ReferenceKind, Span), ReferenceError> {
    let member = |key: &str| json::member(reference, key);
    let kind = member("type").and_then(|span| json::string(span.of(reference)));
    let kind = match kind.as_deref() {
        Some("ref/prompt") => ReferenceKind::Prompt,
        Some("ref/resource") => ReferenceKind::Resource,
        _ => return Err(ReferenceError::Type),
    };
    if member("name").is_some() && member("uri").is_some() {
        return Err(ReferenceError::Both);
    }
    Ok((kind, member(kind.key()).ok_or(ReferenceError::Missing(kind.key()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_has_one_reading() {
        for (text, read_as) in [
            (r#"{"type":"ref/prompt","name":"p","title":"P"}"#, Ok((ReferenceKind::Prompt, "\"p\""))),
            (r#"{"uri":"u:x","type":"ref\u002fresource"}"#, Ok((ReferenceKind::Resource, "\"u:x\""))),
            (r#"{"type":"ref/resource","uri":"u:x","name":"p"}"#, Err(ReferenceError::Both)),
            (r#"{"type":"ref/prompt","uri":"u:x","n\u0061me":"p"}"#, Err(ReferenceError::Both)),
            (r#"{"type":"ref/prompt","uri":"u:x"}"#, Err(ReferenceError::Missing("name"))),
            (r#"{"type":"ref/resource","name":"p"}"#, Err(ReferenceError::Missing("uri"))),
            (r#"{"name":"p"}"#, Err(ReferenceError::Type)),
            (r#"{"type":1,"uri":"u:x"}"#, Err(ReferenceError::Type)),
            ("7", Err(ReferenceError::Type)),
        ] {
            let read =
                read(text.as_bytes()).map(|(kind, span)| (kind, str::from_utf8(span.of(text.as_bytes())).unwrap()));
            assert_eq!(read, read_as, "{text}");
        }
    }
}
