//! PostgreSQL databases that older programs wrote. What version 1 shows is told by the golden stores.

use crate::make::{all, call, keep, places};
use crate::postgres_server::PostgresServer;
use crate::version_2::{entries, found, info, session};
use postgres::{Client, NoTls};
use signalbox_engine::record::{
    Content, Entry, MessageEntry, NotificationStats, Query, StoreError, TapeInfo, TapeStore,
};
use signalbox_store::PostgresStore;
use std::path::Path;

/// A database with what a program of this version wrote.
fn written_by(server: &PostgresServer, version: u32) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/version-{version}.sql"));
    let url = server.database();
    Client::connect(&url, NoTls).unwrap().batch_execute(&std::fs::read_to_string(file).unwrap()).unwrap();
    url
}

fn version(url: &str) -> String {
    let sql = "SELECT value FROM signalbox.meta WHERE key = 'version'";
    Client::connect(url, NoTls).unwrap().query_one(sql, &[]).unwrap().get(0)
}

/// What version 2 had columns for.
fn known_to_version_2(entry: Entry) -> Entry {
    let content = match entry.content {
        Content::Message(MessageEntry { point, kind, length, body, method, .. }) => {
            Content::Message(MessageEntry { method, ..MessageEntry::new(point, kind, length, body) })
        }
        other => other,
    };
    Entry { seal: None, content, ..entry }
}

/// `version-2.sql` was written by a program that did not keep marks of messages, seals and parents.
#[test]
fn a_database_of_version_2_shows_what_it_has_and_takes_what_is_new() {
    let Some(server) = PostgresServer::start() else { return };
    let url = written_by(&server, 2);
    for _ in 0..2 {
        let store = PostgresStore::open(&url).unwrap();
        assert_eq!(version(&url), "3");
        assert_eq!(store.tape("t").unwrap(), TapeInfo { parent: None, seal: None, ..info() });
        assert_eq!(store.sessions("t").unwrap(), [(1, session())], "its entry knows what its row did not");
        let query = Query { tape: Some("t".into()), ..all() };
        assert_eq!(found(&store, &query), entries().into_iter().map(known_to_version_2).collect::<Vec<_>>());
        let progress = ("notifications/progress".to_owned(), NotificationStats { came: 1, went: 1 });
        assert_eq!(store.stats(None).unwrap().notifications, [progress]);
        assert_eq!(places(&store, &Query { text: Some("\"answer 3\"".into()), ..all() }), [13]);
    }
    let store = PostgresStore::open(&url).unwrap();
    keep(
        &store,
        "calls again",
        &(0..3).flat_map(|n| call(5 * n + 1, n + 1, "echo", "success", n * 1_000_000)).collect::<Vec<_>>(),
    );
    let sql = "SELECT aside FROM signalbox.tapes WHERE id LIKE 'calls%'";
    let aside = Client::connect(&url, NoTls).unwrap().query(sql, &[]).unwrap();
    let aside: Vec<i64> = aside.iter().map(|row| row.get(0)).collect();
    assert!(matches!(aside[..], [old, new] if old == new && old > 100), "{aside:?}");
    let new = TapeInfo { id: "new".into(), ..info() };
    store.import(&new, &mut entries().into_iter().map(Ok)).unwrap();
    assert_eq!(store.tape("new").unwrap(), new);
    assert_eq!(found(&store, &Query { tape: Some("new".into()), ..all() }), entries());
}

#[test]
fn several_programs_may_open_an_old_database_at_once() {
    let Some(server) = PostgresServer::start() else { return };
    for version in [1, 2] {
        let url = written_by(&server, version);
        let barrier = std::sync::Barrier::new(4);
        let seen: Vec<_> = std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                let store = PostgresStore::open(&url).unwrap();
                (store.tapes().unwrap(), store.stats(None).unwrap())
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(seen[0].0.len() > 1 && seen.iter().all(|all| *all == seen[0]), "{seen:?}");
    }
}

#[test]
fn a_conversion_that_fails_leaves_everything_as_it_was() {
    let Some(server) = PostgresServer::start() else { return };
    let url = written_by(&server, 1);
    let mut client = Client::connect(&url, NoTls).unwrap();
    // In the way of the last step.
    client.batch_execute("CREATE TABLE signalbox.notifications (a INT)").unwrap();
    let error = PostgresStore::open(&url).map(|_| ()).unwrap_err();
    assert!(matches!(&error, StoreError::Other(why) if why.contains("already exists")), "{error}");
    assert_eq!(version(&url), "1");
    let words = client.query_one("SELECT count(words) FROM signalbox.tape_entries", &[]).unwrap();
    assert!(words.get::<_, i64>(0) > 0, "the first step was taken back");
    client.batch_execute("DROP TABLE signalbox.notifications").unwrap();
    let store = PostgresStore::open(&url).unwrap();
    let mut writer = store.begin(&crate::make::tape("after", 1)).unwrap();
    writer.append(&call(1, 1, "echo", "success", 5), false).unwrap();
    assert_eq!(places(&store, &Query { tape: Some("after".into()), ..all() }), [1, 2, 3, 4, 5]);
}
