//! First stage: parses a file into a tree in which every key and value has its position.
//!
//! TOML and JSON files become the same tree, so that one set of checks serves both.

use toml::de::{DeString, DeTable, DeValue};

use super::path::KeyPath;

/// Value with the offset of its first byte.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) at: usize,
}

/// Value of either format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    /// Exists only in TOML.
    Date,
    /// Exists only in JSON.
    Null,
    List(Vec<Node>),
    Table(Vec<RawEntry>),
    /// Part of a client's file that Signalbox does not read.
    Skipped,
}

impl Value {
    /// Compares two values without their positions.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(one), Self::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.value.is_like(&other.value))
            }
            (Self::Table(one), Self::Table(other)) => {
                let same = |(one, other): (&RawEntry, &RawEntry)| {
                    one.key == other.key && one.node.value.is_like(&other.node.value)
                };
                one.len() == other.len() && one.iter().zip(other).all(same)
            }
            _ => self == other,
        }
    }

    /// Returns the type with its article, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a decimal number",
            Self::Bool(_) => "a boolean",
            Self::Date => "a date or time",
            Self::Null => "null",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Skipped => "something else",
        }
    }
}

/// Key of a table, with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawEntry {
    pub(crate) key: String,
    pub(crate) key_at: usize,
    pub(crate) node: Node,
}

/// Reason why a text is not TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TomlFault {
    /// Key given twice. Its path is as complete as can be told.
    Duplicate { path: KeyPath, at: usize },
    /// Any other error, in the words of the parser.
    Syntax { message: String, at: usize },
}

/// Parses TOML into a tree.
pub(crate) fn parse_toml(text: &str) -> Result<Node, TomlFault> {
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        if error.message() == "duplicate key" {
            TomlFault::Duplicate { path: path_of_duplicate(text, &span), at: span.start }
        } else {
            TomlFault::Syntax { message: words(&error), at: span.start }
        }
    })?;
    Ok(Node { value: Value::Table(entries(table.into_inner())), at: 0 })
}

/// Returns the parser's message. For a string without quotes the parser may complain of a bad number or date.
fn words(error: &toml::de::Error) -> String {
    let message = error.message();
    let of_value = ["string values must be quoted", "invalid float", "invalid boolean"];
    if of_value.iter().any(|start| message.starts_with(start)) {
        return "expected a value; strings need quotes, like \"text\"".to_owned();
    }
    message.to_owned()
}

fn entries(table: DeTable<'_>) -> Vec<RawEntry> {
    let entry = |(key, value): (toml::Spanned<DeString<'_>>, toml::Spanned<DeValue<'_>>)| RawEntry {
        key_at: key.span().start,
        node: node(value),
        key: String::from(key.into_inner()),
    };
    table.into_iter().map(entry).collect()
}

fn node(value: toml::Spanned<DeValue<'_>>) -> Node {
    let at = value.span().start;
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => {
            Value::Integer(i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX))
        }
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Bool(flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(items.into_iter().map(node).collect()),
        DeValue::Table(table) => Value::Table(entries(table)),
    };
    Node { value, at }
}

/// Returns the path of a duplicate key. The parser reports its position, but not its table.
///
/// The header of a table spells its path out. For any other key a probe is put in its place, with the rest of the text
/// cut off. The path of the probe in the parsed result is that of the key.
fn path_of_duplicate(text: &str, span: &std::ops::Range<usize>) -> KeyPath {
    const PROBE: &str = "signalbox-duplicate-probe";
    let key = text.get(span.clone()).unwrap_or_default();
    let before = text.get(..span.start).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    if let Some(header) = line.strip_prefix('[') {
        let parents = header.trim_start_matches('[').split('.').map(str::trim);
        return parents
            .filter(|segment| !segment.is_empty())
            .chain([key])
            .fold(KeyPath::root(), |path, segment| path.child(unquoted(segment)));
    }
    let probed = format!("{before}{PROBE} = 0\n");
    let (table, _) = DeTable::parse_recoverable(&probed);
    let root = entries(table.into_inner());
    let parent = find(&root, PROBE, &KeyPath::root()).unwrap_or_default();
    parent.child(unquoted(key))
}

fn unquoted(key: &str) -> &str {
    key.trim_matches(['"', '\''])
}

/// Returns the path of the table that holds `key`.
fn find(entries: &[RawEntry], key: &str, path: &KeyPath) -> Option<KeyPath> {
    entries.iter().find_map(|entry| match &entry.node.value {
        _ if entry.key == key => Some(path.clone()),
        Value::Table(inner) => find(inner, key, &path.child(&entry.key)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duplicate(text: &str) -> String {
        match parse_toml(text) {
            Err(TomlFault::Duplicate { path, .. }) => path.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn duplicates_are_named_by_their_path() {
        assert_eq!(duplicate("[a.b]\nc=1\nd=2\nc=3\n"), "a.b.c");
        assert_eq!(duplicate("[a.b]\nc=1\n[a.b]\n"), "a.b");
        assert_eq!(duplicate("[a]\nx = { y = 1, y = 2 }\n"), "a.x.y");
        assert_eq!(duplicate("a=1\n\"a\"=2\n"), "a");
    }

    #[test]
    fn numbers_keep_their_size() {
        let root = parse_toml("a = 0xff\nb = 99999999999999999999\nc = 1.5\n").expect("valid");
        let Value::Table(entries) = root.value else { panic!() };
        let values: Vec<Value> = entries.into_iter().map(|entry| entry.node.value).collect();
        assert_eq!(values, [Value::Integer(255), Value::Integer(99_999_999_999_999_999_999), Value::Float(1.5)]);
    }
}
