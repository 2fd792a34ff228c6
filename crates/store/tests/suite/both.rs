//! What is written to both stores is shown by both in the same way.

use crate::house::House;
use crate::make::{SECOND, all, call, finished, keep, message, request, tape};
use crate::postgres_server::PostgresServer;
use crate::version_2;
use signalbox_engine::record::{Content, Entry, MessageKind, Query, Retention, Stats, TapeInfo, TapeStore};
use std::time::Duration;

/// Tapes of every sort: one with all that a tape can hold, one of many calls, some whose clocks went backwards.
fn write(store: &dyn TapeStore) {
    store.import(&version_2::info(), &mut version_2::entries().into_iter().map(Ok)).unwrap();
    let outcome = |n: u64| ["success", "error", "timeout"][(n % 7 % 3) as usize];
    let calls: Vec<Entry> = (0..400).flat_map(|n| call(5 * n + 1, n + 1, "echo", outcome(n), n * 1_000_000)).collect();
    keep(store, "calls", &calls);
    for (number, id) in ["x", "y", "z"].into_iter().enumerate() {
        let number = number as u64;
        let at = |seq: u64| (seq * 37 + number * 11) % 100;
        let entries: Vec<Entry> =
            (1..=60).map(|seq| Entry { at: at(seq), ..request(seq, "{\"a\":\"a word\"}") }).collect();
        keep(store, id, &entries);
    }
    let info = TapeInfo { parent: Some("calls".into()), redaction: vec!["key a".into()], ..tape("open", 3) };
    let mut writer = store.begin(&info).unwrap();
    let mut other = message("notifications/message", "{\"level\":\"info\"}");
    other.kind = MessageKind::Notification;
    let end = finished("tools/list", None, "success", 9);
    for (place, content) in [Content::Message(other), Content::Finished(end)].into_iter().enumerate() {
        let entry = Entry::new(place as u64 + 1, 5, "a \0\\ b".into(), content);
        writer.append(&[entry], place == 1).unwrap();
    }
}

fn queries() -> Vec<Query> {
    let text = |text: &str| Some(text.to_owned());
    let mut queries = vec![
        all(),
        Query::default(),
        Query { text: text("word"), ..all() },
        Query { text: text("\"answer 77\""), ..all() },
        Query { outcome: text("timeout"), ..all() },
        Query { slower_than: Some(200_000_000), only_ends: true, ..all() },
        Query { since: Some(20), until: Some(60), ..all() },
        Query { since: Some(20), limit: Some(13), text: text("word"), ..all() },
        Query { methods: vec!["notifications/*".into()], ..all() },
        Query { backend: text("math"), ..all() },
        Query { principal: text("a \0\\ b"), ..all() },
        Query { session: Some(1), limit: Some(50), ..all() },
        Query { exchange: Some(2), ..all() },
        Query { error_code: Some(-32602), limit: Some(20), ..all() },
    ];
    queries.extend((1..=40).map(|limit| Query { limit: Some(limit * 5), ..all() }));
    for id in ["t", "x", "calls", "open"] {
        queries.push(Query { tape: text(id), after: Some(3), limit: Some(10), ..all() });
    }
    let backwards = queries.clone().into_iter().map(|query| Query { newest_first: true, ..query });
    queries.extend(backwards.collect::<Vec<_>>());
    queries
}

/// Each store packs bodies in its own way.
fn without_size(stats: Stats) -> Stats {
    Stats { bytes: (stats.bytes.0, 0), ..stats }
}

fn compare(sqlite: &dyn TapeStore, postgres: &dyn TapeStore) {
    let tapes = sqlite.tapes().unwrap();
    assert_eq!(postgres.tapes().unwrap(), tapes);
    for query in queries() {
        let (one, other) = (sqlite.find(&query), postgres.find(&query));
        let places = |page: &signalbox_engine::record::EntryPage| -> Vec<(String, u64)> {
            page.hits.iter().map(|hit| (hit.tape.clone(), hit.entry.seq)).collect()
        };
        if let (Ok(one), Ok(other)) = (&one, &other) {
            assert_eq!(places(one), places(other), "{query:?}");
        }
        assert_eq!(one, other, "{query:?}");
    }
    for (info, _) in &tapes {
        assert_eq!(sqlite.sessions(&info.id).unwrap(), postgres.sessions(&info.id).unwrap(), "{}", info.id);
        let stats = |store: &dyn TapeStore| without_size(store.stats(Some(&info.id)).unwrap());
        assert_eq!(stats(sqlite), stats(postgres), "{}", info.id);
    }
    assert_eq!(without_size(sqlite.stats(None).unwrap()), without_size(postgres.stats(None).unwrap()));
}

/// Tapes of version 2 too.
/// Proves S-15, S-16, S-28, S-29, S-30 and S-71.
#[test]
fn both_stores_keep_and_show_the_same() {
    let Some(server) = PostgresServer::start() else { return };
    let (sqlite, postgres) = (House::sqlite(), House::postgres(&server));
    write(&*sqlite.open());
    write(&*postgres.open());
    compare(&*sqlite.open(), &*postgres.open());
    let old = Retention { max_age: Some(Duration::from_secs(1_500)), ..Retention::default() };
    for house in [&sqlite, &postgres] {
        house.open().remove("x").unwrap();
    }
    compare(&*sqlite.open(), &*postgres.open());
    for house in [&sqlite, &postgres] {
        let pruned = house.open().prune(&old, 2_000 * SECOND).unwrap();
        assert_eq!((pruned.entries, pruned.tapes.len()), (499 + 11 + 120 + 2, 2), "{pruned:?}");
    }
    compare(&*sqlite.open(), &*postgres.open());
}
