//! A log that goes to another place, and back.

use super::*;
use crate::ends;
use crate::place::SinkPlace;
use crate::sinks::DatabaseSink;
use crate::verify::{AuditFaultKind, AuditReport, AuditVerdict};
use signalbox_store::audit::{AuditDatabase, StoredRecord};

const SPOOL: u64 = 65_536;

/// A kind of sink, with two places.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Kind {
    File,
    Database,
}

/// One data folder, and a log in it that is moved.
struct Mover {
    folder: tempfile::TempDir,
    kind: Kind,
    exchange: u64,
}

impl Mover {
    fn new(kind: Kind) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), kind, exchange: 0 }
    }

    fn journals(&self) -> std::path::PathBuf {
        self.folder.path().join("journal")
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self, name: &str) -> String {
        format!("sqlite:{}", self.path(name).display())
    }

    fn place(&self, name: &str) -> SinkPlace {
        match self.kind {
            Kind::File => SinkPlace::file(&self.path(name), &self.journals()),
            Kind::Database => SinkPlace::database(&self.url(name), &self.journals()).unwrap(),
        }
    }

    fn sink(&self, name: &str) -> Vec<Box<dyn Sink>> {
        let pruner = crate::Pruner::new(key(), KeySet::new(), &self.journals());
        match self.kind {
            Kind::File => vec![Box::new(FileSink::new(self.path(name), 90, pruner, false))],
            Kind::Database => vec![Box::new(DatabaseSink::new(&self.url(name), 90, pruner).unwrap())],
        }
    }

    fn calls(&mut self, log: &AuditLog, count: u64) {
        for call in 1..=count {
            self.exchange += 1;
            assert!(intend(log, self.exchange));
            // The sink has to keep up, and to have everything in the end, so that the journal lets it go.
            while (call % 50 == 0 || call == count) && log.stats().sinks[0].acked < log.stats().written {
                std::thread::park_timeout(Duration::from_millis(5));
            }
        }
    }

    fn open(&self, name: &str) -> AuditLog {
        start(settings(self.folder.path(), &[], SPOOL), self.sink(name))
    }

    /// The log goes to `a`, then to `b`, then to `a` again.
    fn there_and_back(&mut self, by_reload: bool) {
        let (there, back) = (300, 250);
        let mut log = self.open("a");
        self.calls(&log, there);
        for (name, count) in [("b", back), ("a", 30)] {
            if by_reload {
                let settings = settings(self.folder.path(), &[], SPOOL);
                log.replace(settings, self.sink(name), Duration::from_secs(30)).unwrap();
            } else {
                log.stop(Duration::from_secs(30));
                drop(log);
                log = self.open(name);
            }
            self.calls(&log, count);
        }
        log.stop(Duration::from_secs(30));
    }

    fn lines(&self, name: &str) -> Vec<String> {
        if self.kind == Kind::File {
            return lines_of(&self.path(name));
        }
        let mut lines = Vec::new();
        let mut each = |row: &StoredRecord<'_>| {
            lines.push(row.record.to_owned());
            true
        };
        AuditDatabase::at(&self.url(name)).unwrap().records(&mut each).unwrap();
        lines
    }

    /// Report on these lines as those of a place.
    fn verify(&self, name: &str, lines: &[String]) -> AuditReport {
        let mut keys = KeySet::new();
        keys.add(TrustedKey::new(key().verifying_key().clone(), "gateway", &[KeyRole::Recorder])).unwrap();
        let place = self.place(name);
        let mut verifier = AuditVerifier::new(&keys).of_place(&place);
        lines.iter().for_each(|line| verifier.line("line", line));
        let taken = ends::TakenRecords::read(&self.journals(), &place).unwrap();
        ends::compare(&mut verifier, &self.journals(), &place, 0, &taken).unwrap();
        verifier.finish()
    }
}

/// The line that stands for records, by its number among the lines, and what it says.
fn stand_ins(lines: &[String]) -> Vec<(usize, AuditRecord)> {
    let all = lines.iter().map(|line| AuditRecord::read(line).unwrap()).enumerate();
    all.filter(|(_, record)| record.event_type.is_none()).collect()
}

/// A log that comes back to its place goes on behind what is there, with a gap for what went elsewhere. None of its
/// records can be removed, and no line of the other place takes their place.
#[test]
fn a_log_that_moves_there_and_back_verifies_and_nothing_stands_for_what_it_has() {
    for (kind, by_reload) in [(Kind::File, true), (Kind::File, false), (Kind::Database, true), (Kind::Database, false)]
    {
        let mut mover = Mover::new(kind);
        mover.there_and_back(by_reload);
        let (of_a, of_b) = (mover.lines("a"), mover.lines("b"));
        let (in_a, in_b) = (stand_ins(&of_a), stand_ins(&of_b));
        let what = format!("{kind:?}, by reload: {by_reload}");
        let [(at, gap)] = &in_a[..] else { panic!("{what}: {in_a:?}") };
        let [(0, before)] = &in_b[..] else { panic!("{what}: {in_b:?}") };
        assert!(gap.kind().starts_with("elsewhere") && before.kind().starts_with("elsewhere"), "{what}");
        assert_eq!(gap.value["from"].as_u64().unwrap(), *at as u64 + 1, "{what}: behind what the place has");
        for (name, lines) in [("a", &of_a), ("b", &of_b)] {
            let report = mover.verify(name, lines);
            assert_eq!((&report.faults, &report.doubts), (&vec![], &vec![]), "{what}, {name}");
            assert_eq!((report.verdict(), report.pruned), (AuditVerdict::WithGaps, 0), "{what}, {name}");
            assert!(report.elsewhere > 0, "{what}, {name}");
        }
        let cut = mover.verify("a", &of_a[*at..]);
        assert_eq!(cut.faults[0].kind, AuditFaultKind::Missing(1, *at as u64), "{what}: without what was there first");
        let kept = |line: &&String| AuditRecord::read(line).unwrap().seq > before.seq;
        let swapped: Vec<String> = of_b[..1].iter().chain(of_a.iter().filter(kept)).cloned().collect();
        assert!(swapped.len() < of_a.len(), "{what}");
        let report = mover.verify("a", &swapped);
        assert_eq!(
            report.faults[0].kind,
            AuditFaultKind::OfAnotherSink(before.seq),
            "{what}: with the gap of the other"
        );
    }
}

/// A place whose records were removed while the log went elsewhere gets no gap for them.
#[test]
fn records_that_were_removed_meanwhile_stay_missing() {
    let mut mover = Mover::new(Kind::File);
    let log = mover.open("a");
    mover.calls(&log, 300);
    log.stop(Duration::from_secs(30));
    drop(log);
    let log = mover.open("b");
    mover.calls(&log, 30);
    log.stop(Duration::from_secs(30));
    drop(log);
    std::fs::remove_file(mover.path("a")).unwrap();
    let log = mover.open("a");
    mover.calls(&log, 30);
    log.stop(Duration::from_secs(30));
    let report = mover.verify("a", &mover.lines("a"));
    assert_eq!(report.verdict(), AuditVerdict::Broken, "{report:?}");
    assert!(matches!(report.faults[0].kind, AuditFaultKind::Missing(1, 300..)), "{:?}", report.faults);
}

/// A place with records of which no cursor is left (one of an earlier version, or deleted) is asked what it has, in its
/// files of earlier days too.
#[test]
fn a_place_without_a_cursor_is_asked_what_it_has() {
    for kind in [Kind::File, Kind::Database] {
        let mut mover = Mover::new(kind);
        mover.there_and_back(false);
        let cursors = std::fs::read_dir(mover.journals().join("chain")).unwrap().map(|entry| entry.unwrap().path());
        cursors.filter(|path| path.extension().is_some_and(|it| it == "cursor")).for_each(|path| {
            std::fs::remove_file(path).unwrap();
        });
        if kind == Kind::File {
            std::fs::rename(mover.path("a"), mover.path("a.2026-01-01")).unwrap();
        }
        let log = mover.open("a");
        mover.calls(&log, 30);
        log.stop(Duration::from_secs(30));
        drop(log);
        let mut lines = if kind == Kind::File { mover.lines("a.2026-01-01") } else { Vec::new() };
        lines.extend(mover.lines("a"));
        assert_eq!(stand_ins(&lines).len(), 1, "{kind:?}");
        let report = mover.verify("a", &lines);
        assert_eq!((report.verdict(), report.faults), (AuditVerdict::WithGaps, vec![]), "{kind:?}");
    }
}
