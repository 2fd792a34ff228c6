//! Metrics: the messages of `opentelemetry.proto.metrics.v1` that counters and durations need.

use super::{Message, Value, attribute, of_service};
use crate::metric_family::{MetricFamily, MetricLabels, Points};
use signalbox_engine::labelled_durations::BucketReading;

/// `AggregationTemporality` of the protocol. Each point counts everything since the start.
const CUMULATIVE: u64 = 2;
const MICROS: f64 = 1_000_000.0;

/// Period of cumulative counters, in nanoseconds since 1970.
#[derive(Clone, Copy)]
pub(in crate::otel) struct Window {
    /// Time at which counting started.
    pub(in crate::otel) start: u64,
    /// Time of the reading.
    pub(in crate::otel) now: u64,
}

/// Encodes an `ExportMetricsServiceRequest` for these families. Families without points are left out.
pub(in crate::otel) fn metrics_request(
    service: &str,
    instance: &str,
    window: Window,
    families: &[MetricFamily],
) -> Vec<u8> {
    let is_there = |family: &&MetricFamily| match &family.points {
        Points::Counters(points) => !points.is_empty(),
        Points::Durations(points) => !points.is_empty(),
    };
    let metrics: Vec<Message> = families.iter().filter(is_there).map(|family| metric(family, window)).collect();
    of_service(service, instance, &metrics)
}

fn metric(family: &MetricFamily, window: Window) -> Message {
    let mut metric = Message::default();
    metric.text(1, family.otlp_name);
    metric.text(2, family.help);
    let mut data = Message::default();
    match &family.points {
        Points::Counters(points) => {
            for (labels, count) in points {
                let mut point = at(window);
                point.fixed64(6, *count);
                attributes(&mut point, 7, labels);
                data.message(1, &point);
            }
            data.number(2, CUMULATIVE);
            // `is_monotonic`
            data.number(3, 1);
            metric.text(3, "1");
            metric.message(7, &data);
        }
        Points::Durations(points) => {
            for (labels, took) in points {
                let mut point = at(window);
                durations(&mut point, took);
                attributes(&mut point, 9, labels);
                data.message(1, &point);
            }
            data.number(2, CUMULATIVE);
            metric.text(3, "s");
            metric.message(9, &data);
        }
    }
    metric
}

fn at(window: Window) -> Message {
    let mut point = Message::default();
    point.fixed64(2, window.start);
    point.fixed64(3, window.now.max(window.start));
    point
}

fn attributes(point: &mut Message, field: u64, labels: &MetricLabels) {
    for (name, value) in labels {
        point.message(field, &attribute(name, &Value::Text(super::super::cut(value).to_owned())));
    }
}

/// Encodes a histogram. The reading counts the values up to each bound, but the protocol wants the values between two
/// bounds and those above the last. The counts are read one after the other, so their sum serves as the total.
fn durations(point: &mut Message, took: &BucketReading) {
    let mut below = 0;
    let mut counts: Vec<u64> = Vec::with_capacity(took.within.len() + 1);
    for (_, within) in &took.within {
        counts.push(within.saturating_sub(below));
        below = *within;
    }
    counts.push(took.count.saturating_sub(below));
    point.fixed64(4, counts.iter().sum());
    point.fixed64(5, (took.total_us as f64 / MICROS).to_bits());
    let packed: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    point.bytes(6, &packed);
    let bounds: Vec<u8> = took.within.iter().flat_map(|(bound, _)| (*bound as f64 / MICROS).to_le_bytes()).collect();
    point.bytes(7, &bounds);
}
