//! P-28: what it costs to carry, prepare, sign and check messages.

#![expect(clippy::unwrap_used, reason = "a benchmark may stop wherever it wants")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use signalbox_seal::proto::mcp_request::Params;
use signalbox_seal::{
    Domain, McpRequest, McpResponse, MessageLimits, Profile, SigningKey, Timestamp, canonical,
    prepare_request_for_signing, prepare_response_for_signing, serialize_response,
};

const ENTRY: &[u8] = br#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search","arguments":{"query":"canonical form","limit":10,"fields":["title","body"],"score":0.75},"_meta":{"progressToken":3}}}"#;

fn request() -> McpRequest {
    McpRequest {
        profile: Profile::Two.name().to_owned(),
        timestamp: Some(Timestamp { seconds: 1_790_000_000, nanos: 0 }),
        nonce: Bytes::from_static(b"0123456789abcdef"),
        method: "tools/call".to_owned(),
        params: Some(Params::ParamsJson(Bytes::from_static(
            br#"{"name":"search","arguments":{"query":"canonical form","limit":10,"score":0.75}}"#,
        ))),
        ..Default::default()
    }
}

fn response(payload: usize) -> McpResponse {
    McpResponse {
        timestamp: Some(Timestamp { seconds: 1_790_000_000, nanos: 0 }),
        response_payload: Bytes::from(vec![7; payload]),
        ..Default::default()
    }
}

fn canonical_form(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("canonical");
    group.throughput(Throughput::Bytes(ENTRY.len() as u64));
    group.bench_function("json of a call", |bench| bench.iter(|| canonical::json(black_box(ENTRY)).unwrap()));
    group.finish();
}

fn messages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("messages");
    group.bench_function("prepare a request", |bench| {
        let request = request();
        bench.iter(|| prepare_request_for_signing(black_box(&request)).unwrap());
    });
    let large = response(4_000_000);
    let bytes = Bytes::from(serialize_response(&large).unwrap());
    group.throughput(Throughput::Bytes(4_000_000));
    group.bench_function("read a response of 4 MB", |bench| {
        bench.iter(|| MessageLimits::default().deserialize_response(black_box(bytes.clone())).unwrap());
    });
    group.bench_function("prepare a response of 4 MB", |bench| {
        bench.iter(|| prepare_response_for_signing(black_box(&large)).unwrap());
    });
    group.finish();
}

fn signatures(criterion: &mut Criterion) {
    let key = SigningKey::generate().unwrap();
    let signature = key.sign(Profile::Two, Domain::Request, ENTRY).unwrap();
    let mut group = criterion.benchmark_group("signatures");
    group.bench_function("sign", |bench| {
        bench.iter(|| key.sign(Profile::Two, Domain::Request, black_box(ENTRY)).unwrap());
    });
    group.bench_function("verify", |bench| {
        let public = key.verifying_key();
        bench.iter(|| public.verify(Profile::Two, Domain::Request, black_box(ENTRY), &signature).unwrap());
    });
    group.finish();
}

criterion_group!(benches, canonical_form, messages, signatures);
criterion_main!(benches);
