//! Strings of a message that a model or a person reads.
//!
//! A message is walked as a whole, so that no position is forgotten when a revision adds one. What is left out is
//! listed: values that only programs read, such as cursors and base64. They are never edited, because their sender
//! would not recognise them.

use signalbox_wire::{Span, json};

/// Maximum depth of a message that is walked. The strict scan refuses deeper ones.
const MAX_DEPTH: usize = 128;

/// Members whose values only programs read, anywhere but in structured content.
const OPAQUE: &[&str] = &[
    "$id",
    "$ref",
    "$schema",
    "_meta",
    "blob",
    "cursor",
    "format",
    "icons",
    "id",
    "lastModified",
    "method",
    "mimeType",
    "nextCursor",
    "pattern",
    "progressToken",
    "requestId",
    "requestState",
    "resultType",
    "role",
    "signature",
    "taskId",
    "type",
    "uri",
    "uriTemplate",
    "url",
    "websiteUrl",
];

/// Members whose values are read and mean something to programs too: names, and values that schemas allow.
const NAMES: &[&str] = &["const", "default", "enum", "hasMore", "logger", "name", "required"];

/// Members of schemas whose own members are named by the server, so that their names mean nothing here.
const NAMED_BY_SERVER: &[&str] = &["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Readers of a string.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Readership {
    /// A model or a person, who reads the same after cleaning.
    Text,
    /// A model or a person, and programs that compare it. It cannot be edited.
    Name,
    /// Programs alone, which compare it.
    Opaque,
}

/// String in a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TextPlace {
    /// Place of the string with its quotes, in the bytes that were walked.
    pub span: Span,
    /// Readers that the string has.
    pub readership: Readership,
    /// True for a name of a member.
    pub is_key: bool,
    /// True within structured content, whose shape the tool declares.
    pub is_structured: bool,
}

/// Part of a message that is being walked.
#[derive(Copy, Clone)]
struct Part {
    readership: Readership,
    is_structured: bool,
    /// True for an object whose members are named by the server.
    has_own_names: bool,
    /// True for a log message or an error, whose `data` has any form.
    has_free_data: bool,
    depth: usize,
}

/// A message as a whole.
const ALL: Part =
    Part { readership: Readership::Text, is_structured: false, has_own_names: false, has_free_data: false, depth: 0 };

/// Calls `visit` for each string of the value at `span`, in order.
pub fn visit(message: &[u8], span: Span, visit: &mut dyn FnMut(TextPlace)) {
    walk(message, span, ALL, visit);
}

/// Does the same for the params of a log message or an error, whose `data` has any form.
pub fn visit_report(message: &[u8], span: Span, visit: &mut dyn FnMut(TextPlace)) {
    walk(message, span, Part { has_free_data: true, ..ALL }, visit);
}

fn walk(message: &[u8], span: Span, part: Part, visit: &mut dyn FnMut(TextPlace)) {
    let value = span.of(message);
    let inside = Part { depth: part.depth + 1, ..part };
    if inside.depth > MAX_DEPTH {
        return;
    }
    match value.first() {
        Some(b'"') => {
            visit(TextPlace { span, readership: part.readership, is_key: false, is_structured: part.is_structured })
        }
        Some(b'[') => {
            json::elements(value).for_each(|element| walk(message, within(span, element), inside, visit));
        }
        Some(b'{') => {
            let has_media = is_media(value);
            for member in json::members(value) {
                let (key, place) = (member.key.of(value), within(span, member.value));
                let name = Readership::Name.max(part.readership);
                visit(TextPlace {
                    span: within(span, member.key),
                    readership: name,
                    is_key: true,
                    is_structured: part.is_structured,
                });
                walk(message, place, of_member(key, has_media, inside), visit);
            }
        }
        _ => {}
    }
}

/// Returns who reads the value of a member.
fn of_member(key: &[u8], has_media: bool, part: Part) -> Part {
    if part.is_structured || part.readership == Readership::Opaque {
        return part;
    }
    if part.has_own_names {
        return Part { has_own_names: false, ..part };
    }
    let is = |names: &[&str]| names.iter().any(|name| json::key_eq(key, name));
    let is_free = part.has_free_data && json::key_eq(key, "data");
    let part = Part { has_free_data: false, ..part };
    if is_free || json::key_eq(key, "structuredContent") {
        return Part { is_structured: true, ..part };
    }
    if is(OPAQUE) || has_media && json::key_eq(key, "data") {
        return Part { readership: Readership::Opaque, ..part };
    }
    if is(NAMED_BY_SERVER) {
        return Part { has_own_names: true, ..part };
    }
    Part { readership: if is(NAMES) { Readership::Name } else { part.readership }, ..part }
}

/// Returns true for a content block whose `data` is base64.
fn is_media(object: &[u8]) -> bool {
    let kind = json::member(object, "type").map(|span| span.of(object));
    json::member(object, "mimeType").is_some()
        && kind.is_some_and(|kind| json::key_eq(kind, "image") || json::key_eq(kind, "audio"))
}

impl Readership {
    /// Returns the narrower of two readerships.
    fn max(self, other: Self) -> Self {
        if self == Self::Opaque || other == Self::Opaque { Self::Opaque } else { Self::Name }
    }
}

fn within(outer: Span, inner: Span) -> Span {
    inner.shift(u32::try_from(outer.range().start).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The strings of a value, with T, N or O for who reads them, and `.` for structured content.
    fn strings(value: &str) -> Vec<String> {
        let mut all = Vec::new();
        visit(value.as_bytes(), Span::new(0, value.len()), &mut |place| {
            if place.is_key {
                return;
            }
            let letter = match place.readership {
                Readership::Text => "T",
                Readership::Name => "N",
                Readership::Opaque => "O",
            };
            let text = json::string(place.span.of(value.as_bytes())).unwrap();
            all.push(format!("{letter}{}{text}", if place.is_structured { "." } else { "" }));
        });
        all
    }

    #[test]
    fn what_a_model_reads_of_a_result_is_told_from_what_only_programs_read() {
        let result = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"QUFB","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"file:///x","text":"b","blob":"QkJC"}},
            {"type":"resource_link","uri":"file:///y","name":"y","title":"c"}],
            "structuredContent":{"uri":"d","deep":[{"_meta":"e"}]},"_meta":{"k":"f"},"requestState":"g"}"#;
        let wanted = [
            "Otext",
            "Ta",
            "Oimage",
            "OQUFB",
            "Oimage/png",
            "Oresource",
            "Ofile:///x",
            "Tb",
            "OQkJC",
            "Oresource_link",
            "Ofile:///y",
            "Ny",
            "Tc",
            "T.d",
            "T.e",
            "Of",
            "Og",
        ];
        assert_eq!(strings(result), wanted);
    }

    #[test]
    fn log_messages_questions_and_errors_are_read_wherever_their_text_stands() {
        assert_eq!(strings(r#"{"level":"info","data":{"a":["x"]}}"#), ["Tinfo", "Tx"]);
        let log = r#"{"level":"info","type":"image","mimeType":"x","data":{"url":"x"}}"#;
        let mut all = Vec::new();
        visit_report(log.as_bytes(), Span::new(0, log.len()), &mut |place| {
            if !place.is_key && place.readership == Readership::Text {
                all.push(&log[place.span.range()]);
            }
        });
        assert_eq!(all, [r#""info""#, r#""x""#], "the data of a log is read, whatever it calls itself");
        assert_eq!(strings(r#"{"code":-1,"message":"m","data":"d"}"#), ["Tm", "Td"]);
        let question = r#"{"message":"q","requestedSchema":{"type":"object","properties":{"id":{"type":"string",
            "title":"t","description":"d","enum":["e"],"default":"f"}}}}"#;
        // The property is named like an opaque member, and what is in it is not read by programs alone.
        assert_eq!(strings(question), ["Tq", "Oobject", "Ostring", "Tt", "Td", "Ne", "Nf"]);
    }

    #[test]
    fn every_string_and_name_is_visited_once_and_in_order() {
        let value = r#"{"a":"b","c":["d",{"e":"f"}],"g":1}"#;
        let mut spans = Vec::new();
        visit(value.as_bytes(), Span::new(0, value.len()), &mut |place| spans.push(place.span.range()));
        let texts: Vec<&str> = spans.iter().map(|range| &value[range.start + 1..range.end - 1]).collect();
        assert_eq!(texts, ["a", "b", "c", "d", "e", "f", "g"]);
    }
}
