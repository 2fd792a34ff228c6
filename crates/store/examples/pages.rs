//! Measures what recording calls with the text of real pages costs, by thread.
//!
//!     cargo run --release -p signalbox-store --example pages -- [calls] [bytes] [folder] [seal|plain]
//!
//! Each call carries another piece of the Markdown pages of the folder, in its arguments and in its result. The thread
//! `tape` makes and appends entries, `tape-index` reads them back; the others only wait or prepare bodies.
#![allow(clippy::print_stdout, reason = "it reports what it measured")]

use bytes::Bytes;
use signalbox_engine::fact::{MessageFact, Point};
use signalbox_engine::record::{TapeInfo, TapeKind, TapeStore};
use signalbox_engine::{Caller, ExchangeId, Fact, FactSink as _, SessionKey};
use signalbox_seal::SigningKey;
use signalbox_store::SqliteStore;
use signalbox_tape::recorder::OnFull;
use signalbox_tape::{Anchor, HeadInterval, Recorder, RecorderSettings, RedactionSettings, Redactor, SealSettings};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(600);
/// Distance between the pieces of two calls; a prime, so that pieces rarely begin at the same place.
const STRIDE: usize = 7_919;
/// CPU time of a thread is counted in hundredths of a second.
const MICROS_PER_TICK: f64 = 10_000.0;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let calls: u64 = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(2_000);
    let length: usize = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(64 << 10);
    let text = pages(&arguments.next().unwrap_or_else(|| "docs".into()))?;
    let sealed = arguments.next().is_none_or(|word| word != "plain");
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(folder.path().join("tapes.db"))?;
    let mut info = TapeInfo::new("t".to_owned(), TapeKind::Serve, "example".to_owned(), 1);
    let commit = vec![vec!["params".to_owned(), "arguments".to_owned()], vec!["result".to_owned()]];
    let rhythm = HeadInterval { entries: 1_000, time: LONG };
    let seal = match sealed {
        true => Some(SealSettings::begin(&mut info, SigningKey::generate()?, [7; 32], commit, rhythm)?),
        false => None,
    };
    let settings = RecorderSettings { seal, on_full: OnFull::Wait(LONG), ..RecorderSettings::default() };
    let redactor = Redactor::new(&RedactionSettings::default(), [0; 32])?;
    let recorder = Recorder::start(settings, redactor, store.begin(&info)?, Anchor::now())?;
    let (begun, before) = (Instant::now(), cpu_by_thread());
    for number in 1..=calls {
        if let Some((room, within)) = recorder.room(length) {
            room.wait(within)?;
        }
        recorder.facts(&call(number, &piece(&text, number, length)));
    }
    while recorder.stats().queue_depth > 0 {
        std::thread::park_timeout(Duration::from_millis(1));
    }
    let took = begun.elapsed();
    let after = cpu_by_thread();
    println!("{calls} calls of {length} bytes in {:.2} s: {:.0} a second", took.as_secs_f64(), {
        calls as f64 / took.as_secs_f64()
    });
    for (name, ticks) in after {
        let ticks = ticks - before.get(&name).copied().unwrap_or(0.0);
        println!("{:>16} {:>8.0} us of CPU a call", name, ticks * MICROS_PER_TICK / calls as f64);
    }
    recorder.stop(LONG);
    let size = fs::metadata(folder.path().join("tapes.db"))?.len();
    println!("{} bytes of file a call", size / calls.max(1));
    Ok(())
}

/// Reads the pages as one text that is valid in a JSON string wherever it is cut.
fn pages(folder: &str) -> Result<String, Failed> {
    let mut text = String::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            text.extend(fs::read_to_string(path)?.chars().map(|character| match character {
                '"' => '\'',
                '\\' => '/',
                ' '..='~' => character,
                _ => ' ',
            }));
        }
    }
    if text.is_empty() { Err(format!("{folder} has no page with text").into()) } else { Ok(text) }
}

fn piece(text: &str, number: u64, length: usize) -> String {
    let from = (number as usize).wrapping_mul(STRIDE) % text.len();
    text.get(from..).unwrap_or_default().chars().chain(text.chars().cycle()).take(length).collect()
}

fn call(number: u64, text: &str) -> Vec<Fact> {
    let caller = Caller::anonymous("http");
    let message = |point, text: String| {
        let fact = MessageFact::new(Instant::now(), SessionKey(1), caller.clone(), point, Bytes::from(text));
        Fact::Message(MessageFact { exchange: Some(ExchangeId(number)), ..fact })
    };
    let ask = |id: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
        )
    };
    let answer = |id: u64| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    let (client, backend) = (7, number + 1_000);
    vec![
        message(Point::ClientIn, ask(client)),
        message(Point::BackendOut, ask(backend)),
        message(Point::BackendIn, answer(backend)),
        message(Point::ClientOut, answer(client)),
    ]
}

/// Returns the CPU time of each thread of this process, in ticks. Threads of one name are added up.
fn cpu_by_thread() -> BTreeMap<String, f64> {
    // Threads that have ended count in the process only.
    let mut all = BTreeMap::from([("process".to_owned(), ticks("/proc/self/stat").map_or(0.0, |(_, ticks)| ticks))]);
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        if let Some((name, ticks)) = ticks(task.path().join("stat")) {
            *all.entry(name).or_default() += ticks;
        }
    }
    all
}

/// Reads the name of a process or thread, and its CPU time.
fn ticks(stat: impl AsRef<Path>) -> Option<(String, f64)> {
    let text = fs::read_to_string(stat).ok()?;
    let (name, fields) = text.split_once('(')?.1.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    Some((name.to_owned(), ticks.sum()))
}
