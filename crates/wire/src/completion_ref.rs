//! The reference of a completion: `params.ref`.

use crate::Span;
use crate::json;

/// The kind of entry that a completion is about.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Referenced {
    /// A prompt, by its name.
    Prompt,
    /// A resource or a template of resources, by its URI.
    Resource,
}

impl Referenced {
    /// The member of the reference that names the entry.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Prompt => "name",
            Self::Resource => "uri",
        }
    }
}

/// Why a reference is refused: servers could read it as one thing and the gateway as another.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReferenceError {
    /// It has neither of the two types.
    #[error("params.ref.type must be `ref/prompt` or `ref/resource`")]
    Type,
    /// It lacks the member that its type wants.
    #[error("params.ref must name a prompt or a resource: `{0}` is required, a string")]
    Missing(&'static str),
    /// It has the member of the other type too.
    #[error("params.ref has both `name` and `uri`")]
    Both,
}

/// Reads a reference: what it is about, and the span of the name or URI.
///
/// # Errors
/// If it has no type, or the members of another type.
pub fn read(reference: &[u8]) -> Result<(Referenced, Span), ReferenceError> {
    let member = |key: &str| json::member(reference, key);
    let kind = member("type").and_then(|span| json::string(span.of(reference)));
    let kind = match kind.as_deref() {
        Some("ref/prompt") => Referenced::Prompt,
        Some("ref/resource") => Referenced::Resource,
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

    /// Issue 31, point 5.
    #[test]
    fn a_reference_has_one_reading() {
        for (text, read_as) in [
            (r#"{"type":"ref/prompt","name":"p","title":"P"}"#, Ok((Referenced::Prompt, "\"p\""))),
            (r#"{"uri":"u:x","type":"ref\u002fresource"}"#, Ok((Referenced::Resource, "\"u:x\""))),
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
