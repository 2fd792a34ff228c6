//! OpenTelemetry: traces, with a span for every request of a client and one for the call that it becomes at a backend, and metrics.
//!
//! The [`Tracer`] is a subscriber to facts: it gives each request its place in a trace, and makes spans of what is told when
//! the request is over. The [`exporter`] posts them by OTLP from a thread of its own; between the two is a bounded queue, and
//! what finds it full is dropped and counted. Spans hold names, ids, times and outcomes, never arguments or results.
//! The [`MetricsExport`] posts what `/metrics` shows of calls, operations and sessions, in intervals.

mod collector;
mod exporter;
mod metrics_exporter;
mod proto;
mod semantics;
mod tracer;

pub use exporter::Telemetry;
pub use metrics_exporter::MetricsExport;
pub use tracer::Tracer;

use signalbox_wire::TraceParent;

/// The longest text of an attribute, in bytes; a longer one is cut.
const MAX_TEXT: usize = 1024;

/// Which side of a call a span is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum SpanKind {
    /// We were called.
    Server,
    /// We called.
    Client,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    Text(String),
    Number(i64),
}

/// A span that is over.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Span {
    /// Its trace, its own id and its flags.
    own: TraceParent,
    parent: Option<[u8; 8]>,
    name: String,
    kind: SpanKind,
    /// Nanoseconds since 1970.
    start: u64,
    end: u64,
    attributes: Vec<(&'static str, Value)>,
    /// What kind of error it ended with.
    error: Option<String>,
}

impl Span {
    /// Adds an attribute.
    fn text(&mut self, key: &'static str, value: &str) {
        self.attributes.push((key, Value::Text(cut(value).to_owned())));
    }

    /// Adds an attribute.
    fn number(&mut self, key: &'static str, value: i64) {
        self.attributes.push((key, Value::Number(value)));
    }
}

/// As much of a text as an attribute holds.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
