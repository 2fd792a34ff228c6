//! Reads JSON files of MCP clients into the same tree as TOML.
//!
//! Editors allow comments and trailing commas in these files. Both are blanked out before parsing, so that every offset
//! stays. Only the list of servers is read in full, because such a file may hold much else.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::foreign::PROJECTS;
use super::path::KeyPath;
use super::raw::{Node, RawEntry, Value};

/// Maximum nesting of a server entry. The formats need three levels.
const MAX_DEPTH: usize = 16;

/// Reason why a text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsonFault {
    /// Key given twice in one object.
    Duplicate { path: KeyPath, at: usize },
    /// Any other error, in the words of the parser.
    Syntax { message: String, at: usize },
}

/// Parses JSON with comments. Of the top-level keys, and of the keys of each project, only those in `wanted` are read
/// in full.
pub(super) fn parse(text: &str, wanted: &[&str]) -> Result<Node, JsonFault> {
    let clean = without_comments(text);
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&clean) {
        return Err(JsonFault::Syntax { message: words(&error), at: offset(&clean, error.line(), error.column()) });
    }
    let reader = Reader { text: &clean, wanted };
    reader.node(clean.trim(), &KeyPath::root())
}

/// Returns the parser's message without its position, which is reported apart.
fn words(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.clone(), |(words, _)| words.to_owned())
}

/// Returns the offset of a line and column as serde_json counts them: columns in bytes, the last byte read.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    start + column.saturating_sub(1)
}

struct Reader<'a> {
    text: &'a str,
    wanted: &'a [&'a str],
}

impl Reader<'_> {
    fn node(&self, json: &str, path: &KeyPath) -> Result<Node, JsonFault> {
        // Every slice handed down is part of the text, so its address gives its offset.
        let at = (json.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let syntax = |message: &str| JsonFault::Syntax { message: message.to_owned(), at };
        let depth = path.segments().len();
        if depth > MAX_DEPTH {
            return Err(syntax("nested too deeply"));
        }
        let wanted = self.wants(path.segments());
        let value = match json.as_bytes().first() {
            _ if !wanted => Value::Skipped,
            Some(b'{') => Value::Table(self.entries(json, path, at)?),
            Some(b'[') => {
                let Items(items) = read(json).ok_or_else(|| syntax("not a list"))?;
                let items = items.iter().map(|item| self.node(item.get(), &path.child("[]")));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Some(b'"') => Value::Text(read(json).ok_or_else(|| syntax("not a string"))?),
            Some(b't') => Value::Bool(true),
            Some(b'f') => Value::Bool(false),
            Some(b'n') => Value::Null,
            _ => number(json),
        };
        Ok(Node { value, at })
    }

    /// Returns `true` if the value at this path is read: a list of servers, or that of a project.
    fn wants(&self, path: &[String]) -> bool {
        match path {
            [key] => key == PROJECTS || self.wanted.contains(&key.as_str()),
            [first, _, key] if first == PROJECTS => self.wanted.contains(&key.as_str()),
            _ => true,
        }
    }

    fn entries(&self, json: &str, path: &KeyPath, at: usize) -> Result<Vec<RawEntry>, JsonFault> {
        let syntax = |message: &str| JsonFault::Syntax { message: message.to_owned(), at };
        let Members(members) = read(json).ok_or_else(|| syntax("not an object"))?;
        let mut entries: Vec<RawEntry> = Vec::with_capacity(members.len());
        let mut seen = std::collections::HashSet::new();
        for (raw_key, value) in members {
            let key: String = read(raw_key.get()).ok_or_else(|| syntax("not a key"))?;
            let path = path.child(&key);
            let key_at = (raw_key.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
            if !seen.insert(key.clone()) {
                return Err(JsonFault::Duplicate { path, at: key_at });
            }
            let node = self.node(value.get(), &path)?;
            entries.push(RawEntry { key, key_at, node });
        }
        Ok(entries)
    }
}

fn number(json: &str) -> Value {
    json.parse().map(Value::Integer).unwrap_or_else(|_| Value::Float(json.parse().unwrap_or(f64::NAN)))
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    serde_json::from_str(json).ok()
}

/// Members of an object in their order, keys and values as they are written in the text.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Items of a list as they are written in the text.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Replaces `// …`, `/* … */` and trailing commas by as many spaces.
fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut clean = bytes.to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => string_end(bytes, at),
            (b'/', Some(b'/')) => find(bytes, at, b"\n").unwrap_or(bytes.len()),
            (b'/', Some(b'*')) => find(bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2),
            _ => at + 1,
        };
        match bytes[at] {
            b'/' if end > at + 1 => blank(&mut clean[at..end]),
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    clean[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at = end;
    }
    // Only whole comments and single ASCII bytes were replaced, so this is still UTF-8.
    String::from_utf8(clean).unwrap_or_else(|_| text.to_owned())
}

/// Returns the offset after the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn find(bytes: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(needle.len()).position(|window| window == needle).map(|found| from + found)
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_blanked() {
        let text = "{ // é\n \"a//b\": [1, 2, /* x */ ], \"c\\\",}\": 3,\n}";
        let clean = without_comments(text);
        assert_eq!(clean.len(), text.len());
        assert_eq!(clean, "{      \n \"a//b\": [1, 2          ], \"c\\\",}\": 3 \n}");
        assert_eq!(without_comments("\"\\"), "\"\\");
        assert_eq!(without_comments("/*"), "  ");
    }

    #[test]
    fn offsets_point_into_the_text() {
        let text = " {\"other\": {\"x\": 1}, \"servers\": {\"a\\n\": [true, 2.5, null]}}";
        let root = parse(text, &["servers"]).expect("valid");
        let Value::Table(top) = &root.value else { panic!() };
        assert_eq!(top[0].node.value, Value::Skipped);
        assert_eq!(&text[top[1].key_at..top[1].key_at + 9], "\"servers\"");
        let Value::Table(servers) = &top[1].node.value else { panic!() };
        assert_eq!(servers[0].key, "a\n");
        assert!(text[servers[0].node.at..].starts_with("[true"));
    }

    #[test]
    fn faults_have_a_place() {
        let fault = parse("{\n  \"a\" 1}", &[]).expect_err("bad");
        let JsonFault::Syntax { message, at } = fault else { panic!() };
        assert_eq!((message.as_str(), at), ("expected `:`", 8));
        let fault = parse("{\"s\": {\"a\": 1, \"a\": 2}}", &["s"]).expect_err("bad");
        let JsonFault::Duplicate { path, at } = fault else { panic!() };
        assert_eq!((path.to_string().as_str(), at), ("s.a", 15));
        let deep = format!("{{\"s\": {}1{}}}", "[".repeat(60), "]".repeat(60));
        assert!(parse(&deep, &["s"]).is_err());
    }
}
