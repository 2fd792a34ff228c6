//! Queries.

use crate::house::House;
use crate::make::{SECOND, all, call, entry, find, finished, keep, message, places, request, tape};
use signalbox_engine::record::{Content, Entry, MessageEntry, Query, StoreError};

/// Three calls with everything different between them, and what belongs to no call.
fn mixed() -> Vec<Entry> {
    let mut entries = call(1, 1, "echo", "success", 5);
    entries.extend(call(6, 2, "weather", "error", 300_000_000));
    entries.extend(call(11, 3, "echo", "timeout", 50_000_000));
    for entry in &mut entries[5..10] {
        entry.principal = "ann".into();
        entry.session = Some(2);
    }
    entries.push(entry(16, Content::Message(MessageEntry { backend: Some("c".into()), ..message("ping", "{}") })));
    entries.push(entry(17, Content::Message(message("resources/list", "{}"))));
    entries.push(entry(18, Content::Message(message("resources/read", "{}"))));
    entries
}

fn check(house: &House, cases: Vec<(&str, Query, Vec<u64>)>) {
    let store = house.open();
    keep(&*store, "t", &mixed());
    for (what, query, expected) in cases {
        assert_eq!(places(&*store, &query), expected, "{what}");
        let backwards = Query { newest_first: true, ..query };
        assert_eq!(places(&*store, &backwards), expected.into_iter().rev().collect::<Vec<_>>(), "{what}, newest first");
    }
}

/// Proves S-35 and SO-11.
pub fn each_field_of_a_query_narrows_it(house: &House) {
    let text = |text: &str| Some(text.to_owned());
    check(
        house,
        vec![
            ("nothing", all(), (1..=18).collect()),
            ("tape", Query { tape: text("t"), ..all() }, (1..=18).collect()),
            ("session", Query { session: Some(2), ..all() }, vec![6, 7, 8, 9, 10]),
            ("no session", Query { session: Some(9), ..all() }, vec![]),
            ("exchange", Query { exchange: Some(3), ..all() }, vec![11, 12, 13, 14, 15]),
            ("no exchange", Query { exchange: Some(4), ..all() }, vec![]),
            ("method", Query { methods: vec!["ping".into()], ..all() }, vec![16]),
            ("methods", Query { methods: vec!["ping".into(), "resources/read".into()], ..all() }, vec![16, 18]),
            ("any rest", Query { methods: vec!["resources/*".into()], ..all() }, vec![17, 18]),
            ("any", Query { methods: vec!["*".into()], ..all() }, (1..=18).collect()),
            ("no method", Query { methods: vec!["resources".into()], ..all() }, vec![]),
            ("subject", Query { subject: text("weather"), ..all() }, vec![6, 7, 8, 9, 10]),
            ("no subject", Query { subject: text("weath"), ..all() }, vec![]),
            ("backend", Query { backend: text("c"), ..all() }, vec![16]),
            ("principal", Query { principal: text("ann"), ..all() }, vec![6, 7, 8, 9, 10]),
            ("outcome", Query { outcome: text("timeout"), ..all() }, vec![11, 12, 13, 14, 15]),
            ("good outcome", Query { outcome: text("success"), ..all() }, vec![1, 2, 3, 4, 5]),
            ("no outcome", Query { outcome: text("lost"), ..all() }, vec![]),
            ("error code", Query { error_code: Some(-32602), ..all() }, vec![8, 9]),
            ("no error code", Query { error_code: Some(32602), ..all() }, vec![]),
            ("slow", Query { slower_than: Some(50_000_000), ..all() }, (6..=15).collect()),
            ("very slow", Query { slower_than: Some(300_000_000), ..all() }, (6..=10).collect()),
            ("slowest", Query { slower_than: Some(u64::MAX), ..all() }, vec![]),
            ("ends", Query { only_ends: true, ..all() }, vec![5, 10, 15]),
            ("ends, tool", Query { only_ends: true, subject: text("echo"), ..all() }, vec![5, 15]),
            ("since", Query { since: Some(17 * SECOND), ..all() }, vec![17, 18]),
            ("until", Query { until: Some(3 * SECOND), ..all() }, vec![1, 2]),
            ("never", Query { until: Some(0), ..all() }, vec![]),
            ("text", Query { text: text("weather"), ..all() }, vec![6]),
        ],
    );
}

pub fn fields_of_a_query_narrow_it_together(house: &House) {
    let text = |text: &str| Some(text.to_owned());
    let between = Query { since: Some(4 * SECOND), until: Some(13 * SECOND), ..all() };
    check(
        house,
        vec![
            ("between", between.clone(), (4..=12).collect()),
            ("between, tool", Query { subject: text("echo"), ..between.clone() }, vec![4, 5, 11, 12]),
            ("outcome, tool", Query { outcome: text("timeout"), subject: text("weather"), ..all() }, vec![]),
            ("text, outcome", Query { text: text("answer"), outcome: text("error"), ..all() }, vec![8]),
            ("text, good outcome", Query { text: text("answer"), outcome: text("success"), ..all() }, vec![3]),
            ("text, time", Query { text: text("answer"), since: Some(9 * SECOND), ..all() }, vec![13]),
            ("text, method", Query { text: text("answer"), methods: vec!["tools/*".into()], ..all() }, vec![3, 8, 13]),
            ("text, exchange", Query { text: text("answer"), exchange: Some(2), ..all() }, vec![8]),
            (
                "all",
                Query {
                    text: text("answer"),
                    tape: text("t"),
                    session: Some(2),
                    exchange: Some(2),
                    methods: vec!["tools/call".into()],
                    subject: text("weather"),
                    backend: text("b"),
                    principal: text("ann"),
                    outcome: text("error"),
                    error_code: Some(-32602),
                    slower_than: Some(1),
                    since: Some(1),
                    until: Some(100 * SECOND),
                    ..all()
                },
                vec![8],
            ),
        ],
    );
}

pub fn entries_come_in_order_and_page_by_page(house: &House) {
    let store = house.open();
    let entries: Vec<Entry> = (0..60).flat_map(|n| call(5 * n + 1, n + 1, "echo", "success", 5)).collect();
    keep(&*store, "t", &entries);
    for (text, newest_first) in [(None, false), (None, true), (Some("answer"), false), (Some("answer"), true)] {
        let query = Query { text: text.map(str::to_owned), newest_first, ..all() };
        let expected = places(&*store, &query);
        assert_eq!(expected.len(), if text.is_some() { 60 } else { 300 });
        assert!(expected.is_sorted_by(|a, b| if newest_first { a > b } else { a < b }));
        let mut paged = Vec::new();
        loop {
            let after = paged.last().copied();
            let page = find(&*store, &Query { after, limit: Some(7), ..query.clone() });
            assert!(page.hits.len() == 7 || !page.more);
            paged.extend(page.hits.iter().map(|hit| hit.entry.seq));
            if !page.more {
                break;
            }
        }
        assert_eq!(paged, expected, "{text:?} {newest_first}");
    }
    let exact = find(&*store, &Query { limit: Some(300), ..all() });
    assert_eq!((exact.hits.len(), exact.more), (300, false));
}

pub fn messages_of_an_exchange_are_found_by_how_it_ended(house: &House) {
    let store = house.open();
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    // Two calls at the same time, over several batches; the second never ends.
    let one = call(1, 1, "echo", "cancelled", 500_000_000);
    let mut two = call(6, 2, "echo", "success", 5);
    two.pop();
    writer.append(&[one[0].clone(), one[1].clone()], false).unwrap();
    assert_eq!(places(&*store, &Query { exchange: Some(1), ..all() }), [1, 2], "it is found before it ends");
    let late = |entry: &Entry, seq| Entry { seq, ..entry.clone() };
    writer.append(&[late(&two[0], 3), late(&one[4], 4), late(&two[1], 5)], false).unwrap();
    let ended = |outcome: &str| places(&*store, &Query { outcome: Some(outcome.into()), ..all() });
    assert_eq!(ended("cancelled"), [1, 2, 4]);
    assert_eq!(ended("success"), [0; 0]);
    assert_eq!(places(&*store, &Query { slower_than: Some(1), ..all() }), [1, 2, 4]);
    writer.end(9, None).unwrap();
    assert_eq!(ended("cancelled"), [1, 2, 4]);
}

pub fn several_tapes_are_one_stream_by_time(house: &House) {
    let store = house.open();
    let timed = |seq: u64, at: u64| Entry { at, ..request(seq, "{}") };
    keep(&*store, "a", &[timed(1, 10), timed(2, 30), timed(3, 50)]);
    keep(&*store, "b", &[timed(1, 20), timed(2, 40)]);
    keep(&*store, "c", &[timed(1, 5)]);
    let seen = |query: &Query| {
        let hits = find(&*store, query).hits;
        hits.iter().map(|hit| format!("{}{}", hit.tape, hit.entry.seq)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(seen(&all()), "c1 a1 b1 a2 b2 a3");
    assert_eq!(seen(&Query { newest_first: true, ..all() }), "a3 b2 a2 b1 a1 c1");
    assert_eq!(seen(&Query { newest_first: true, limit: Some(3), ..all() }), "a3 b2 a2");
    assert_eq!(seen(&Query { limit: Some(2), ..all() }), "c1 a1");
    assert_eq!(seen(&Query { since: Some(20), until: Some(50), ..all() }), "b1 a2 b2");
    let error = store.find(&Query { after: Some(1), ..all() }).unwrap_err();
    assert_eq!(error, StoreError::Query("name the tape: a position belongs to one tape".into()));
    assert_eq!(seen(&Query { tape: Some("a".into()), after: Some(1), ..all() }), "a2 a3");
    assert!(matches!(store.find(&Query { tape: Some("z".into()), ..all() }), Err(StoreError::NoTape(_))));
}

pub fn a_tape_whose_clock_went_backwards_is_found_by_time_all_the_same(house: &House) {
    let store = house.open();
    let timed = |seq: u64, at: u64| Entry { at, ..request(seq, "{\"a\":\"word\"}") };
    keep(&*store, "t", &[timed(1, 100), timed(2, 50), timed(3, 70), timed(4, 10), timed(5, 200)]);
    let query = Query { since: Some(50), until: Some(101), ..all() };
    assert_eq!(places(&*store, &query), [1, 2, 3]);
    assert_eq!(places(&*store, &Query { text: Some("word".into()), newest_first: true, ..query }), [3, 2, 1]);
}

pub fn a_tape_keeps_its_order_among_others_whatever_its_clock_did(house: &House) {
    let store = house.open();
    let timed = |seq: u64, at: u64| Entry { at, ..request(seq, "{}") };
    keep(&*store, "a", &[timed(1, 100), timed(2, 10), timed(3, 120)]);
    keep(&*store, "b", &[timed(1, 50), timed(2, 105)]);
    keep(&*store, "c", &[timed(1, 20), timed(2, 110)]);
    let seen = |query: &Query| {
        let hits = find(&*store, query).hits;
        hits.iter().map(|hit| format!("{}{}", hit.tape, hit.entry.seq)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(seen(&all()), "c1 b1 a1 a2 b2 c2 a3");
    assert_eq!(seen(&Query { newest_first: true, ..all() }), "a3 c2 b2 b1 c1 a2 a1");
    assert_eq!(seen(&Query { limit: Some(4), ..all() }), "c1 b1 a1 a2");
    assert_eq!(seen(&Query { newest_first: true, limit: Some(4), ..all() }), "a3 c2 b2 b1");
}

pub fn limits_are_kept(house: &House) {
    let store = house.open();
    let entries: Vec<Entry> =
        (1..=150).map(|seq| entry(seq, Content::Finished(finished("ping", None, "success", 1)))).collect();
    keep(&*store, "t", &entries);
    let page = find(&*store, &Query::default());
    assert_eq!((page.hits.len(), page.more), (100, true));
    let none = find(&*store, &Query { limit: Some(0), ..all() });
    assert_eq!((none.hits.len(), none.more), (0, true));
    let large = "x".repeat(9 << 20);
    keep(&*store, "large", &(1..=12).map(|seq| request(seq, &large)).collect::<Vec<_>>());
    let page = find(&*store, &Query { tape: Some("large".into()), ..all() });
    assert!(page.more && (7..=8).contains(&page.hits.len()), "{} hits of 9 MiB", page.hits.len());
    let rest = find(&*store, &Query { tape: Some("large".into()), after: Some(page.hits.len() as u64), ..all() });
    assert_eq!((page.hits.len() + rest.hits.len(), rest.more), (12, false));
}

/// Proves S-36.
pub fn the_index_and_what_is_behind_it_find_the_same(house: &House) {
    let store = house.open();
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    let mut expected = Vec::new();
    for batch in 0..25u64 {
        let entries: Vec<Entry> = (0..100)
            .map(|n| batch * 100 + n)
            .flat_map(|n| call(5 * n + 1, n + 1, if n % 97 == 0 { "rare" } else { "echo" }, "success", 5))
            .collect();
        expected.extend((0..100).map(|n| batch * 100 + n).filter(|n| n % 97 == 0).map(|n| 5 * n + 1));
        writer.append(&entries, false).unwrap();
        if batch % 2 == 1 {
            while writer.idle().unwrap() {}
        }
        let found = |query: Query| places(&*store, &query);
        assert_eq!(found(Query { text: Some("rare".into()), ..all() }), expected, "batch {batch}");
        let tool = found(Query { subject: Some("rare".into()), ..all() });
        assert_eq!(tool.len(), expected.len() * 5, "batch {batch}");
        let newest = found(Query { text: Some("rare".into()), newest_first: true, limit: Some(1), ..all() });
        assert_eq!(newest.first(), expected.last());
    }
}
