//! Spans and metrics in the binary form of OTLP, limited to the messages of `opentelemetry.proto` that an export needs.
//!
//! A field is a key (its number and its wire type) and a value. A nested message is preceded by its length.

mod metrics;

pub(super) use metrics::{Window, metrics_request};

use super::{Span, SpanKind, Value};

/// Name of the instrumentation scope.
const SCOPE: &str = "signalbox";
/// `SpanKind` and `StatusCode` of the protocol.
const KIND_SERVER: u64 = 2;
const KIND_CLIENT: u64 = 3;
const STATUS_ERROR: u64 = 2;
/// Span flags that say whether the parent is known to be in another process. The lower bits are the trace flags.
const PARENT_IS_KNOWN: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;

/// Wire types of protobuf.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// Encodes an `ExportTraceServiceRequest` with the spans of one service.
pub(super) fn request(service: &str, instance: &str, spans: &[Span]) -> Vec<u8> {
    let spans: Vec<Message> = spans.iter().map(span).collect();
    of_service(service, instance, &spans)
}

/// Encodes an export request of one service, which has the same form for spans and metrics.
fn of_service(service: &str, instance: &str, items: &[Message]) -> Vec<u8> {
    let mut resource = Message::default();
    resource.message(1, &attribute("service.name", &Value::Text(service.to_owned())));
    resource.message(1, &attribute("service.version", &Value::Text(env!("CARGO_PKG_VERSION").to_owned())));
    resource.message(1, &attribute("service.instance.id", &Value::Text(instance.to_owned())));
    let mut scope = Message::default();
    scope.text(1, SCOPE);
    scope.text(2, env!("CARGO_PKG_VERSION"));
    let mut of_scope = Message::default();
    of_scope.message(1, &scope);
    for item in items {
        of_scope.message(2, item);
    }
    let mut of_resource = Message::default();
    of_resource.message(1, &resource);
    of_resource.message(2, &of_scope);
    let mut request = Message::default();
    request.message(1, &of_resource);
    request.0
}

fn span(span: &Span) -> Message {
    let mut message = Message::default();
    message.bytes(1, &span.own.trace);
    message.bytes(2, &span.own.span);
    if let Some(parent) = &span.parent {
        message.bytes(4, parent);
    }
    message.text(5, &span.name);
    message.number(6, if span.kind == SpanKind::Server { KIND_SERVER } else { KIND_CLIENT });
    message.fixed64(7, span.start);
    message.fixed64(8, span.end.max(span.start));
    for (key, value) in &span.attributes {
        message.message(9, &attribute(key, value));
    }
    if let Some(error) = &span.error {
        let mut status = Message::default();
        status.text(2, error);
        status.number(3, STATUS_ERROR);
        message.message(15, &status);
    }
    let remote = if span.kind == SpanKind::Server && span.parent.is_some() { PARENT_IS_REMOTE } else { 0 };
    message.fixed32(16, u32::from(span.own.flags) | PARENT_IS_KNOWN | remote);
    message
}

fn attribute(key: &str, value: &Value) -> Message {
    let mut any = Message::default();
    match value {
        Value::Text(text) => any.text(1, text),
        // Protobuf encodes a negative number as the unsigned one with the same bits.
        Value::Number(number) => any.number(3, number.cast_unsigned()),
    }
    let mut pair = Message::default();
    pair.text(1, key);
    pair.message(2, &any);
    pair
}

/// Encoder of one message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn key(&mut self, field: u64, layout: u64) {
        self.varint(field << 3 | layout);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.key(field, VARINT);
        self.varint(number);
    }

    fn fixed64(&mut self, field: u64, number: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn fixed32(&mut self, field: u64, number: u32) {
        self.key(field, FIXED32);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_laid_out_as_the_format_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.fixed32(16, 1);
        message.text(2, "testing");
        assert_eq!(message.0, b"\x08\x96\x01\x85\x01\x01\x00\x00\x00\x12\x07testing");
    }
}
