//! OpenTelemetry: metrics, and traces with a span for every client request and one for its call at a backend.
//!
//! The [`Tracer`] subscribes to facts: it assigns each request its place in a trace, and makes spans when the exchange
//! has finished. The [`exporter`] posts them by OTLP from a thread of its own. The queue between them is bounded; spans
//! that find it full are dropped and counted. Spans hold names, ids, times and outcomes, never arguments or results.
//! The [`MetricsExport`] posts the metrics of calls, operations and sessions that `/metrics` shows, at intervals.

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

/// Maximum length of a text attribute in bytes. Longer texts are cut.
const MAX_TEXT: usize = 1024;

/// Side of a call.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum SpanKind {
    /// The gateway received the request.
    Server,
    /// The gateway sent the request.
    Client,
}

/// Value of an attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    Text(String),
    Number(i64),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Span {
    /// Ids of the trace and the span, with the trace flags.
    own: TraceParent,
    parent: Option<[u8; 8]>,
    name: String,
    kind: SpanKind,
    /// Start in nanoseconds since 1970.
    start: u64,
    end: u64,
    attributes: Vec<(&'static str, Value)>,
    /// Status message of a failed span.
    error: Option<String>,
}

impl Span {
    /// Adds a text attribute, cut to [`MAX_TEXT`].
    fn text(&mut self, key: &'static str, value: &str) {
        self.attributes.push((key, Value::Text(cut(value).to_owned())));
    }

    /// Adds a numeric attribute.
    fn number(&mut self, key: &'static str, value: i64) {
        self.attributes.push((key, Value::Number(value)));
    }
}

/// Cuts a text to [`MAX_TEXT`] bytes at a character boundary.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
