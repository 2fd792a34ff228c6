//! The hot paths, at the size of an ordinary call and of one large string, with a `serde_json` envelope beside ours.
#![allow(clippy::unwrap_used, reason = "the inputs are written here")]
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde::Deserialize;
use serde_json::value::RawValue;
use signalbox_wire::{Edits, Envelope, Limits, LineDecoder, Span, SseDecoder, json, scan, sse};

/// The envelope one would write with serde: borrowed and unparsed members.
#[derive(Deserialize)]
struct RawEnvelope<'a> {
    #[serde(borrow)]
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn call(argument: &str) -> Bytes {
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{{"name":"get_weather","arguments":{{"location":"{argument}","units":"metric","days":3,"detail":{{"hourly":true,"fields":["temperature","wind","rain"]}}}},"_meta":{{"progressToken":"abc-123"}}}}}}"#
    ))
}

/// An ordinary call of 300 bytes, and one whose argument fills 64 KiB.
fn sizes() -> [(&'static str, Bytes); 2] {
    let rest = call("").len();
    let small = call(&"x".repeat(300 - rest));
    [("300B", small), ("64KiB", call(&"lorem ipsum ".repeat((65_536 - rest) / 12)))]
}

fn envelope(criterion: &mut Criterion) {
    for (size, bytes) in sizes() {
        let mut group = criterion.benchmark_group(format!("envelope/{size}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("ours", |bencher| bencher.iter(|| Envelope::parse(black_box(bytes.clone()))));
        group.bench_function("serde_raw_value", |bencher| {
            bencher.iter(|| {
                let parsed: RawEnvelope<'_> = serde_json::from_slice(black_box(&bytes)).unwrap();
                black_box((parsed.jsonrpc, parsed.id, parsed.method, parsed.params, parsed.result, parsed.error));
            });
        });
    }
}

fn splice(criterion: &mut Criterion) {
    for (size, bytes) in sizes() {
        let envelope = Envelope::parse(bytes.clone()).unwrap();
        let mut group = criterion.benchmark_group(format!("splice/{size}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("with_id", |bencher| bencher.iter(|| envelope.with_id(black_box(b"123456"))));
        group.bench_function("edits_id_and_token", |bencher| {
            bencher.iter(|| {
                let params = envelope.params_span().unwrap();
                let token = json::path(params.of(&bytes), &["_meta", "progressToken"]).unwrap().shift(params.start);
                let mut edits = Edits::new();
                edits.replace(envelope.id_span().unwrap(), b"123456");
                edits.replace(token, b"99");
                edits.apply(black_box(&bytes))
            });
        });
        group.bench_function("edits_set_member", |bencher| {
            bencher.iter(|| {
                let mut edits = Edits::new();
                edits.set_member(&bytes, Span::new(0, bytes.len()), "id", b"123456");
                edits.apply(black_box(&bytes))
            });
        });
    }
}

fn strict_scan(criterion: &mut Criterion) {
    let limits = Limits::default();
    for (size, bytes) in sizes() {
        let mut group = criterion.benchmark_group(format!("scan/{size}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("ours", |bencher| bencher.iter(|| scan(black_box(&bytes), &limits)));
        group.bench_function("serde_ignored_any", |bencher| {
            bencher.iter(|| serde_json::from_slice::<serde::de::IgnoredAny>(black_box(&bytes)).unwrap());
        });
    }
}

fn decoders(criterion: &mut Criterion) {
    let [(_, small), _] = sizes();
    let lines: Vec<u8> = std::iter::repeat_n([&small[..], b"\n"].concat(), 100).flatten().collect();
    let mut events = bytes::BytesMut::new();
    for _ in 0..100 {
        sse::encode_event(&mut events, Some("17"), Some("message"), None, &small);
    }
    let mut group = criterion.benchmark_group("decode/100x300B");
    group.throughput(Throughput::Bytes(lines.len() as u64));
    group.bench_function("line", |bencher| {
        bencher.iter(|| {
            let mut decoder = LineDecoder::new(1 << 20);
            decoder.push(black_box(&lines));
            std::iter::from_fn(|| decoder.next_line()).filter(Result::is_ok).count()
        });
    });
    group.throughput(Throughput::Bytes(events.len() as u64));
    group.bench_function("sse", |bencher| {
        bencher.iter(|| {
            let mut decoder = SseDecoder::new(1 << 20);
            decoder.push(black_box(&events));
            std::iter::from_fn(|| decoder.next_event()).filter(Result::is_ok).count()
        });
    });
}

fn quick() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots()
}

criterion_group! { name = wire; config = quick(); targets = envelope, splice, strict_scan, decoders }
criterion_main!(wire);
