//! Statistics.

use crate::house::House;
use crate::make::{call, entry, finished, keep, message};
use signalbox_engine::record::{Content, Entry, Gap, MethodStats};

/// Proves S-30 and S-32.
pub fn statistics_are_what_a_hand_computes(house: &House) {
    let store = house.open();
    let mut entries = Vec::new();
    // A hundred calls that took 1 to 100, the last four failed in four ways.
    for n in 1..=100u64 {
        let outcome = ["success", "error", "timeout", "cancelled", "tool_error"][n.saturating_sub(96) as usize];
        let tool = if n <= 10 { "few" } else { "many" };
        entries.extend(call(5 * n, n, tool, outcome, n));
    }
    let end =
        Entry { exchange: Some(101), ..entry(600, Content::Finished(finished("ping", Some("no tool"), "success", 7))) };
    entries.extend([
        end,
        entry(601, Content::Gap(Gap { facts: 3, reason: "queue_full".into() })),
        entry(602, Content::Gap(Gap { facts: 4, reason: "disk".into() })),
        entry(603, Content::Message(message("ping", "12345"))),
    ]);
    keep(&*store, "t", &entries);
    let stats = store.stats(Some("t")).unwrap();
    let line = |count, errors, mean, p50, p95, p99| MethodStats {
        count,
        errors,
        mean,
        p50,
        p95,
        p99,
        bytes_in: 100 * count,
        bytes_out: 1_000 * count,
    };
    // 1, 2, …, 7, 7, …, 100: the 51st of 101, the 96th and the 100th.
    assert_eq!(stats.total, line(101, 4, 50, 50, 95, 99));
    assert_eq!(
        stats.methods,
        [("ping".to_owned(), line(1, 0, 7, 7, 7, 7)), ("tools/call".to_owned(), line(100, 4, 50, 50, 95, 99))]
    );
    assert_eq!(
        stats.tools,
        [("few".to_owned(), line(10, 0, 5, 5, 10, 10)), ("many".to_owned(), line(90, 4, 55, 55, 96, 100))]
    );
    let kinds = [("request", 201), ("notification", 0), ("result", 198), ("error", 2), ("raw", 0)];
    assert_eq!(stats.messages, kinds.map(|(kind, count)| (kind.to_owned(), count)));
    assert_eq!(stats.gaps, 7);
    let passed: u64 =
        entries.iter().map(|entry| if let Content::Message(m) = &entry.content { m.length } else { 0 }).sum();
    assert_eq!(stats.bytes.0, passed);
    assert!(stats.bytes.1 > 0 && stats.bytes.1 < passed, "{:?}", stats.bytes);
    assert_eq!(stats.total.tokens(), 101 * 1_100 / 4);
}

pub fn statistics_of_one_tape_and_of_all(house: &House) {
    let store = house.open();
    assert_eq!(store.stats(None).unwrap().total, MethodStats::default());
    keep(&*store, "a", &call(1, 1, "echo", "success", 10));
    keep(&*store, "b", &call(1, 1, "echo", "error", 20));
    let counts = |tape| {
        let stats = store.stats(tape).unwrap();
        (stats.total.count, stats.total.errors, stats.total.p99, stats.messages[0].1)
    };
    assert_eq!(counts(Some("a")), (1, 0, 10, 2));
    assert_eq!(counts(Some("b")), (1, 1, 20, 2));
    assert_eq!(counts(None), (2, 1, 20, 4));
}

pub fn durations_of_many_exchanges_are_told(house: &House) {
    let store = house.open();
    let end = |n: u64| Entry {
        exchange: Some(n),
        ..entry(n, Content::Finished(finished("ping", None, "success", n * 1_000)))
    };
    keep(&*store, "t", &(1..=70_000).map(end).collect::<Vec<_>>());
    let total = store.stats(None).unwrap().total;
    assert_eq!(total.count, 70_000);
    for (found, exact) in [(total.p50, 35_000_000), (total.p95, 66_500_000), (total.p99, 69_300_000)] {
        assert!(found >= exact && found <= exact + exact / 100, "{found} {exact}");
    }
}
