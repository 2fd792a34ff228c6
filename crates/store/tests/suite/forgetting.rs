//! Removing and pruning.

use crate::house::House;
use crate::make::{SECOND, all, body, call, entry, find, keep, message, places, request, tape};
use bytes::Bytes;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, Query, Retention, TapeStore};
use std::time::Duration;

const DAY: u64 = 24 * 3_600 * SECOND;

fn ids(store: &dyn TapeStore) -> Vec<String> {
    store.tapes().unwrap().into_iter().map(|(tape, _)| tape.id).collect()
}

pub fn a_removed_tape_is_gone_and_the_others_are_not(house: &House) {
    let store = house.open();
    for id in ["a", "b"] {
        keep(&*store, id, &(0..100).flat_map(|n| call(5 * n + 1, n + 1, "echo", "error", 5)).collect::<Vec<_>>());
    }
    store.remove("a").unwrap();
    assert_eq!(ids(&*store), ["b"]);
    assert_eq!(find(&*store, &all()).hits.len(), 500);
    let found = find(&*store, &Query { text: Some("answer".into()), ..all() });
    assert!(found.hits.len() == 100 && found.hits.iter().all(|hit| hit.tape == "b"));
    assert_eq!(store.stats(None).unwrap().total.count, 100);
    assert!(store.sessions("a").is_err());
    keep(&*store, "a", &[request(1, "again")]);
    assert_eq!(find(&*store, &Query { tape: Some("a".into()), ..all() }).hits.len(), 1, "its name is free again");
}

pub fn a_tape_that_is_removed_while_it_is_written_goes_on(house: &House) {
    let store = house.open();
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    writer.append(&call(1, 1, "echo", "success", 5), false).unwrap();
    store.remove("t").unwrap();
    assert_eq!(ids(&*store), [""; 0]);
    writer.append(&call(6, 2, "echo", "success", 5), false).unwrap();
    writer.end(9, None).unwrap();
    assert_eq!(places(&*store, &all()), [6, 7, 8, 9, 10]);
    assert_eq!(places(&*store, &Query { subject: Some("echo".into()), ..all() }), [6, 7, 8, 9, 10]);
}

pub fn a_tape_that_is_removed_after_it_was_indexed_is_indexed_again(house: &House) {
    let store = house.open();
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    for part in 0..2 {
        for batch in (part * 1_000..(part + 1) * 1_000).collect::<Vec<u64>>().chunks(100) {
            let entries: Vec<Entry> = batch.iter().flat_map(|n| call(5 * n + 1, n + 1, "echo", "success", 5)).collect();
            writer.append(&entries, false).unwrap();
        }
        while writer.idle().unwrap() {}
        if part == 0 {
            store.remove("t").unwrap();
        }
    }
    writer.end(9, None).unwrap();
    let text = |text: &str| places(&*store, &Query { text: Some(text.into()), ..all() });
    assert_eq!(text("answer"), (1_000..2_000).map(|n| 5 * n + 3).collect::<Vec<u64>>());
    assert_eq!(text("\"answer 1500\""), [5 * 1_499 + 3]);
    assert_eq!(text("\"answer 500\""), [0; 0]);
    assert_eq!(store.stats(None).unwrap().total.count, 1_000);
}

/// Proves S-70 and SO-9.
pub fn what_is_too_old_goes(house: &House) {
    let store = house.open();
    let at = |day: u64, seq: u64| Entry { at: day * DAY + seq, ..request(seq, "{\"a\":\"word\"}") };
    keep(&*store, "old", &[at(1, 1), at(2, 2)]);
    keep(&*store, "both", &[at(5, 1), at(20, 2), at(39, 3)]);
    let mut live = store.begin(&tape("live", DAY)).unwrap();
    live.append(&[at(10, 1), at(11, 2)], false).unwrap();
    let mut quiet = store.begin(&tape("quiet", 39 * DAY)).unwrap();
    quiet.append(&[at(39, 1)], false).unwrap();

    let retention =
        Retention { max_age: Some(Duration::from_secs(20 * 24 * 3_600)), dry_run: true, ..Retention::default() };
    let told = store.prune(&retention, 40 * DAY).unwrap();
    assert_eq!((told.tapes.as_slice(), told.entries), (["live".to_owned(), "old".to_owned()].as_slice(), 5));
    assert_eq!(ids(&*store).len(), 4, "it only says so");
    assert_eq!(find(&*store, &all()).hits.len(), 8);

    let done = store.prune(&Retention { dry_run: false, ..retention }, 40 * DAY).unwrap();
    assert_eq!((&done.tapes, done.entries), (&told.tapes, told.entries));
    assert_eq!(ids(&*store), ["quiet", "both"]);
    let both = Query { tape: Some("both".into()), ..all() };
    assert_eq!(places(&*store, &both), [2, 3]);
    assert_eq!(places(&*store, &Query { text: Some("word".into()), ..both }), [2, 3]);
    assert_eq!(store.tapes().unwrap()[1].1, 2);
    assert_eq!(store.stats(Some("both")).unwrap().messages[0].1, 2);
    assert_eq!(store.prune(&Retention { dry_run: false, ..retention }, 40 * DAY).unwrap().entries, 0);

    // One that is written stays, though its entries go.
    let soon = Retention { max_age: Some(Duration::from_secs(1)), ..Retention::default() };
    let done = store.prune(&soon, 41 * DAY).unwrap();
    assert_eq!(done.tapes, ["both"]);
    assert_eq!(ids(&*store), ["quiet"]);
    assert_eq!(places(&*store, &all()), [0; 0]);
    quiet.append(&[at(42, 2)], false).unwrap();
    assert_eq!(places(&*store, &all()), [2]);
    // And the one that went, because it was silent for weeks, comes back when it is written again.
    live.append(&[at(43, 3)], false).unwrap();
    assert_eq!(ids(&*store), ["quiet", "live"]);
}

pub fn what_is_too_much_goes_oldest_first(house: &House) {
    let store = house.open();
    let noise = |seq: u64, n: u64| {
        format!("{:x}", u128::from(seq * 131 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    };
    let large = |seq: u64| Entry { at: seq, ..request(seq, &(0..30).map(|n| noise(seq, n)).collect::<String>()) };
    for id in ["a", "b", "c"] {
        let start = [("a", 0), ("b", 10_000), ("c", 20_000)].iter().find(|(name, _)| *name == id).unwrap().1;
        let entries: Vec<Entry> = (1..=3_000).map(|seq| Entry { at: start + seq, ..large(seq) }).collect();
        keep(&*store, id, &entries);
    }
    let size = |most: u64, dry_run| Retention { max_bytes: Some(most), dry_run, ..Retention::default() };
    assert_eq!(store.prune(&size(u64::MAX, false), 1).unwrap().entries, 0);
    let most = 3 << 20;
    let told = store.prune(&size(most, true), 30_000).unwrap();
    assert!(told.tapes.contains(&"a".to_owned()) && told.bytes > 0 && told.entries >= 3_000, "{told:?}");
    assert_eq!(ids(&*store), ["c", "b", "a"]);
    let done = store.prune(&size(most, false), 30_000).unwrap();
    assert!(done.tapes.contains(&"a".to_owned()) && done.bytes > 0, "{done:?}");
    assert!(!done.tapes.contains(&"c".to_owned()), "the newest is small enough to stay");
    let left = places(&*store, &Query { tape: Some("c".into()), ..all() });
    assert_eq!(left.last(), Some(&3_000));
    assert!(left.is_sorted());
    let again = store.prune(&size(most, true), 30_000).unwrap();
    assert_eq!(again.entries, 0, "nothing is too much now");
    store.prune(&size(1, false), 30_000).unwrap();
    assert_eq!(find(&*store, &all()).hits.len(), 0);
}

pub fn a_body_whose_base_went_is_still_whole(house: &House) {
    let store = house.open();
    let list = format!("{{\"tools\":[{}]}}", "\"tool with a name\",".repeat(40));
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    let like = |seq: u64, base: u64, middle: &'static str| {
        let prefix = list.len() as u64 - 1;
        let body = Body::Like { seq: base, prefix, suffix: 1, middle: Bytes::from_static(middle.as_bytes()) };
        entry(seq, Content::Message(MessageEntry { body, ..message("tools/list", "") }))
    };
    let mut entries = vec![request(1, &list), like(2, 1, "")];
    entries.extend((3..=3_000).map(|seq| if seq % 500 == 7 { like(seq, 1, "X") } else { request(seq, "{}") }));
    entries.extend([like(3_001, 1, ""), like(3_002, 1, "Y")]);
    for batch in entries.chunks(500) {
        writer.append(batch, false).unwrap();
    }
    let before = find(&*store, &all()).hits;
    for below in [2, 600, 2_900] {
        let now = below * SECOND + 1_000 * SECOND;
        let retention = Retention { max_age: Some(Duration::from_secs(1_000)), ..Retention::default() };
        store.prune(&retention, now).unwrap();
        let after = find(&*store, &all()).hits;
        assert_eq!(after.first().map(|hit| hit.entry.seq), Some(below));
        for hit in after {
            let old = &before[hit.entry.seq as usize - 1];
            assert_eq!(body(&hit), body(old), "entry {} below {below}", hit.entry.seq);
        }
    }
}
