//! Names and attributes of spans, after the OpenTelemetry semantic conventions for MCP.

use super::{Span, SpanKind, cut};
use crate::recording::unix_nanos;
use signalbox_config::{BackendTarget, Config};
use signalbox_engine::fact::{FinishedFact, Outcome};
use signalbox_engine::trace::{CallDeparture, Trace};
use signalbox_wire::{TraceParent, json, method};
use std::collections::HashMap;
use std::time::Instant;

/// Name for methods that MCP does not define. Their own names are unbounded.
const UNKNOWN_METHOD: &str = "unknown";

/// Transport attributes of clients and backends.
#[derive(Debug)]
pub(super) struct Places {
    /// Value of `network.transport` toward clients.
    clients: &'static str,
    backends: HashMap<String, Place>,
}

#[derive(Debug)]
struct Place {
    transport: &'static str,
    host: Option<(String, u16)>,
}

impl Places {
    /// Returns the attributes for a configuration. `pipe` is true if clients connect by standard input.
    pub(super) fn new(config: &Config, pipe: bool) -> Self {
        let place = |target: &BackendTarget| match target {
            BackendTarget::Command { .. } | BackendTarget::Tape | BackendTarget::Builtin(_) => {
                Place { transport: "pipe", host: None }
            }
            BackendTarget::Url { url, .. } => {
                let secure = url.scheme_str().is_some_and(|scheme| matches!(scheme, "https" | "wss"));
                let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
                let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
                Place { transport: "tcp", host: Some((host, port)) }
            }
        };
        let backends = config.backends.iter().map(|backend| (backend.name.clone(), place(&backend.target)));
        Self { clients: if pipe { "pipe" } else { "tcp" }, backends: backends.collect() }
    }
}

/// Pair of wall clock and monotonic clock, to convert instants into Unix time.
#[derive(Copy, Clone)]
pub(super) struct SpanClock {
    wall: u64,
    now: Instant,
}

impl SpanClock {
    pub(super) fn read() -> Self {
        Self { wall: unix_nanos(), now: Instant::now() }
    }

    fn unix_nanos(self, at: Instant) -> u64 {
        let ago = self.now.saturating_duration_since(at);
        self.wall.saturating_sub(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Returns the spans of an exchange: the client's request, and the call at the backend if there was one.
pub(super) fn spans(finished: &FinishedFact, trace: &Trace, places: &Places, clock: SpanClock) -> Vec<Span> {
    let mut spans = vec![server(finished, trace, places, clock)];
    if let Some(sent) = trace.told.sent.get() {
        spans.push(client(finished, trace, sent, places, clock));
    }
    spans
}

fn server(finished: &FinishedFact, trace: &Trace, places: &Places, clock: SpanClock) -> Span {
    let start = finished.at.checked_sub(finished.took).unwrap_or(finished.at);
    let origin = SpanOrigin { own: trace.span, parent: trace.parent, start, clock };
    let mut span = common(SpanKind::Server, origin, finished, finished.subject.as_deref());
    if let Some(ended) = &trace.ended {
        let id = json::string(ended.request.token());
        span.text("jsonrpc.request.id", &id.unwrap_or_else(|| String::from_utf8_lossy(ended.request.token())));
        if let Some(revision) = ended.revision {
            span.text("mcp.protocol.version", revision.as_str());
        }
    }
    if let Some(session) = &trace.session {
        span.text("mcp.session.id", session);
    }
    span.number("signalbox.session", i64::try_from(finished.session.0).unwrap_or(i64::MAX));
    span.text("network.transport", places.clients);
    failed(&mut span, finished, trace);
    span
}

fn client(finished: &FinishedFact, trace: &Trace, sent: &CallDeparture, places: &Places, clock: SpanClock) -> Span {
    let origin = SpanOrigin { own: trace.told.call, parent: Some(trace.span.span), start: sent.at, clock };
    let mut span = common(SpanKind::Client, origin, finished, sent.name.as_deref());
    span.text("jsonrpc.request.id", &sent.id.to_string());
    span.text("mcp.protocol.version", sent.revision.as_str());
    let place = finished.backend.as_deref().and_then(|backend| places.backends.get(backend));
    if let Some(place) = place {
        span.text("network.transport", place.transport);
        if let Some((host, port)) = &place.host {
            span.text("server.address", host);
            span.number("server.port", i64::from(*port));
        }
    }
    failed(&mut span, finished, trace);
    span
}

/// Place of a span in its trace, and its start.
struct SpanOrigin {
    own: TraceParent,
    parent: Option<[u8; 8]>,
    start: Instant,
    clock: SpanClock,
}

fn common(kind: SpanKind, origin: SpanOrigin, finished: &FinishedFact, subject: Option<&str>) -> Span {
    let SpanOrigin { own, parent, start, clock } = origin;
    let known = method::intern(&finished.method);
    let mut span = Span {
        own,
        parent,
        name: known.unwrap_or(UNKNOWN_METHOD).to_owned(),
        kind,
        start: clock.unix_nanos(start),
        end: clock.unix_nanos(finished.at),
        attributes: Vec::with_capacity(12),
        error: None,
    };
    span.text("mcp.method.name", &finished.method);
    let subject = subject.filter(|subject| !subject.is_empty());
    match (known, subject) {
        (Some(method::TOOLS_CALL), Some(tool)) => {
            span.name = format!("{} {}", span.name, cut(tool));
            span.text("gen_ai.operation.name", "execute_tool");
            span.text("gen_ai.tool.name", tool);
        }
        (Some(method::PROMPTS_GET), Some(prompt)) => {
            span.name = format!("{} {}", span.name, cut(prompt));
            span.text("gen_ai.prompt.name", prompt);
        }
        // URIs are not part of the name, because there are too many of them.
        (Some(method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE), Some(uri)) => {
            span.text("mcp.resource.uri", uri);
        }
        _ => {}
    }
    if let Some(backend) = &finished.backend {
        span.text("signalbox.backend", backend);
    }
    span.text("signalbox.outcome", finished.outcome.label());
    span
}

/// Adds the attributes of a failure. A cancelled request is not a failure.
fn failed(span: &mut Span, finished: &FinishedFact, trace: &Trace) {
    let code = trace.ended.as_ref().and_then(|ended| ended.code.as_deref());
    let kind = match finished.outcome {
        Outcome::Ok | Outcome::Cancelled => return,
        Outcome::ToolError => "tool_error",
        Outcome::BackendError | Outcome::Fault(_) => code.unwrap_or(finished.outcome.label()),
    };
    span.text("error.type", kind);
    if let Some(code) = code {
        span.text("rpc.response.status_code", code);
    }
    span.error = Some(finished.outcome.label().to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otel::Value;
    use signalbox_engine::trace::{CallTrace, TraceState};
    use signalbox_engine::{Caller, ExchangeId, SessionKey};
    use signalbox_wire::Era;
    use std::sync::{Arc, OnceLock};
    use std::time::Duration;

    fn span_of(method: &'static str, subject: Option<&str>, outcome: Outcome) -> Span {
        let finished = FinishedFact {
            at: Instant::now(),
            session: SessionKey(7),
            caller: Caller::anonymous("http"),
            client: None,
            operation: ExchangeId(1),
            round: 1,
            exchange: ExchangeId(1),
            era: Era::Legacy,
            method: method.into(),
            subject: subject.map(Box::from),
            backend: None,
            outcome,
            took: Duration::from_millis(5),
            bytes_in: 1,
            bytes_out: 1,
            trace: None,
            unreached: None,
        };
        let own = TraceParent { trace: [1; 16], span: [2; 8], flags: 1 };
        let told = Arc::new(CallTrace { call: own, state: TraceState::Kept, sent: OnceLock::new() });
        let trace = Trace { span: own, parent: None, session: None, told, ended: None };
        let places = Places { clients: "pipe", backends: HashMap::new() };
        let mut spans = spans(&finished, &trace, &places, SpanClock::read());
        assert_eq!(spans.len(), 1, "nothing was sent, so there is no call");
        spans.remove(0)
    }

    fn text<'a>(span: &'a Span, key: &str) -> Option<&'a str> {
        span.attributes.iter().find(|(known, _)| *known == key).map(|(_, value)| match value {
            Value::Text(text) => text.as_str(),
            Value::Number(_) => "a number",
        })
    }

    #[test]
    fn what_a_request_is_about_is_said_in_the_words_of_its_kind() {
        let prompt = span_of("prompts/get", Some("hello"), Outcome::Ok);
        assert_eq!((prompt.name.as_str(), text(&prompt, "gen_ai.prompt.name")), ("prompts/get hello", Some("hello")));
        let read = span_of("resources/read", Some("x://1"), Outcome::Ok);
        assert_eq!((read.name.as_str(), text(&read, "mcp.resource.uri")), ("resources/read", Some("x://1")));
        let odd = span_of("made/up", Some("thing"), Outcome::Ok);
        assert_eq!((odd.name.as_str(), text(&odd, "mcp.method.name")), ("unknown", Some("made/up")));
        assert_eq!(text(&read, "network.transport"), Some("pipe"));
        assert_eq!(read.end - read.start, 5_000_000);
    }

    #[test]
    fn a_cancelled_request_is_no_error_and_a_fault_without_an_answer_is_named_by_its_reason() {
        assert_eq!(span_of("ping", None, Outcome::Cancelled).error, None);
        let fault = span_of("ping", None, Outcome::Fault("timed_out"));
        assert_eq!((fault.error.as_deref(), text(&fault, "error.type")), (Some("timed_out"), Some("timed_out")));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "é".repeat(2000);
        assert_eq!(cut(&long).len(), 1024);
        assert_eq!(cut(&long[..2]), "é");
        assert_eq!(cut(&format!("x{long}")).len(), 1023);
    }
}
