//! Sealed tapes: whoever changes one in the database is found out, and told which entry it was.

use crate::house::House;
use crate::make::{SECOND, call, tape};
use crate::version_2;
use signalbox_engine::record::{Entry, Retention, TapeInfo, TapeStore};
use signalbox_seal::SigningKey;
use signalbox_tape::seal::{SealFaultKind, SealReport, SealVerdict, TapeSealer};
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
