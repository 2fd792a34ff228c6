//! Fills a store with calls and measures common queries on it.
//!
//!     cargo run --release -p signalbox-store --example fill -- [calls] [file or postgres URL]
//!
//! A call is five entries: two whole bodies of about 300 bytes, two that refer to them, and its end.
#![allow(clippy::print_stdout, reason = "it reports what it measured")]

use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Body, Content, Entry, FinishedEntry, MessageEntry, MessageKind, Query, Retention, StoreError, TapeInfo, TapeKind,
    TapeStore,
};
use signalbox_store::{PostgresStore, SqliteStore};
use std::time::{Duration, Instant};

const BATCH: usize = 500;
const TOOLS: [&str; 5] = ["files__read", "weather__now", "git__log", "web__search", "db__query"];
const WORDS: [&str; 24] = [
    "invoice", "customer", "error", "path", "window", "river", "report", "signal", "branch", "commit", "summary",
    "total", "pending", "north", "cloud", "rain", "select", "index", "table", "column", "merge", "stack", "trace",
    "budget",
];

fn main() -> Result<(), StoreError> {
    let mut arguments = std::env::args().skip(1);
    let calls: u64 = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(250_000);
    let place = arguments.next().unwrap_or_else(|| "fill.db".into());
    let store: Box<dyn TapeStore> = if place.starts_with("postgres") {
        Box::new(PostgresStore::open(&place)?)
    } else {
        Box::new(SqliteStore::open(&place)?)
    };
    fill(&*store, calls)?;
    ask(&*store, calls)?;
    let started = Instant::now();
    let stats = store.stats(None)?;
    println!("stats                        {:>8.1} ms", started.elapsed().as_secs_f64() * 1e3);
    println!("bytes passed {} kept {}", stats.bytes.0, stats.bytes.1);
    let size = std::fs::metadata(&place).map_or(0, |file| file.len());
    println!("file {} MB, {} bytes a call", size >> 20, size / calls.max(1));
    let half = Retention { max_bytes: Some(size / 2), ..Retention::default() };
    let started = Instant::now();
    let pruned = store.prune(&half, u64::MAX >> 1)?;
    println!(
        "prune to half                {:>8.1} ms, {} entries",
        started.elapsed().as_secs_f64() * 1e3,
        pruned.entries
    );
    println!("file {} MB", std::fs::metadata(&place).map_or(0, |file| file.len()) >> 20);
    Ok(())
}

fn fill(store: &dyn TapeStore, calls: u64) -> Result<(), StoreError> {
    let info = TapeInfo::new(format!("fill-{}", std::process::id()), TapeKind::Serve, "example".into(), 1);
    let mut writer = store.begin(&info)?;
    let (mut appending, mut indexing) = (Duration::ZERO, Duration::ZERO);
    let (mut append_cpu, mut index_cpu) = (0, 0);
    let mut next = 0;
    while next < calls {
        let entries: Vec<Entry> = (next..calls.min(next + BATCH as u64 / 5)).flat_map(call).collect();
        next += entries.len() as u64 / 5;
        let (started, cpu) = (Instant::now(), cpu_time());
        writer.append(&entries, false)?;
        appending += started.elapsed();
        append_cpu += cpu_time() - cpu;
        let (started, cpu) = (Instant::now(), cpu_time());
        writer.idle()?;
        indexing += started.elapsed();
        index_cpu += cpu_time() - cpu;
    }
    let (started, cpu) = (Instant::now(), cpu_time());
    writer.end(1, None)?;
    indexing += started.elapsed();
    index_cpu += cpu_time() - cpu;
    let entries = calls as f64 * 5.0;
    println!("{} messages, {entries} entries", calls * 4);
    println!("append                       {:>8.0} entries/s", entries / appending.as_secs_f64());
    println!("append and index             {:>8.0} entries/s", entries / (appending + indexing).as_secs_f64());
    println!("append, CPU                  {:>8.1} us a call", append_cpu as f64 / 1e3 / calls as f64);
    println!("index, CPU                   {:>8.1} us a call", index_cpu as f64 / 1e3 / calls as f64);
    Ok(())
}

/// Returns the CPU time of this thread, in nanoseconds.
fn cpu_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)
}

fn ask(store: &dyn TapeStore, calls: u64) -> Result<(), StoreError> {
    let text = |text: &str| Query { text: Some(text.into()), ..Query::default() };
    let questions = [
        ("a rare word", text(&format!("item{}", calls / 2))),
        ("a common word", text("invoice")),
        ("two common words", text("invoice river")),
        ("two that never meet", text("item17 item90000")),
        ("a phrase", text("\"invoice river\"")),
        ("no such word", text("nowhere")),
        ("word and tool", Query { subject: Some("git__log".into()), ..text("invoice") }),
        ("word and rare tool", Query { subject: Some("rare".into()), ..text("invoice") }),
        ("word and principal", Query { principal: Some("ann".into()), ..text("merge stack") }),
        ("word and method", Query { methods: vec!["tools/*".into()], ..text("merge") }),
        ("word and backend", Query { backend: Some("git".into()), ..text("merge") }),
        ("word and time", Query { since: Some(calls * 2_000), until: Some(calls * 2_100), ..text("merge") }),
        ("word and outcome", Query { outcome: Some("timeout".into()), ..text("merge") }),
        ("word, good outcome, rare", Query { outcome: Some("success".into()), ..text("item777 merge") }),
        ("error code", Query { error_code: Some(-32602), ..Query::default() }),
        ("slow", Query { slower_than: Some(400_000_000), ..Query::default() }),
        ("less slow", Query { slower_than: Some(90_000_000), ..Query::default() }),
        ("tool", Query { subject: Some("rare".into()), ..Query::default() }),
        ("session", Query { session: Some(900), ..Query::default() }),
        ("exchange", Query { exchange: Some(calls / 3), ..Query::default() }),
        ("time", Query { since: Some(calls * 2_500), ..Query::default() }),
        ("everything", Query::default()),
    ];
    for (name, query) in questions {
        for newest_first in [false, true] {
            let query = Query { newest_first, ..query.clone() };
            let mut times = Vec::new();
            let mut hits = 0;
            for _ in 0..5 {
                let started = Instant::now();
                hits = store.find(&query)?.hits.len();
                times.push(started.elapsed());
            }
            let first = times[0].as_secs_f64() * 1e3;
            times.sort();
            let way = if newest_first { "newest" } else { "oldest" };
            println!("{name:<24} {way} {:>8.2} ms (first {first:.2}), {hits} hits", times[2].as_secs_f64() * 1e3);
        }
    }
    Ok(())
}

fn call(n: u64) -> Vec<Entry> {
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut words = |count: usize| (0..count).map(|_| WORDS[random(24) as usize]).collect::<Vec<_>>().join(" ");
    let tool = if n % 20_000 == 7 { "rare" } else { TOOLS[(n % 5) as usize] };
    let question = format!(
        r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"_meta":{{"progressToken":{n}}},"name":"{tool}","arguments":{{"path":"/srv/data/item{n}.json","query":"{}","limit":{}}}}}}}"#,
        words(14),
        n % 97,
    );
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{n},"result":{{"content":[{{"type":"text","text":"Found item{n} with {} rows: {}"}}],"isError":false}}}}"#,
        n % 89,
        words(24),
    );
    let failed = n % 5_000 == 11;
    let kind = if failed { MessageKind::Error } else { MessageKind::Result };
    let (asked, answered) = (question.len() as u64, answer.len() as u64);
    let like = |seq: u64, length: u64| Body::Like { seq, prefix: length, suffix: 0, middle: Bytes::new() };
    let entry = |place: u64, content| Entry {
        session: Some(n / 100),
        exchange: Some(n + 1),
        ..Entry::new(n * 5 + 1 + place, n * 3_000 + place, if n % 300 == 5 { "ann" } else { "local" }.into(), content)
    };
    let message = |point, kind, length, body| {
        Content::Message(MessageEntry {
            method: Some("tools/call".into()),
            subject: Some(tool.into()),
            backend: tool.split_once("__").map(|(backend, _)| backend.into()),
            error_code: (kind == MessageKind::Error).then_some(-32602),
            ..MessageEntry::new(point, kind, length, body)
        })
    };
    vec![
        entry(0, message(Point::ClientIn, MessageKind::Request, asked, Body::Whole(question.into()))),
        entry(1, message(Point::BackendOut, MessageKind::Request, asked, like(n * 5 + 1, asked))),
        entry(2, message(Point::BackendIn, kind, answered, Body::Whole(answer.into()))),
        entry(3, message(Point::ClientOut, kind, answered, like(n * 5 + 3, answered))),
        entry(
            4,
            Content::Finished(FinishedEntry {
                method: "tools/call".into(),
                subject: Some(tool.into()),
                backend: tool.split_once("__").map(|(backend, _)| backend.into()),
                outcome: if failed { "timeout" } else { "success" }.into(),
                took: 1_000_000 + (n % 1_000) * 100_000 + if n % 9_999 == 3 { 500_000_000 } else { 0 },
                bytes_in: asked,
                bytes_out: answered,
                ..FinishedEntry::default()
            }),
        ),
    ]
}
