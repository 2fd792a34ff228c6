//! One span, ready to be exported.

use signalbox_wire::TraceParent;

/// The longest text of an attribute, in bytes; a longer one is cut.
const MAX_TEXT: usize = 1024;

/// Which side of a call a span is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum SpanKind {
    /// We were called.
    Server,
    /// We called.
    Client,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Text(String),
    Number(i64),
}

/// A span that is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Span {
    /// Its trace, its own id and its flags.
    pub(super) own: TraceParent,
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    /// Nanoseconds since 1970.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// What kind of error it ended with.
    pub(super) error: Option<String>,
}

impl Span {
    /// Adds an attribute.
    pub(super) fn text(&mut self, key: &'static str, value: &str) {
        self.attributes.push((key, Value::Text(cut(value).to_owned())));
    }

    /// Adds an attribute.
    pub(super) fn number(&mut self, key: &'static str, value: i64) {
        self.attributes.push((key, Value::Number(value)));
    }
}

/// As much of a text as an attribute holds.
pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
