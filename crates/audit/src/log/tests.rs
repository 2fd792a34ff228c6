mod confirmed;
mod moves;

use super::*;
use crate::chain::ChainPlace;
use crate::event::{AuditEvent, EventType, RiskLevel};
use crate::event_builder::EventSelection;
use crate::files;
use crate::record::AuditRecord;
use crate::sinks::{FileSink, JournalRecord, SinkError};
use crate::verify::{AuditFaultKind, AuditVerifier};
use signalbox_engine::audit::IntentKind;
use signalbox_engine::fact::Decision;
use signalbox_engine::{Caller, ExchangeId, SessionKey};
use signalbox_seal::{KeyRole, KeySet, SigningKey, TrustedKey};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A sink that takes records only while it works.
#[derive(Clone, Debug, Default)]
struct Shaky {
    works: Arc<AtomicBool>,
    kept: Arc<Mutex<Vec<String>>>,
}

impl Sink for Shaky {
    fn name(&self) -> &'static str {
        "remote"
    }

    fn write(&mut self, lines: &[JournalRecord]) -> Result<(), SinkError> {
        if !self.works.load(Ordering::SeqCst) {
            return Err(SinkError::Refused("it is down".to_owned()));
        }
        self.kept.lock().unwrap().extend(lines.iter().map(|line| line.text.clone()));
        Ok(())
    }
}

fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

fn pruner() -> crate::Pruner {
    crate::Pruner::new(key(), KeySet::new(), std::path::Path::new("no journals"))
}

fn settings(folder: &Path, required: &[&str], spool_max: u64) -> AuditSettings {
    AuditSettings {
        folder: folder.join("journal"),
        logged: EventSelection {
            tool_invocations: true,
            security_events: true,
            performance_events: true,
            protocol_errors: true,
        },
        redactor: signalbox_tape::redact::Redactor::none(),
        payloads: false,
        slow: Duration::from_secs(10),
        fsync: false,
        required: required.iter().map(|one| (*one).to_owned()).collect(),
        spool_max,
        key: key(),
        head_every: 10,
        head_interval: Duration::from_millis(50),
    }
}

fn start(settings: AuditSettings, sinks: Vec<Box<dyn Sink>>) -> AuditLog {
    let log = AuditLog::open(settings, sinks, "chain").unwrap();
    log.begin(AuditRun::new(1, 1)).unwrap();
    log
}

fn intend(log: &AuditLog, exchange: u64) -> bool {
    let intent = Intent {
        exchange: ExchangeId(exchange),
        session: SessionKey(1),
        caller: Caller::anonymous("http"),
        method: "tools/call".into(),
        subject: Some("greet".into()),
        backend: "one".into(),
        kind: IntentKind::Call,
        decisions: Vec::new(),
        message: Bytes::from_static(b"{}"),
        definition: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(log.intend(vec![intent]))
}

fn file(folder: &Path) -> Box<dyn Sink> {
    Box::new(FileSink::new(folder.join("audit.log"), 90, pruner(), false))
}

/// Every line, after a look at whether the chain is whole.
fn whole(lines: &[String]) -> Vec<AuditRecord> {
    let mut keys = KeySet::new();
    keys.add(TrustedKey::new(key().verifying_key().clone(), "gateway", &[KeyRole::Recorder])).unwrap();
    let mut verifier = AuditVerifier::new(&keys);
    lines.iter().for_each(|line| verifier.line("line", line));
    let report = verifier.finish();
    assert_eq!(report.faults, []);
    lines.iter().map(|line| AuditRecord::read(line).unwrap()).collect()
}

fn lines_of(path: &Path) -> Vec<String> {
    let mut all = Vec::new();
    files::lines(path, &mut |_, line| {
        all.push(line.to_owned());
        true
    })
    .unwrap();
    all
}

/// A sink that fails loses nothing, slows no call, and has in the end what the others have, over a restart too.
#[test]
fn a_sink_that_fails_gets_everything_later_and_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let shaky = Shaky::default();
    let log = start(settings(folder.path(), &["file"], 1 << 20), vec![file(folder.path()), Box::new(shaky.clone())]);
    for exchange in 1..=20 {
        assert!(intend(&log, exchange));
    }
    log.stop(Duration::from_millis(200));
    let stats = log.stats();
    assert!(stats.sinks[1].failing.is_some() && stats.sinks[1].acked == 0, "{stats:?}");
    drop(log);
    shaky.works.store(true, Ordering::SeqCst);
    let log = start(settings(folder.path(), &["file"], 1 << 20), vec![file(folder.path()), Box::new(shaky.clone())]);
    for exchange in 21..=30 {
        assert!(intend(&log, exchange));
    }
    log.stop(Duration::from_secs(30));
    let in_file = lines_of(&folder.path().join("audit.log"));
    let records = whole(&in_file);
    assert_eq!(records.iter().filter(|record| record.detail("phase") == Some("intent")).count(), 30);
    assert_eq!(*shaky.kept.lock().unwrap(), in_file);
}

/// A required sink that cannot write stops calls, and only while it cannot.
#[test]
fn a_required_sink_that_cannot_write_stops_calls_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let shaky = Shaky::default();
    let log = start(settings(folder.path(), &["remote"], 1 << 20), vec![file(folder.path()), Box::new(shaky.clone())]);
    assert!(!intend(&log, 1));
    assert!(!intend(&log, 2));
    shaky.works.store(true, Ordering::SeqCst);
    while log.stats().sinks[1].failing.is_some() {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    assert!(intend(&log, 3));
    log.stop(Duration::from_secs(30));
    // What was refused was intended all the same, and says so.
    assert_eq!(
        whole(&lines_of(&folder.path().join("audit.log")))
            .iter()
            .filter(|record| record.detail("phase").is_some())
            .count(),
        3
    );
}

/// A sink that is too far behind gets a signed gap with a count, and the others everything.
#[test]
fn a_sink_that_is_too_far_behind_gets_a_signed_gap() {
    let folder = tempfile::tempdir().unwrap();
    let shaky = Shaky::default();
    let log = start(settings(folder.path(), &["file"], 65_536), vec![file(folder.path()), Box::new(shaky.clone())]);
    for exchange in 1..=400 {
        assert!(intend(&log, exchange));
    }
    let kept_on_disk: u64 =
        std::fs::read_dir(log.folder()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(kept_on_disk < 2 * 65_536, "{kept_on_disk}");
    shaky.works.store(true, Ordering::SeqCst);
    log.stop(Duration::from_secs(30));
    let stats = log.stats();
    let kept = shaky.kept.lock().unwrap().clone();
    let gap = AuditRecord::read(&kept[0]).unwrap();
    assert_eq!(gap.event_type, None);
    let missing = gap.value["to"].as_u64().unwrap() - gap.value["from"].as_u64().unwrap() + 1;
    assert_eq!((gap.value["from"].as_u64(), missing), (Some(1), stats.sinks[1].skipped));
    whole(&kept);
    let in_file = lines_of(&folder.path().join("audit.log"));
    whole(&in_file);
    assert_eq!(kept[1..], in_file[missing as usize..]);
    assert_eq!(stats.sinks[0].skipped, 0);
}

/// Records behind those that a sink has acknowledged were never written to it, if the journal has dropped what
/// followed.
#[test]
fn records_that_a_lagging_sink_never_had_are_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, away) = (folder.path().join("logs"), folder.path().join("away"));
    let shaky = Shaky::default();
    shaky.works.store(true, Ordering::SeqCst);
    let log = start(settings(folder.path(), &[], 65_536), vec![file(&logs), Box::new(shaky)]);
    assert!(intend(&log, 1));
    while log.stats().sinks[0].acked == 0 {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    std::fs::rename(&logs, &away).unwrap();
    std::fs::write(&logs, "").unwrap();
    for exchange in 2..=400 {
        assert!(intend(&log, exchange));
    }
    log.stop(Duration::from_millis(50));
    drop(log);
    std::fs::remove_file(&logs).unwrap();
    std::fs::rename(&away, &logs).unwrap();
    let (journals, sink) = (folder.path().join("journal"), file(&logs));
    let place = sink.place().unwrap();
    let mut lines = lines_of(&logs.join("audit.log"));
    let mut keys = KeySet::new();
    keys.add(TrustedKey::new(key().verifying_key().clone(), "gateway", &[KeyRole::Recorder])).unwrap();
    let has_invented = |lines: &[String]| {
        let mut verifier = AuditVerifier::new(&keys);
        let taken = crate::ends::TakenRecords::read(&journals, place).unwrap();
        lines.iter().for_each(|line| verifier.line("line", line));
        crate::ends::compare(&mut verifier, &journals, place, 0, &taken).unwrap();
        verifier.finish().faults.iter().any(|fault| matches!(fault.kind, AuditFaultKind::Unsigned(..)))
    };
    assert!(!has_invented(&lines));
    let last = AuditRecord::read(lines.last().unwrap()).unwrap();
    let mut end = ChainPlace { chain: last.chain.clone(), seq: last.seq, hash: last.hashes().unwrap().1 };
    let mut invented = String::new();
    end.append(&AuditEvent::own(1, EventType::RecordsLost, "{}", RiskLevel::Low), &mut invented);
    lines.push(invented.trim_end().to_owned());
    assert!(has_invented(&lines));
}

/// What could not be written down is counted and told.
#[test]
fn what_had_no_room_is_told_by_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::open(settings(folder.path(), &[], 1 << 20), vec![file(folder.path())], "chain").unwrap();
    let (at, caller) = (Instant::now(), Caller::anonymous("http"));
    let decision =
        Decision { at, session: SessionKey(1), caller, exchange: None, phase: "request", rulings: Vec::new() };
    let facts = vec![Fact::Decision(decision.into()); crate::intake::MAX_WAITING + 5];
    log.state.intake.push_facts(&facts);
    log.begin(AuditRun::new(1, 1)).unwrap();
    while log.stats().lost == 0 {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    assert!(intend(&log, 1));
    log.stop(Duration::from_secs(30));
    let records = whole(&lines_of(&folder.path().join("audit.log")));
    let lost = records.iter().find(|record| record.event_type == Some(crate::EventType::RecordsLost)).unwrap();
    assert_eq!((lost.value["details"]["count"].as_u64(), log.stats().lost), (Some(5), 5));
}

/// Records that could not be written are counted beside the journal at once, and stay known when the process ends
/// without having told of them. Records that the sink lacks are counted too.
#[test]
fn a_loss_is_known_before_and_after_a_record_tells_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (before, later) = (folder.path().join("journal/chain"), folder.path().join("later"));
    let (logs, away) = (folder.path().join("logs"), folder.path().join("away"));
    let log = start(settings(folder.path(), &[], 65_536), vec![file(&logs)]);
    for exchange in 1..=10 {
        assert!(intend(&log, exchange));
    }
    while log.stats().sinks[0].acked == 0 {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    // From here on the sink cannot write.
    std::fs::rename(&logs, &away).unwrap();
    std::fs::write(&logs, "").unwrap();
    // The segment in use stays open, and no other can be created.
    std::fs::create_dir(&later).unwrap();
    std::fs::rename(before, later.join("chain")).unwrap();
    for exchange in 11..=200 {
        assert!(intend(&log, exchange), "nothing is required");
    }
    log.stop(Duration::from_millis(50));
    let (lost, written) = (log.stats().lost, log.stats().written);
    assert!(lost > 50, "{lost} of 200");
    drop(log);
    std::fs::remove_file(&logs).unwrap();
    std::fs::rename(&away, &logs).unwrap();
    let mut keys = KeySet::new();
    keys.add(TrustedKey::new(key().verifying_key().clone(), "gateway", &[KeyRole::Recorder])).unwrap();
    let verify = || {
        let (mut verifier, sink) = (AuditVerifier::new(&keys), file(&logs));
        let place = sink.place().unwrap();
        let taken = crate::ends::TakenRecords::read(&later, place).unwrap();
        lines_of(&logs.join("audit.log")).iter().for_each(|line| verifier.line("line", line));
        crate::ends::compare(&mut verifier, &later, place, 0, &taken).unwrap();
        verifier.finish()
    };
    let report = verify();
    assert_eq!((report.lost, report.lost_at_least, &report.faults), (lost, true, &vec![]));
    assert!(report.waiting > 0 && report.records + report.waiting == written, "{report:?} of {written}");
    assert_eq!(report.verdict(), crate::AuditVerdict::WithGaps);
    // The log tells of it without another call.
    let own = AuditSettings { folder: later.clone(), ..settings(folder.path(), &[], 65_536) };
    let log = start(own, vec![file(&logs)]);
    while log.stats().written == written {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    log.stop(Duration::from_secs(30));
    let report = verify();
    assert_eq!((report.lost, report.lost_at_least, report.waiting), (lost, true, 0), "{report:?}");
    assert_eq!(report.verdict(), crate::AuditVerdict::WithGaps);
}

/// `sync = "fsync"` writes the same.
#[test]
fn forced_writes_are_written_too() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { fsync: true, ..settings(folder.path(), &["file"], 1 << 20) };
    let log = start(settings, vec![Box::new(FileSink::new(folder.path().join("audit.log"), 90, pruner(), true))]);
    assert!(intend(&log, 1));
    log.stop(Duration::from_secs(30));
    assert_eq!(whole(&lines_of(&folder.path().join("audit.log"))).len(), 2);
}

/// Calls of many threads each learn that their intents are written, though most of them are written by others.
#[test]
fn calls_that_come_together_are_all_written_and_told() {
    const THREADS: u64 = 8;
    const CALLS: u64 = 400;
    let folder = tempfile::tempdir().unwrap();
    // The thread has nothing to do, so that nobody is told who is not told by another call.
    let own = AuditSettings {
        head_every: u64::MAX,
        head_interval: Duration::from_secs(3600),
        ..settings(folder.path(), &[], 64 << 20)
    };
    let log = start(own, vec![file(folder.path())]);
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let log = &log;
            threads.spawn(move || {
                for call in 0..CALLS {
                    assert!(intend(log, thread * CALLS + call), "thread {thread}, call {call}");
                }
            });
        }
    });
    log.stop(Duration::from_secs(60));
    let records = whole(&lines_of(&folder.path().join("audit.log")));
    let told = records.iter().filter_map(AuditRecord::correlation_id).collect::<std::collections::HashSet<_>>();
    assert_eq!(told.len() as u64, THREADS * CALLS);
}

/// Other sinks and settings are taken over while calls are written; no record is lost, and the chain goes on.
#[test]
fn sinks_are_replaced_while_calls_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let shaky = Shaky::default();
    let first: Vec<Box<dyn Sink>> = vec![file(folder.path()), Box::new(shaky.clone())];
    let log = Arc::new(start(settings(folder.path(), &["file"], 1 << 20), first));
    assert!(intend(&log, 1));
    let calling = {
        let log = Arc::clone(&log);
        // Those that run while the sink is down are refused.
        std::thread::spawn(move || (2..=200).filter(|exchange| intend(&log, *exchange)).count())
    };
    let other =
        |name: &str| -> Box<dyn Sink> { Box::new(FileSink::new(folder.path().join(name), 90, pruner(), false)) };
    // The sink that is down is given no time, and another one of its name gets what it missed.
    let second: Vec<Box<dyn Sink>> = vec![file(folder.path()), Box::new(shaky.clone())];
    log.replace(settings(folder.path(), &["file", "remote"], 1 << 20), second, Duration::from_millis(10)).unwrap();
    shaky.works.store(true, Ordering::SeqCst);
    calling.join().unwrap();
    log.replace(settings(folder.path(), &["file"], 1 << 20), vec![other("other.log")], Duration::from_secs(5)).unwrap();
    assert!(intend(&log, 1_000));
    log.stop(Duration::from_secs(5));
    let of_file = whole(&lines_of(&folder.path().join("audit.log")));
    let of_remote = whole(&shaky.kept.lock().unwrap().clone());
    let of_other = whole(&lines_of(&folder.path().join("other.log")));
    let last = |records: &[AuditRecord]| records.last().unwrap().seq;
    assert_eq!(last(&of_remote), last(&of_file));
    assert!(last(&of_other) > last(&of_file));
    let numbers: Vec<u64> = of_remote.iter().map(|one| one.seq).collect();
    assert_eq!(numbers, (1..=last(&of_remote)).collect::<Vec<_>>(), "each once, none is missing");
}
