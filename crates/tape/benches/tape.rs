//! What recording and redaction cost.

#![allow(missing_docs, reason = "the macros of the harness make undocumented functions")]

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use signalbox_engine::fact::{MessageFact, Point};
use signalbox_engine::record::{Entry, StoreError, TapeInfo, TapeKind, TapeWriter};
use signalbox_engine::{Caller, ExchangeId, Fact, FactSink, SessionKey};
use signalbox_seal::SigningKey;
use signalbox_tape::recorder::OnFull;
use signalbox_tape::{Anchor, HeadInterval, Recorder, RecorderSettings, RedactionSettings, Redactor, SealSettings};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Keeps nothing.
struct Nowhere;

impl TapeWriter for Nowhere {
    fn append(&mut self, entries: &[Entry], _: bool) -> Result<(), StoreError> {
        black_box(entries);
        Ok(())
    }

    fn idle(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn end(&mut self, _: u64, _: Option<&[u8]>) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A call of about this many bytes, with text like that of a tool.
fn call(length: usize) -> Bytes {
    let text = "The quick brown fox jumps over the lazy dog, and nothing here is a secret. ".repeat(length / 75);
    let head = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{"limit":10,"where":{"kind":["a","b"]},"text":""#;
    Bytes::from(format!(r#"{head}{text}"}},"_meta":{{"progressToken":3}}}}}}"#))
}

fn redaction(criterion: &mut Criterion) {
    let Ok(redactor) = Redactor::new(&RedactionSettings::default(), [0; 32]) else { return };
    let mut group = criterion.benchmark_group("redact_without_hits");
    for length in [150, 64 << 10] {
        let bytes = call(length);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(format!("{} B", bytes.len()), |bencher| {
            bencher.iter(|| redactor.message(black_box(&bytes), Some("tools/call")));
        });
    }
    group.finish();
}

fn recording(criterion: &mut Criterion) {
    // As many facts as a busy gateway brings in a short time: the writer is in its pause, so only the calling thread
    // counts.
    const FACTS: u64 = 10_000;
    let bytes = call(150);
    let settings = RecorderSettings {
        gather: Duration::from_secs(3600),
        batch: 1 << 20,
        on_full: OnFull::Gap,
        ..RecorderSettings::default()
    };
    let caller = Caller::anonymous("http");
    let message = || MessageFact::new(Instant::now(), SessionKey(1), caller.clone(), Point::ClientIn, bytes.clone());
    let fact = |id: u64| Fact::Message(MessageFact { exchange: Some(ExchangeId(id)), ..message() });
    let facts: Vec<Fact> = (0..FACTS).map(fact).collect();
    let mut group = criterion.benchmark_group("recorder");
    group.throughput(Throughput::Elements(FACTS));
    group.bench_function("10,000 facts on the calling thread", |bencher| {
        let start = || Recorder::start(settings.clone(), Redactor::none(), Box::new(Nowhere), Anchor::now());
        bencher.iter_batched_ref(start, |recorder| record(recorder, &facts), BatchSize::PerIteration);
    });
    group.bench_function("10,000 facts made entries, secrets taken out", |bencher| {
        let Ok(redactor) = Redactor::new(&RedactionSettings::default(), [0; 32]) else { return };
        let settings = RecorderSettings::default();
        let start = || Recorder::start(settings.clone(), redactor.clone(), Box::new(Nowhere), Anchor::now());
        let through = |recorder: &mut std::io::Result<Recorder>| {
            record(recorder, &facts);
            recorder.iter().for_each(|recorder| recorder.stop(Duration::from_secs(60)));
        };
        bencher.iter_batched_ref(start, through, BatchSize::PerIteration);
    });
    group.bench_function("10,000 facts made entries, secrets taken out, sealed", |bencher| {
        let Ok(redactor) = Redactor::new(&RedactionSettings::default(), [0; 32]) else { return };
        let start = || {
            let settings = RecorderSettings { seal: seal(), ..RecorderSettings::default() };
            Recorder::start(settings, redactor.clone(), Box::new(Nowhere), Anchor::now())
        };
        let through = |recorder: &mut std::io::Result<Recorder>| {
            record(recorder, &facts);
            recorder.iter().for_each(|recorder| recorder.stop(Duration::from_secs(60)));
        };
        bencher.iter_batched_ref(start, through, BatchSize::PerIteration);
    });
    group.finish();
}

/// Seals with the members that are committed to by default.
fn seal() -> Option<SealSettings> {
    let mut info = TapeInfo::new("t".to_owned(), TapeKind::Serve, "bench".to_owned(), 1);
    let commit = vec![vec!["params".to_owned(), "arguments".to_owned()], vec!["result".to_owned()]];
    let rhythm = HeadInterval { entries: 1_000, time: Duration::from_secs(3600) };
    SealSettings::begin(&mut info, SigningKey::generate().ok()?, [7; 32], commit, rhythm).ok()
}

fn record(recorder: &std::io::Result<Recorder>, facts: &[Fact]) {
    if let Ok(recorder) = recorder {
        facts.iter().for_each(|fact| recorder.fact(fact));
    }
}

criterion_group!(benches, redaction, recording);
criterion_main!(benches);
