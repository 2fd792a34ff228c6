//! Strings of a message that a model or a person reads.
//!
//! A message is walked as a whole, so that no position is forgotten when a revision adds one. What is left out is
//! listed: values that only programs read, such as cursors and base64. They are never edited, because their sender
//! would not recognise them.

use signalbox_wire::{Span, json};

/// Maximum depth of a message that is walked. The strict scan refuses deeper ones.
const MAX_DEPTH: usize = 128;

/// Meaning of a member for who reads its value, by its name.
enum MemberKind {
    /// Only programs read it, anywhere but in structured content.
    Opaque,
    /// It is read and means something to programs too: names, and values that schemas allow.
    Name,
    /// A part of a schema whose own members are named by the server, so that their names mean nothing here.
    NamedByServer,
    StructuredContent,
    /// Media in base64, or what a log message or an error is about.
    Data,
    Other,
}

impl MemberKind {
    /// Returns the kind of the member of this name, a string with its quotes.
    fn of(key: &[u8]) -> Self {
        let [b'"', content @ .., b'"'] = key else { return Self::Other };
        match memchr::memchr(b'\\', content) {
            None => Self::of_name(content),
            Some(_) => json::string(key).map_or(Self::Other, |name| Self::of_name(name.as_bytes())),
        }
    }

    fn of_name(name: &[u8]) -> Self {
        match name {
            b"$id" | b"$ref" | b"$schema" | b"_meta" | b"blob" | b"cursor" | b"format" | b"icons" | b"id"
            | b"lastModified" | b"method" | b"mimeType" | b"nextCursor" | b"pattern" | b"progressToken"
            | b"requestId" | b"requestState" | b"resultType" | b"role" | b"signature" | b"taskId" | b"type"
            | b"uri" | b"uriTemplate" | b"url" | b"websiteUrl" => Self::Opaque,
            b"const" | b"default" | b"enum" | b"hasMore" | b"logger" | b"name" | b"required" => Self::Name,
            b"$defs" | b"definitions" | b"dependentSchemas" | b"patternProperties" | b"properties" => {
                Self::NamedByServer
            }
            b"structuredContent" => Self::StructuredContent,
            b"data" => Self::Data,
            _ => Self::Other,
        }
    }
}

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
            for member in json::members(value) {
                let (key, place) = (member.key.of(value), within(span, member.value));
                let name = Readership::Name.max(part.readership);
                visit(TextPlace {
                    span: within(span, member.key),
                    readership: name,
                    is_key: true,
                    is_structured: part.is_structured,
                });
                walk(message, place, of_member(key, value, inside), visit);
            }
        }
        _ => {}
    }
}

/// Returns who reads the value of a member of an object.
fn of_member(key: &[u8], object: &[u8], part: Part) -> Part {
    if part.is_structured || part.readership == Readership::Opaque {
        return part;
    }
    if part.has_own_names {
        return Part { has_own_names: false, ..part };
    }
    let outside = Part { has_free_data: false, ..part };
    match MemberKind::of(key) {
        MemberKind::StructuredContent => Part { is_structured: true, ..outside },
        MemberKind::Data if part.has_free_data => Part { is_structured: true, ..outside },
        MemberKind::Data if is_media(object) => Part { readership: Readership::Opaque, ..outside },
        MemberKind::Opaque => Part { readership: Readership::Opaque, ..outside },
        MemberKind::NamedByServer => Part { has_own_names: true, ..outside },
        MemberKind::Name => Part { readership: Readership::Name, ..outside },
        MemberKind::Data | MemberKind::Other => outside,
    }
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
