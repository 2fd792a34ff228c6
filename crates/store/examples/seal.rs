//! Measures what sealing adds to recording, and how fast a sealed tape is verified.
//!
//!     cargo run --release -p signalbox-store --example seal -- [calls]
//!
//! A call is five entries: four copies of its messages and its end. Fails if sealing adds more than 15 % of CPU time to
//! recording, if fewer than 100,000 entries a second are verified, or if a flipped bit in the file goes unnoticed.
#![allow(clippy::print_stdout, reason = "it reports what it measured")]

use bytes::Bytes;
use signalbox_engine::fact::{FinishedFact, MessageFact, Outcome, Point};
use signalbox_engine::record::{TapeInfo, TapeKind, TapeStore};
use signalbox_engine::{Caller, ExchangeId, Fact, FactSink as _, SessionKey};
use signalbox_seal::SigningKey;
use signalbox_store::SqliteStore;
use signalbox_tape::recorder::OnFull;
use signalbox_tape::seal::SealVerdict;
use signalbox_tape::{
    Anchor, HeadInterval, Recorder, RecorderSettings, RedactionSettings, Redactor, SealSettings, TapeFileWriter,
    TapeSource,
};
use signalbox_wire::Era;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(600);
/// Maximum CPU time that sealing may add, as a fraction of that of recording.
const MOST_ADDED: f64 = 0.15;
/// Minimum number of entries verified per second.
const LEAST_VERIFIED: f64 = 100_000.0;
/// Number of runs of each kind. The fastest counts.
const RUNS: usize = 3;

/// Number of bits to flip in the file, one at a time.
const FLIPS: usize = 100;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failed> {
    let calls: u64 = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let folder = tempfile::tempdir()?;
    let (mut plain, mut sealed) = (f64::MAX, f64::MAX);
    for run in 0..RUNS {
        plain = plain.min(record(&folder.path().join(format!("plain-{run}.db")), calls, false)?);
        sealed = sealed.min(record(&folder.path().join(format!("sealed-{run}.db")), calls, true)?);
    }
    let added = sealed / plain - 1.0;
    println!("seal: recording {calls} calls takes {plain:.2} s of CPU, sealed {sealed:.2} s: {:+.1} %", added * 100.0);
    let store: Arc<dyn TapeStore> = Arc::new(SqliteStore::open(folder.path().join("sealed-0.db"))?);
    let info = store.tape("t")?;
    let file = folder.path().join("t.tape");
    export(&mut TapeSource::Stored(Arc::clone(&store), info.clone()), &file)?;
    let in_store = verify("SQLite", TapeSource::Stored(store, info))?;
    let in_file = verify("a file", TapeSource::open(&file)?)?;
    let unseen = flips(&file)?;
    let fine = unseen == 0 && added <= MOST_ADDED && in_store >= LEAST_VERIFIED && in_file >= LEAST_VERIFIED;
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Records `calls` calls. Returns the CPU time of the process, in seconds.
fn record(path: &Path, calls: u64, seal: bool) -> Result<f64, Failed> {
    let mut info = TapeInfo::new("t".to_owned(), TapeKind::Serve, "example".to_owned(), 1);
    let commit = vec![vec!["params".to_owned(), "arguments".to_owned()], vec!["result".to_owned()]];
    let settings = match seal {
        true => Some(SealSettings::begin(
            &mut info,
            SigningKey::generate()?,
            [7; 32],
            commit,
            HeadInterval { entries: 1_000, time: LONG },
        )?),
        false => None,
    };
    let settings = RecorderSettings {
        seal: settings,
        on_full: OnFull::Wait(LONG),
        batch: 4_000,
        gather: Duration::from_millis(100),
        ..RecorderSettings::default()
    };
    let store = SqliteStore::open(path)?;
    let redactor = Redactor::new(&RedactionSettings::default(), [0; 32])?;
    let before = cpu_time();
    let recorder = Recorder::start(settings, redactor, store.begin(&info)?, Anchor::now())?;
    for number in 1..=calls {
        recorder.wait_for_room();
        recorder.facts(&call(number));
    }
    recorder.stop(LONG);
    Ok(cpu_time() - before)
}

fn call(number: u64) -> Vec<Fact> {
    let caller = Caller::anonymous("http");
    let message = |point, text: String| {
        let fact = MessageFact::new(Instant::now(), SessionKey(1), caller.clone(), point, Bytes::from(text));
        Fact::Message(MessageFact { exchange: Some(ExchangeId(number)), ..fact })
    };
    let ask = |id: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"search","arguments":{{"query":"invoice {number}","limit":10,"exact":false}},"_meta":{{"progressToken":{number}}}}}}}"#
        )
    };
    let answer = |id: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"Found 3 invoices for customer {number}: the first is pending, the others are paid."}}],"isError":false}}}}"#
        )
    };
    let finished = FinishedFact {
        at: Instant::now(),
        session: SessionKey(1),
        caller: caller.clone(),
        exchange: ExchangeId(number),
        era: Era::Legacy,
        method: "tools/call".into(),
        subject: Some("search".into()),
        backend: Some(Arc::from("invoices")),
        client: None,
        operation: ExchangeId(number),
        round: 1,
        outcome: Outcome::Ok,
        took: Duration::from_millis(3),
        bytes_in: 150,
        bytes_out: 180,
        trace: None,
        unreached: None,
    };
    vec![
        message(Point::ClientIn, ask(7)),
        message(Point::BackendOut, ask(number + 1_000)),
        message(Point::BackendIn, answer(number + 1_000)),
        message(Point::ClientOut, answer(7)),
        Fact::Finished(Arc::new(finished)),
    ]
}

fn export(source: &mut TapeSource, path: &Path) -> Result<(), Failed> {
    let info = source.info().clone();
    let mut writer = TapeFileWriter::new(std::io::BufWriter::new(File::create(path)?), &info, &[])?;
    for entry in source.entries(None) {
        writer.push(&entry?)?;
    }
    writer.finish(info.ended)?;
    Ok(())
}

/// Verifies a tape. Returns the number of entries per second.
fn verify(place: &str, mut source: TapeSource) -> Result<f64, Failed> {
    let started = Instant::now();
    let report = source.verify(|| ());
    if report.verdict != SealVerdict::Valid {
        return Err(format!("in {place}: {report:?}").into());
    }
    let rate = report.entries as f64 / started.elapsed().as_secs_f64();
    println!("seal: {} entries in {place} verified, {rate:.0} a second", report.entries);
    Ok(rate)
}

/// Flips bits sampled over the whole file, one at a time. Returns the number of flips that went unnoticed.
fn flips(path: &Path) -> Result<usize, Failed> {
    let mut bytes = std::fs::read(path)?;
    let changed = path.with_extension("changed");
    let mut unseen = 0;
    for flip in 0..FLIPS {
        // Use a different offset in each part, so that the flips hit every kind of byte.
        let place = (flip * bytes.len() / FLIPS + flip * 7919 % (bytes.len() / FLIPS)).min(bytes.len() - 1);
        bytes[place] ^= 1 << (flip % 8);
        std::fs::write(&changed, &bytes)?;
        bytes[place] ^= 1 << (flip % 8);
        let found =
            TapeSource::open(&changed).map_or(true, |mut source| source.verify(|| ()).verdict == SealVerdict::Broken);
        if !found {
            println!("seal: the flip of a bit at byte {place} of {} was not found", bytes.len());
            unseen += 1;
        }
    }
    println!("seal: {} of {FLIPS} flipped bits in a file of {} bytes found", FLIPS - unseen, bytes.len());
    Ok(unseen)
}

/// Returns the CPU time of all threads of this process, including those that have ended, in seconds.
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    // User and system time, in hundredths of a second.
    (ticks(11) + ticks(12)) / 100.0
}
