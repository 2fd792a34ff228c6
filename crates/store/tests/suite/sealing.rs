//! Sealed tapes: whoever changes one in the database is found out, and told which entry it was.

use crate::house::House;
use crate::make::{SECOND, all, call, entry, find, tape};
use crate::version_2;
use signalbox_engine::record::{Content, Entry, Retention, TapeInfo, TapeStore};
use signalbox_seal::SigningKey;
use signalbox_tape::seal::{SealFaultKind, SealReport, SealVerdict, TapeSealer, TapeVerifier, UncoveredRows};
use signalbox_tape::{HeadInterval, SealSettings, TapeSource};
use std::sync::Arc;
use std::time::Duration;

fn key() -> SigningKey {
    SigningKey::from_seed(&[9; 32]).unwrap()
}

fn settings(info: &mut TapeInfo) -> SealSettings {
    let commit = vec![vec!["params".to_owned(), "arguments".to_owned()], vec!["result".to_owned()]];
    SealSettings::begin(info, key(), [4; 32], commit, HeadInterval { entries: 7, time: Duration::from_secs(3600) })
        .unwrap()
}

/// Keeps a sealed tape of these entries, and ends it if that is wanted.
fn keep(store: &dyn TapeStore, mut info: TapeInfo, mut entries: Vec<Entry>, end: bool) {
    let mut sealer = TapeSealer::new(settings(&mut info));
    sealer.seal(&mut entries);
    let mut writer = store.begin(&info).unwrap();
    for batch in entries.chunks(13) {
        writer.append(batch, false).unwrap();
    }
    if end {
        writer.end(77, sealer.closing(77).as_deref()).unwrap();
    }
}

fn calls(count: u64) -> Vec<Entry> {
    (0..count).flat_map(|n| call(5 * n + 1, n + 1, "echo", "success", 5)).collect()
}

fn verify(house: &House, id: &str) -> SealReport {
    let store = house.open();
    let info = store.tape(id).unwrap();
    TapeSource::Stored(store, info).verify(|| ())
}

/// What is wrong, and at which entry.
fn fault(house: &House, id: &str) -> (SealFaultKind, Option<u64>) {
    let report = verify(house, id);
    let fault = report.fault.unwrap_or_else(|| panic!("it says {:?}", report.verdict));
    (fault.kind, fault.entry)
}

/// Changes the database as somebody would who has it in his hands.
fn change(house: &House, sql: &str) {
    match house {
        House::Sqlite(folder) => {
            let file = rusqlite::Connection::open(folder.path().join("tapes.db")).unwrap();
            file.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        House::Postgres(url) => {
            let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
            client
                .batch_execute(&format!("SET search_path TO signalbox; {sql}"))
                .unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
    }
}

/// The condition under which a row is this entry of the first tape.
fn row(house: &House, seq: u64) -> String {
    match house {
        House::Sqlite(_) => format!("id = ((SELECT min(id) FROM tape_entries) - 1 + {seq})"),
        House::Postgres(_) => format!("seq = {seq}"),
    }
}

pub fn a_sealed_tape_is_valid_closed_or_not(house: &House) {
    keep(&*house.open(), tape("a", 1), calls(20), true);
    keep(&*house.open(), TapeInfo { id: "b".into(), ..version_2::info() }, version_2::entries(), true);
    keep(&*house.open(), tape("c", 3), calls(3), false);
    house.open().begin(&tape("d", 4)).unwrap().append(&calls(1), false).unwrap();
    let report = verify(house, "a");
    assert_eq!((report.verdict, report.entries, report.signed_up_to), (SealVerdict::Valid, 100, 100), "{report:?}");
    assert_eq!(report.signers.iter().map(|signer| signer.key.id()).collect::<Vec<_>>(), [key().id()]);
    let report = verify(house, "b");
    assert_eq!(report.verdict, SealVerdict::Valid, "every kind of entry: {report:?}");
    let report = verify(house, "c");
    assert_eq!((report.verdict, report.last, report.signed_up_to), (SealVerdict::NeverClosed, 15, 14), "{report:?}");
    assert_eq!(verify(house, "d").verdict, SealVerdict::NeverSealed);
}

pub fn every_column_of_every_entry_counts(house: &House) {
    let store = house.open();
    keep(&*store, tape("a", 1), calls(2), true);
    drop(store);
    let number = ["at", "session", "exchange", "error_code", "length"];
    let named: &[&str] = match house {
        // The number of another name, and the name itself.
        House::Sqlite(_) => &["principal", "method", "subject", "backend"],
        House::Postgres(_) => &[],
    };
    let texts: &[&str] = match house {
        House::Sqlite(_) => &[],
        House::Postgres(_) => &["principal", "method", "subject", "backend"],
    };
    for seq in 1..=10 {
        let row = row(house, seq);
        let numbers = number.iter().chain(named).map(|column| format!("coalesce({column}, 0) + 1 /* {column}"));
        let mut changes: Vec<(String, String)> =
            numbers.map(|new| (new.rsplit(' ').next().unwrap_or_default().to_owned(), format!("{new} */"))).collect();
        let zeros = if matches!(house, House::Sqlite(_)) { "zeroblob(length(body))" } else { "'\\x00'::bytea" };
        for (column, new) in [("what", "what + 1"), ("form", "form + 1"), ("body", zeros), ("extra", "NULL")] {
            changes.push((column.to_owned(), new.to_owned()));
        }
        changes.extend(texts.iter().map(|column| ((*column).to_owned(), format!("coalesce({column}, '') || 'x'"))));
        for (column, new) in changes {
            change(house, &format!("CREATE TABLE before AS SELECT {column} AS old FROM tape_entries WHERE {row}"));
            change(house, &format!("UPDATE tape_entries SET {column} = {new} WHERE {row}"));
            let report = verify(house, "a");
            let found = report.fault.as_ref().map(|fault| fault.entry);
            let unused = ["error_code", "length", "method", "subject", "backend"].contains(&&*column);
            // The end of a call has no such column: what a store does not read of an entry is no part of it.
            if found != Some(Some(seq)) && !(unused && seq % 5 == 0) {
                panic!("{column} of entry {seq}: {report:?}");
            }
            change(house, &format!("UPDATE tape_entries SET {column} = (SELECT old FROM before) WHERE {row}"));
            change(house, "DROP TABLE before");
        }
    }
    assert_eq!(verify(house, "a").verdict, SealVerdict::Valid, "all is as it was");
    for (column, new) in [("target", "'other'"), ("started", "9"), ("sampling", "'none'"), ("ended", "78")] {
        change(house, &format!("CREATE TABLE before AS SELECT {column} AS old FROM tapes"));
        change(house, &format!("UPDATE tapes SET {column} = {new}"));
        assert_eq!(verify(house, "a").verdict, SealVerdict::Broken, "{column}");
        change(house, &format!("UPDATE tapes SET {column} = (SELECT old FROM before)"));
        change(house, "DROP TABLE before");
    }
    assert_eq!(verify(house, "a").verdict, SealVerdict::Valid);
    change(house, "UPDATE tapes SET seal = NULL");
    assert_eq!(verify(house, "a").verdict, SealVerdict::Broken, "the seal cannot be removed unseen");
}

/// Entries of every kind, calls, and the end of the session.
fn all_kinds() -> Vec<Entry> {
    let mut entries = version_2::entries();
    for entry in &mut entries {
        (entry.at, entry.seal) = (entry.seq * SECOND, None);
    }
    entries.extend((0..3).flat_map(|n| call(5 * n + 12, n + 3, "echo", ["success", "error"][n as usize % 2], 5)));
    entries.push(entry(27, Content::SessionEnded));
    entries
}

/// Changes of the tables besides the entries: table, and the statement.
fn changes(house: &House) -> Vec<(&'static str, String)> {
    let is_sqlite = matches!(house, House::Sqlite(_));
    let set =
        |table: &str, column: &str, new: &str, row: &str| format!("UPDATE {table} SET {column} = {new} WHERE {row}");
    let mut changes = Vec::new();
    for column in ["external", "client", "client_version", "revision", "transport", "proof", "address"] {
        changes.push(("sessions", set("sessions", column, "'x'", "number = 1")));
    }
    for (column, new) in
        [("claims", "NULL"), ("began", "began + 1"), ("ended", "ended - 1"), ("ended", "NULL"), ("number", "7")]
    {
        changes.push(("sessions", set("sessions", column, new, "number = 1")));
    }
    changes.push(("sessions", "DELETE FROM sessions".to_owned()));
    changes.push(("sessions", "INSERT INTO sessions (tape, number, transport, began, proof) SELECT tape, 77, 'http', 1, 'certificate' FROM sessions".to_owned()));
    for column in ["first", "last", "took", "bytes_in", "bytes_out", "exchange"] {
        let steps: &[i64] = if column == "exchange" { &[100] } else { &[-1, 100] };
        for by in steps {
            changes.push(("exchanges", set("exchanges", column, &format!("{column} + {by}"), "exchange = 5")));
        }
    }
    // SQLite has the number of a name there.
    let names = if is_sqlite { ["subject", "outcome", "method"] } else { ["'x'"; 3] };
    for (column, new) in ["method", "subject", "outcome"].into_iter().zip(names) {
        changes.push(("exchanges", set("exchanges", column, new, "exchange = 4")));
        changes.push(("exchanges", set("exchanges", column, "NULL", "exchange = 4")));
    }
    changes.push(("exchanges", "DELETE FROM exchanges WHERE exchange IN (3, 4)".to_owned()));
    changes.push(("exchanges", "INSERT INTO exchanges (tape, exchange, first, last) SELECT tape, 99, 1, 2 FROM tapes, (SELECT min(tape) AS tape FROM sessions) AS s".to_owned()));
    for new in ["came = came + 1", "went = went - 1"] {
        changes.push(("notifications", format!("UPDATE notifications SET {new}")));
    }
    changes.push(("notifications", "DELETE FROM notifications".to_owned()));
    for column in ["entries", "first_at", "last_at", "last_seq", "gaps", "passed"] {
        changes.push(("tapes", set("tapes", column, &format!("{column} + 1"), "true")));
    }
    let only = if is_sqlite {
        changes.push(("exchanges", set("exchanges", "well", "1", "exchange = 4")));
        ["requests = requests + 1", "notifications = 0", "results = 0", "errors = 0", "raws = 1", "disordered = 1"]
            .as_slice()
    } else {
        ["kinds = '{0,0,0,0,0}'", "disordered = true"].as_slice()
    };
    changes.extend(only.iter().map(|new| ("tapes", format!("UPDATE tapes SET {new}"))));
    changes
}

pub fn every_column_of_every_derived_row_counts(house: &House) {
    keep(&*house.open(), tape("a", 1), all_kinds(), true);
    let report = verify(house, "a");
    assert_eq!((report.verdict, report.fault), (SealVerdict::Valid, None));
    for (table, sql) in changes(house) {
        change(house, &format!("CREATE TABLE before AS SELECT * FROM {table}; {sql}"));
        let report = verify(house, "a");
        let fault = report.fault.unwrap_or_else(|| panic!("{sql}: it says {:?}", report.verdict));
        assert!(fault.kind == SealFaultKind::Wrong && fault.why.contains(&format!("`{table}`")), "{sql}: {fault:?}");
        change(house, &format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM before; DROP TABLE before"));
    }
    assert_eq!(verify(house, "a").verdict, SealVerdict::Valid, "all is as it was");
}

/// In SQLite rows share names, which filters find by their tape and role.
pub fn a_name_of_another_role_or_tape_counts(house: &House) {
    if !matches!(house, House::Sqlite(_)) {
        return;
    }
    keep(&*house.open(), tape("a", 1), all_kinds(), true);
    for role in ["m", "s", "b", "p", "o"] {
        for other in ["tape = tape + 1", "role = 'x'"] {
            change(house, "CREATE TABLE before AS SELECT * FROM names");
            change(house, &format!("UPDATE names SET {other} WHERE role = '{role}'"));
            assert_eq!(verify(house, "a").verdict, SealVerdict::Broken, "{other} of {role}");
            change(house, "DELETE FROM names; INSERT INTO names SELECT * FROM before; DROP TABLE before");
        }
    }
    assert_eq!(verify(house, "a").verdict, SealVerdict::Valid, "all is as it was");
}

pub fn rows_of_a_live_or_pruned_tape_are_no_faults(house: &House) {
    // Entries that came after the tables were read.
    let (mut info, mut entries) = (tape("a", 1), all_kinds());
    let mut sealer = TapeSealer::new(settings(&mut info));
    sealer.seal(&mut entries);
    let store = house.open();
    let mut writer = store.begin(&info).unwrap();
    writer.append(&entries[..14], false).unwrap();
    let tables = store.tables("a").unwrap();
    writer.append(&entries[14..], false).unwrap();
    let mut verifier = TapeVerifier::new(&info).with_tables(tables);
    for hit in find(&*store, &all()).hits {
        assert!(verifier.push(hit.entry));
    }
    let report = verifier.finish();
    assert_eq!((report.verdict, report.fault), (SealVerdict::NeverClosed, None));
    drop(writer);
    // The description of the session is pruned, and the beginning of a call.
    let retention = Retention { max_age: Some(Duration::from_secs(14)), ..Retention::default() };
    let pruned = house.open_signing(Some(key())).prune(&retention, 28 * SECOND).unwrap();
    assert!(pruned.entries > 10, "{pruned:?}");
    let report = verify(house, "a");
    assert_eq!((report.verdict, &report.fault), (SealVerdict::NeverClosed, &None), "{report:?}");
    assert_eq!(report.uncovered, UncoveredRows { sessions: 1, exchanges: 0 });
    for sql in
        ["UPDATE exchanges SET took = took + 1", "UPDATE exchanges SET last = last + 1", "UPDATE tapes SET gaps = 0"]
    {
        change(house, sql);
        assert_eq!(fault(house, "a").0, SealFaultKind::Wrong, "{sql}");
    }
}

pub fn deleted_swapped_added_and_cut_entries_are_named(house: &House) {
    let fresh = |id: &str| keep(&*house.open(), tape(id, 1), calls(4), true);
    fresh("a");
    let key_column = if matches!(house, House::Sqlite(_)) { "id" } else { "seq" };
    let at = |seq: u64| row(house, seq);
    let again = || {
        house.open().remove("a").unwrap();
        fresh("a");
    };
    change(house, &format!("DELETE FROM tape_entries WHERE {}", at(6)));
    assert_eq!(fault(house, "a"), (SealFaultKind::Missing, Some(6)));
    again();
    // Two entries change places.
    let (six, nine) = (at(6), at(9));
    change(house, &format!("UPDATE tape_entries SET {key_column} = {key_column} + 500 WHERE {six}"));
    change(house, &format!("UPDATE tape_entries SET {key_column} = {key_column} - 3 WHERE {nine}"));
    change(house, &format!("UPDATE tape_entries SET {key_column} = {key_column} - 497 WHERE {}", at(506)));
    assert_eq!(fault(house, "a"), (SealFaultKind::Reordered, Some(6)));
    again();
    // The last entries go.
    change(house, &format!("DELETE FROM tape_entries WHERE {} OR {}", at(19), at(20)));
    assert_eq!(fault(house, "a"), (SealFaultKind::Missing, Some(19)));
    again();
    // One more, a copy of the last.
    change(house, &format!("CREATE TABLE copy AS SELECT * FROM tape_entries WHERE {}", at(20)));
    change(house, &format!("UPDATE copy SET {key_column} = {key_column} + 1"));
    change(house, "INSERT INTO tape_entries SELECT * FROM copy; UPDATE tapes SET last_seq = 21, entries = 21");
    assert_eq!(fault(house, "a"), (SealFaultKind::Added, Some(21)));
}

pub fn what_is_left_after_pruning_still_proves_itself(house: &House) {
    keep(&*house.open(), tape("a", 1), calls(100), false);
    let prune = |key: Option<SigningKey>, keep: u64| {
        let retention = Retention { max_age: Some(Duration::from_nanos(keep * SECOND)), ..Retention::default() };
        let store: Arc<dyn TapeStore> = house.open_signing(key);
        store.prune(&retention, 500 * SECOND).unwrap()
    };
    assert!(prune(Some(key()), 300).entries > 100);
    let report = verify(house, "a");
    assert_eq!((report.verdict, report.pruned_up_to), (SealVerdict::NeverClosed, 199), "{report:?}");
    assert_eq!(report.last, 500);
    assert!(prune(Some(key()), 200).entries > 50, "and once more");
    let report = verify(house, "a");
    assert_eq!((report.verdict, report.pruned_up_to), (SealVerdict::NeverClosed, 299), "{report:?}");
    // Without a key, or by hand, nobody says that it was meant.
    assert!(prune(None, 100).entries > 50);
    assert_eq!(fault(house, "a"), (SealFaultKind::Missing, Some(300)));
}
