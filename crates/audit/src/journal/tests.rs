use super::*;
use crate::event::{AuditEvent, EventType, RiskLevel};

fn lines(place: &mut ChainPlace, count: usize) -> String {
    let mut text = String::new();
    for _ in 0..count {
        let event = AuditEvent::own(1_700_000_000_000, EventType::RecordsLost, "{}", RiskLevel::Low);
        place.append(&event, &mut text);
    }
    text
}

fn open(folder: &Path) -> (Journal, ChainPlace, PathBuf) {
    Journal::open(folder, "fresh", 1 << 20, false).unwrap()
}

/// The chain goes on where it ended, and what a crash has torn is cut off.
#[test]
fn a_journal_goes_on_where_it_ended_without_what_was_torn() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, mut place, own) = open(folder.path());
    let text = lines(&mut place, 3);
    journal.append(&text, 1).unwrap();
    drop(journal);
    let file = segment_path(&own, 1);
    std::fs::write(&file, format!("{text}{{\"chain\":\"fresh\",\"seq\":4,")).unwrap();
    let (_journal, again, _) = open(folder.path());
    assert_eq!(again, place);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

/// Two processes with one data folder have a chain each.
#[test]
fn a_second_process_takes_another_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (_held, _, first) = open(folder.path());
    let (_, _, second) = Journal::open(folder.path(), "other", 1 << 20, false).unwrap();
    assert_ne!(first, second);
}

/// What a sink lacks of a chain is known from its cursor for the place that the log goes to now.
#[test]
fn a_chain_of_which_a_sink_lacks_records_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, mut place, own) = open(folder.path());
    let cursor = |place: &SinkPlace| Cursor::open(&own, "file", Some(place)).unwrap().0;
    let (former, now) = (SinkPlace::named_file("former"), SinkPlace::named_file("now"));
    cursor(&former).keep(1).unwrap();
    let found = || undelivered(folder.path()).unwrap();
    assert!(found().is_empty(), "there is no record yet");
    let text = lines(&mut place, 3);
    journal.append(&text, 1).unwrap();
    assert_eq!(found(), ["fresh"]);
    cursor(&now).keep(3).unwrap();
    assert!(found().is_empty(), "the log goes to another place now, which has everything");
    std::fs::write(own.join("remote.cursor"), "2\n").unwrap();
    assert_eq!(found(), ["fresh"]);
    std::fs::write(own.join("remote.cursor"), "3\n").unwrap();
    assert!(found().is_empty());
}

/// Records are read from any place on, over segments, and segments go when nobody waits for them.
#[test]
fn records_are_read_over_segments_and_released() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, mut place, own) = Journal::open(folder.path(), "fresh", 0, false).unwrap();
    for _ in 0..40 {
        let first = place.seq + 1;
        let text = lines(&mut place, 5);
        journal.append(&text, first).unwrap();
    }
    assert!(journal.segments.len() > 2);
    let mut reader = JournalReader::new(&own);
    for next in [1, 77, 199] {
        let read = reader.read(next, 200, 500, 1 << 20).unwrap();
        assert_eq!(read.iter().map(|line| line.seq).collect::<Vec<_>>(), (next..=200).collect::<Vec<_>>());
        assert!(read.iter().all(|line| line.text.contains(&format!("\"seq\":{},", line.seq))));
    }
    assert_eq!(reader.read(199, 200, 1, 1 << 20).unwrap().len(), 1);
    assert_eq!(journal.keeps_from(u64::MAX), 1);
    let from = journal.keeps_from(1);
    assert!(from > 1 && from <= 200);
    journal.release(200);
    assert_eq!(journal.segments.len(), 1);
    drop(journal);
    assert_eq!(Journal::open(folder.path(), "fresh", 0, false).unwrap().1, place);
}

/// How far a sink came is not forgotten.
#[test]
fn a_cursor_is_read_as_it_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let place = SinkPlace::named_file;
    let open = |name| Cursor::open(folder.path(), "file", Some(&place(name))).unwrap();
    let (cursor, resumed) = open("a");
    assert_eq!(resumed, ResumePoint { last: None, moved: false });
    cursor.keep(123_456).unwrap();
    cursor.keep(7).unwrap();
    assert_eq!(open("a").1, ResumePoint { last: Some(7), moved: false });
    assert_eq!(open("b").1, ResumePoint { last: None, moved: true }, "another place has nothing");
    assert_eq!(open("a").1, ResumePoint { last: Some(7), moved: true }, "what it had before is not forgotten");
}

/// The cursor of an earlier version belongs to the place that it wrote to last.
#[test]
fn cursors_of_earlier_versions_are_read() {
    for (name, expected) in
        [("a", ResumePoint { last: Some(9), moved: false }), ("b", ResumePoint { last: None, moved: true })]
    {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file.cursor"), "00000000000000000009\n").unwrap();
        std::fs::write(folder.path().join("file.place"), SinkPlace::named_file("a").former_mark()).unwrap();
        let place = SinkPlace::named_file(name);
        assert_eq!(Cursor::open(folder.path(), "file", Some(&place)).unwrap().1, expected);
        assert_eq!(Cursor::read(folder.path(), &place), expected.last);
    }
}
