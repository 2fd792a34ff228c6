//! Processes that are killed while they write, and several that write at once.

use crate::make::{all, call, places, tape};
use signalbox_engine::record::{Entry, Query, TapeStore};
use signalbox_store::SqliteStore;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

const FILE: &str = "STORE_TEST_FILE";
const TAPE: &str = "STORE_TEST_TAPE";
const BATCHES: &str = "STORE_TEST_BATCHES";

/// Another process of this program that runs the test below.
fn writer(path: &Path, tape: &str, batches: u64) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killing::writes_as_another_process", "--ignored", "--nocapture"])
        .env(FILE, path)
        .env(TAPE, tape)
        .env(BATCHES, batches.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn kept(line: &str) -> Option<u64> {
    line.split_once("kept ")?.1.parse().ok()
}

#[test]
#[ignore = "the others start it as a process of its own"]
fn writes_as_another_process() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let batches: u64 = std::env::var(BATCHES).unwrap().parse().unwrap();
    let store = SqliteStore::open(path).unwrap();
    let mut writer = store.begin(&tape(&std::env::var(TAPE).unwrap(), 1)).unwrap();
    let mut calls = 0;
    for batch in 0..batches {
        let size = 1 + batch * 7 % 40;
        let entries: Vec<Entry> =
            (calls..calls + size).flat_map(|n| call(5 * n + 1, n + 1, "echo", "success", 5)).collect();
        calls += size;
        writer.append(&entries, batch % 3 == 0).unwrap();
        // A line of its own, whatever the test program prints before it.
        println!("\nkept {}", calls * 5);
        writer.idle().unwrap();
    }
    writer.end(1, None).unwrap();
}

/// What was kept is there whenever the process dies.
/// Proves S-31.
#[test]
fn a_process_that_is_killed_leaves_whole_batches_and_a_file_that_opens() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tapes.db");
    for round in 0..20u64 {
        let name = format!("t{round:02}");
        let (mut child, mut lines) = writer(&path, &name, u64::MAX);
        let until = 1 + round * round * 13 % 170;
        let mut last = 0;
        for _ in 0..until {
            last = lines
                .by_ref()
                .map_while(Result::ok)
                .find_map(|line| kept(&line))
                .expect("it writes until it is killed");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        last = lines.map_while(Result::ok).filter_map(|line| kept(&line)).last().unwrap_or(last);

        let store = SqliteStore::open(&path).unwrap();
        let mut found = Vec::new();
        loop {
            let query = Query { tape: Some(name.clone()), after: found.last().copied(), ..all() };
            let page = places(&store, &query);
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        assert!(found.len() as u64 >= last, "round {round}: {} of {last} are there", found.len());
        assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>(), "round {round}");
        assert_eq!(found.len() % 5, 0, "round {round}: half a batch");
        let calls = found.len() as u64 / 5;
        assert_eq!(store.stats(Some(&name)).unwrap().total.count, calls);
        let text = Query { text: Some(format!("\"answer {calls}\"")), tape: Some(name), ..all() };
        assert_eq!(places(&store, &text), [calls * 5 - 2]);
    }
    let file = rusqlite::Connection::open(&path).unwrap();
    let sound: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    file.execute_batch("INSERT INTO tape_search (tape_search) VALUES ('integrity-check')").unwrap();
}

#[test]
fn several_processes_write_to_one_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tapes.db");
    let children: Vec<_> = (0..3).map(|n| writer(&path, &format!("p{n}"), 40)).collect();
    for (mut child, lines) in children {
        assert_eq!(lines.map_while(Result::ok).filter_map(|line| kept(&line)).count(), 40);
        assert!(child.wait().unwrap().success());
    }
    let store = SqliteStore::open(&path).unwrap();
    let calls: u64 = (0..40).map(|batch| 1 + batch * 7 % 40).sum();
    for n in 0..3 {
        let query = Query { tape: Some(format!("p{n}")), ..all() };
        assert_eq!(places(&store, &query), (1..=calls * 5).collect::<Vec<_>>());
    }
    assert_eq!(store.stats(None).unwrap().total.count, 3 * calls);
}
