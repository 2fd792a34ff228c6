//! OpenTelemetry traces: a span for every request of a client and one for the call that it becomes at a backend.
//!
//! The [`Tracer`] is a subscriber to facts: it gives each request its place in a trace, and makes spans of what is told when
//! the request is over. The [`exporter`] posts them by OTLP from a thread of its own; between the two is a bounded queue, and
//! what finds it full is dropped and counted. Spans hold names, ids, times and outcomes, never arguments or results.

mod exporter;
mod proto;
mod semantics;
mod span;
mod tracer;

pub use exporter::Telemetry;
pub use tracer::Tracer;
