//! `Mcp-Param-*`: tool arguments that a schema asks to be repeated in headers.

use std::borrow::Cow;

use crate::header::{self, HeaderError, HeaderProblem, HeaderValues};
use crate::json;
use crate::number;

/// Schema keyword that requests a header.
pub const KEYWORD: &str = "x-mcp-header";

/// Maximum depth of the search in a schema.
const DEPTH: usize = 64;

/// Type of an argument that a header repeats.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ParamKind {
    /// Argument of type string.
    String,
    /// Argument of type integer, within ±(2^53−1).
    Integer,
    /// Argument of type boolean.
    Boolean,
}

/// Argument that is repeated in a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamHeader {
    /// Header name after `Mcp-Param-`, as spelled in the schema.
    pub header: String,
    /// Path to the argument through nested objects.
    pub path: Vec<String>,
    /// Type declared in the schema.
    pub kind: ParamKind,
}

impl ParamHeader {
    /// Returns the full header name.
    #[must_use]
    pub fn name(&self) -> String {
        format!("Mcp-Param-{}", self.header)
    }
}

/// Reason why a schema's header annotations are invalid. A client over HTTP must drop such a tool.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderSchemaError {
    /// The annotation is not a string.
    #[error("x-mcp-header must be a string")]
    NotString,
    /// The annotation is empty or has characters that a header name cannot have.
    #[error("x-mcp-header {0:?} is not a header name")]
    NotToken(String),
    /// Two annotations name the same header, ignoring case.
    #[error("x-mcp-header {0:?} occurs twice")]
    Duplicate(String),
    /// The property is not of type string, integer or boolean.
    #[error("x-mcp-header {0:?} on a property that is not string, integer or boolean")]
    WrongType(String),
    /// The annotation is at a place whose value cannot be found by property names alone.
    #[error("x-mcp-header is only allowed on properties, found under {0:?}")]
    Misplaced(String),
    /// The schema is nested too deeply to be searched.
    #[error("the schema is nested too deeply")]
    TooDeep,
}

/// Subschema to be searched.
struct Task<'a> {
    schema: &'a [u8],
    path: Vec<String>,
    depth: usize,
    /// Enclosing keyword that rules out headers, if any.
    under: Option<String>,
}

/// Finds all header annotations of an input schema, outer ones first.
///
/// # Errors
/// If an annotation breaks a rule.
pub fn param_headers(schema: &[u8]) -> Result<Vec<ParamHeader>, HeaderSchemaError> {
    let mut found: Vec<ParamHeader> = Vec::new();
    // Almost no schema has annotations, so skip the walk. A backslash may hide one.
    if memchr::memmem::find(schema, KEYWORD.as_bytes()).is_none() && !hides_keyword(schema) {
        return Ok(found);
    }
    let mut tasks = vec![Task { schema, path: Vec::new(), depth: 0, under: None }];
    let mut next = 0;
    while let Some(task) = tasks.get_mut(next) {
        next += 1;
        let task = Task {
            schema: task.schema,
            path: std::mem::take(&mut task.path),
            depth: task.depth,
            under: task.under.take(),
        };
        if task.depth > DEPTH {
            return Err(HeaderSchemaError::TooDeep);
        }
        visit(&task, &mut tasks, &mut found)?;
    }
    Ok(found)
}

fn hides_keyword(schema: &[u8]) -> bool {
    memchr::memmem::find(schema, b"\\u").is_some()
}

fn visit<'a>(
    task: &Task<'a>,
    tasks: &mut Vec<Task<'a>>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), HeaderSchemaError> {
    for member in json::members(task.schema) {
        let Some(keyword) = json::string(member.key.of(task.schema)) else {
            continue;
        };
        let value = member.value.of(task.schema);
        match &*keyword {
            KEYWORD => {
                let header = annotation(task, value)?;
                if found.iter().any(|other| other.header.eq_ignore_ascii_case(&header.header)) {
                    return Err(HeaderSchemaError::Duplicate(header.header));
                }
                found.push(header);
            }
            "properties" => {
                for property in json::members(value) {
                    let Some(name) = json::string(property.key.of(value)) else {
                        continue;
                    };
                    let mut path = task.path.clone();
                    path.push(name.into_owned());
                    tasks.push(Task {
                        schema: property.value.of(value),
                        path,
                        depth: task.depth + 1,
                        under: task.under.clone(),
                    });
                }
            }
            "items"
            | "prefixItems"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "additionalItems"
            | "additionalProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "propertyNames"
            | "contentSchema" => {
                push_schemas(task, &keyword, value, tasks);
            }
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" | "dependencies" => {
                for inner in json::members(value) {
                    push_schemas(task, &keyword, inner.value.of(value), tasks);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Queues a schema, or an array of them, in which headers are not allowed.
fn push_schemas<'a>(task: &Task<'a>, keyword: &str, value: &'a [u8], tasks: &mut Vec<Task<'a>>) {
    let under = task.under.clone().unwrap_or_else(|| keyword.to_owned());
    let mut push = |schema| {
        tasks.push(Task { schema, path: Vec::new(), depth: task.depth + 1, under: Some(under.clone()) });
    };
    if value.first() == Some(&b'{') {
        push(value);
    }
    for element in json::elements(value) {
        push(element.of(value));
    }
}

fn annotation(task: &Task<'_>, value: &[u8]) -> Result<ParamHeader, HeaderSchemaError> {
    if let Some(under) = &task.under {
        return Err(HeaderSchemaError::Misplaced(header::quoted(under)));
    }
    if task.path.is_empty() {
        return Err(HeaderSchemaError::Misplaced("the root".to_owned()));
    }
    let header = json::string(value).ok_or(HeaderSchemaError::NotString)?;
    if header.is_empty() || !header.bytes().all(is_token_byte) {
        return Err(HeaderSchemaError::NotToken(header::quoted(&header)));
    }
    if json::member(task.schema, "$ref").is_some() {
        return Err(HeaderSchemaError::Misplaced("$ref".to_owned()));
    }
    let kind = json::member(task.schema, "type").and_then(|span| json::string(span.of(task.schema)));
    let kind = match kind.as_deref() {
        Some("string") => ParamKind::String,
        Some("integer") => ParamKind::Integer,
        Some("boolean") => ParamKind::Boolean,
        _ => return Err(HeaderSchemaError::WrongType(header::quoted(&header))),
    };
    Ok(ParamHeader { header: header.into_owned(), path: task.path.clone(), kind })
}

/// Returns `true` for a character of a token in RFC 9110.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the headers to send with a call: full name and encoded value. Skips absent and null arguments, and objects
/// and arrays, which the schema rejects anyway.
#[must_use]
pub fn param_values(headers: &[ParamHeader], arguments: &[u8]) -> Vec<(String, String)> {
    let value = |header: &ParamHeader| {
        let argument = Argument::find(header, arguments);
        let text = argument.text()?;
        Some((header.name(), header::encode_value(&text).into_owned()))
    };
    headers.iter().filter_map(value).collect()
}

/// Checks that the `Mcp-Param-*` headers of a call agree with its arguments. `lookup` gets header names in lower case.
///
/// # Errors
/// The first header that is missing, repeated, malformed, unexpected or disagrees with the body.
pub fn check_params<'a>(
    headers: &[ParamHeader],
    arguments: &[u8],
    lookup: impl Fn(&str) -> HeaderValues<'a>,
) -> Result<(), HeaderError> {
    for header in headers {
        let name = header.name().to_ascii_lowercase();
        let argument = Argument::find(header, arguments);
        argument.check(lookup(&name)).map_err(|problem| HeaderError::new(name, problem))?;
    }
    Ok(())
}

/// Value of an argument that a header repeats.
enum Argument<'a> {
    Absent,
    Text(Cow<'a, str>),
    Integer(i64),
    /// Number that is not an integer within the safe range.
    Number(&'a [u8]),
    /// Object, array or malformed value.
    Other,
}

impl<'a> Argument<'a> {
    fn find(header: &ParamHeader, arguments: &'a [u8]) -> Self {
        let path: Vec<&str> = header.path.iter().map(String::as_str).collect();
        let Some(span) = json::path(arguments, &path) else {
            return Self::Absent;
        };
        match span.of(arguments) {
            b"null" => Self::Absent,
            b"true" => Self::Text(Cow::Borrowed("true")),
            b"false" => Self::Text(Cow::Borrowed("false")),
            token @ [b'"', ..] => json::string(token).map_or(Self::Other, Self::Text),
            token => match number::to_safe_integer(token) {
                Some(integer) => Self::Integer(integer),
                None if number::length(token) == Some(token.len()) => Self::Number(token),
                None => Self::Other,
            },
        }
    }

    fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Absent | Self::Other => None,
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Integer(integer) => Some(Cow::Owned(integer.to_string())),
            Self::Number(token) => Some(String::from_utf8_lossy(token)),
        }
    }

    fn check(&self, values: HeaderValues<'_>) -> Result<(), HeaderProblem> {
        let raw = match values {
            HeaderValues::Many => return Err(HeaderProblem::Repeated),
            HeaderValues::One(raw) => Some(raw),
            HeaderValues::Missing => None,
        };
        match (self, self.text(), raw) {
            (Self::Other, _, _) => Err(HeaderProblem::NotRepeatable),
            (_, None, None) => Ok(()),
            (_, None, Some(raw)) => {
                Err(HeaderProblem::Unexpected { found: header::quoted(&String::from_utf8_lossy(raw)) })
            }
            (_, Some(expected), None) => Err(HeaderProblem::Missing { expected: header::quoted(&expected) }),
            (_, Some(expected), Some(raw)) => {
                let found = header::decode(raw)?;
                let same = match self {
                    Self::Integer(integer) => number::to_safe_integer(found.as_bytes()) == Some(*integer),
                    _ => found == expected,
                };
                if same {
                    return Ok(());
                }
                Err(HeaderProblem::Mismatch { expected: header::quoted(&expected), found: header::quoted(&found) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HeaderSchemaError as E;

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "x-mcp-header":{"type":"string"},
        "inner":{"type":"object","properties":{
            "count":{"x-mcp-header":"Count","type":"integer"},
            "on":{"type":"boolean","x-mcp-header":"On","default":{"x-mcp-header":7}}}}}}"#;

    fn headers() -> Vec<ParamHeader> {
        param_headers(SCHEMA.as_bytes()).unwrap()
    }

    #[test]
    fn finds_annotations_through_properties() {
        let found: Vec<_> =
            headers().into_iter().map(|header| (header.name(), header.path.join("."), header.kind)).collect();
        let expected = [
            ("Mcp-Param-Region", "region", ParamKind::String),
            ("Mcp-Param-Count", "inner.count", ParamKind::Integer),
            ("Mcp-Param-On", "inner.on", ParamKind::Boolean),
        ];
        assert_eq!(found, expected.map(|(name, path, kind)| (name.into(), path.into(), kind)));
        assert_eq!(param_headers(b"{}"), Ok(vec![]));
        assert_eq!(param_headers(b"true"), Ok(vec![]));
        assert_eq!(param_headers(br#"{"\u0061":"x-mcp-header"}"#), Ok(vec![]));
    }

    #[test]
    fn refuses_annotations_that_break_a_rule() {
        let property =
            |property: &str| param_headers(format!(r#"{{"properties":{{"a":{property}}}}}"#).as_bytes()).unwrap_err();
        assert_eq!(property(r#"{"type":"string","x-mcp-header":7}"#), E::NotString);
        for bad in ["", "a b", "a:b", "a\\r\\nb", "é"] {
            let error = property(&format!(r#"{{"type":"string","x-mcp-header":"{bad}"}}"#));
            assert!(matches!(error, E::NotToken(_)), "{bad}: {error}");
        }
        for kind in [r#""number""#, r#""object""#, r#""array""#, r#""null""#, r#"["string","null"]"#] {
            let error = property(&format!(r#"{{"type":{kind},"x-mcp-header":"X"}}"#));
            assert_eq!(error, E::WrongType("X".into()), "{kind}");
        }
        assert_eq!(property(r#"{"x-mcp-header":"X"}"#), E::WrongType("X".into()));
        assert_eq!(property(r#"{"$ref":"x","type":"string","x-mcp-header":"X"}"#), E::Misplaced("$ref".into()));
        let twice =
            br#"{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}"#;
        assert_eq!(param_headers(twice), Err(E::Duplicate("x".into())));
    }

    #[test]
    fn refuses_annotations_that_property_names_do_not_reach() {
        let leaf = r#"{"type":"string","x-mcp-header":"X"}"#;
        let inner = format!(r#"{{"properties":{{"b":{leaf}}}}}"#);
        for keyword in ["items", "not", "if", "then", "else", "additionalProperties", "contains"] {
            let schema = format!(r#"{{"properties":{{"a":{{"{keyword}":{inner}}}}}}}"#);
            assert_eq!(param_headers(schema.as_bytes()), Err(E::Misplaced(keyword.into())));
        }
        for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            let schema = format!(r#"{{"{keyword}":[true,{inner}]}}"#);
            assert_eq!(param_headers(schema.as_bytes()), Err(E::Misplaced(keyword.into())));
        }
        let schema = format!(r#"{{"$defs":{{"d":{leaf}}}}}"#);
        assert_eq!(param_headers(schema.as_bytes()), Err(E::Misplaced("$defs".into())));
        assert_eq!(param_headers(leaf.as_bytes()), Err(E::Misplaced("the root".into())));
        let hidden = br#"{"anyOf":[{"x\u002dmcp-header":"X"}]}"#;
        assert_eq!(param_headers(hidden), Err(E::Misplaced("anyOf".into())));
    }

    #[test]
    fn a_deep_schema_is_refused_rather_than_walked() {
        let deep = r#"{"not":"#.repeat(50_000) + r#"{"x-mcp-header":"X"}"# + &"}".repeat(50_000);
        assert_eq!(param_headers(deep.as_bytes()), Err(E::TooDeep));
    }

    #[test]
    fn values_come_from_the_arguments() {
        let values = |arguments: &str| param_values(&headers(), arguments.as_bytes());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            values(r#"{"region":"été","inner":{"count":42.0,"on":true}}"#),
            [
                pair("Mcp-Param-Region", "=?base64?w6l0w6k=?="),
                pair("Mcp-Param-Count", "42"),
                pair("Mcp-Param-On", "true"),
            ]
        );
        assert_eq!(values(r#"{"region":null,"inner":{}}"#), []);
        assert_eq!(values(r#"{"region":{},"inner":[]}"#), []);
        assert_eq!(values(""), []);
    }

    #[test]
    fn headers_are_checked_against_the_arguments() {
        let check = |arguments: &str, sent: &[(&str, &'static str)]| {
            let lookup = |name: &str| {
                sent.iter().filter(|(header, _)| *header == name).map(|(_, value)| value.as_bytes()).collect()
            };
            check_params(&headers(), arguments.as_bytes(), lookup).map_err(|error| error.to_string())
        };
        let count = r#"{"inner":{"count":42}}"#;
        for same in ["42", "42.0", "4.2e1", "=?base64?NDI=?="] {
            assert_eq!(check(count, &[("mcp-param-count", same)]), Ok(()), "{same}");
        }
        assert_eq!(
            check(count, &[("mcp-param-count", "43")]).unwrap_err(),
            "header mcp-param-count: expected \"42\", found \"43\""
        );
        assert_eq!(check(count, &[]).unwrap_err(), "header mcp-param-count: missing, expected \"42\"");
        assert!(check("{}", &[("mcp-param-region", "eu")]).is_err());
        assert!(check(r#"{"region":null}"#, &[("mcp-param-region", "null")]).is_err());
        let twice = ("mcp-param-region", "eu");
        assert!(check(r#"{"region":"eu"}"#, &[twice, twice]).is_err());
        assert_eq!(check(r#"{"region":"eu"}"#, &[twice, ("mcp-param-unknown", "x")]), Ok(()));
        assert!(check(r#"{"region":{}}"#, &[]).is_err());
    }
}
