//! How much room tapes take, and what goes where that is too much.

use crate::house::House;
use crate::make::{all, entry, find, keep, places, request, tape};
use signalbox_engine::record::{Content, Entry, Gap, Query, Retention, SessionInfo, TapeStore};

/// Text that hardly becomes smaller.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..length).map(|_| next()).collect()
}

fn noisy(seq: u64) -> Entry {
    Entry { at: seq, ..request(seq, &noise(seq, 1_000)) }
}

/// A session whose client has a very long name, and its end.
fn session(number: u64, seq: u64) -> [Entry; 2] {
    let info = SessionInfo { client: Some(noise(number, 200_000)), transport: "http".into(), ..SessionInfo::default() };
    [Content::Session(info), Content::SessionEnded].map(|content| {
        let seq = if matches!(content, Content::SessionEnded) { seq + 1 } else { seq };
        Entry { session: Some(number), at: seq, ..entry(seq, content) }
    })
}

fn size(most: u64) -> Retention {
    Retention { max_bytes: Some(most), ..Retention::default() }
}

fn is_enough(store: &dyn TapeStore, most: u64) -> bool {
    let told = store.prune(&Retention { dry_run: true, ..size(most) }, 1_000_000).unwrap();
    told.entries == 0 && told.tapes.is_empty()
}

pub fn what_clients_say_of_themselves_is_counted(house: &House) {
    let store = house.open();
    let later = |entry: Entry, by: u64| Entry { at: entry.at + by, ..entry };
    keep(&*store, "a", &(1..=300).map(noisy).collect::<Vec<_>>());
    let sessions = (1..=20).flat_map(|number| session(number, 2 * number));
    keep(&*store, "g", &sessions.map(|entry| later(entry, 10_000)).collect::<Vec<_>>());
    keep(&*store, "z", &(1..=1_500).map(|seq| later(noisy(seq), 20_000)).collect::<Vec<_>>());
    let most = 4 << 20;
    let done = store.prune(&size(most), 1_000_000).unwrap();
    assert_eq!(done.tapes, ["a"], "the oldest first");
    let of = |id: &str| find(&*store, &Query { tape: Some(id.into()), ..all() }).hits.len();
    assert!((1..40).contains(&of("g")), "of the large one as much as needed, not {}", of("g"));
    assert_eq!(of("z"), 1_500, "what is newer stays whole");
    assert!(is_enough(&*store, most));
}

pub fn sessions_that_are_over_go_with_their_entries(house: &House) {
    let store = house.open();
    let mut writer = store.begin(&tape("live", 1)).unwrap();
    for number in 1..=20 {
        writer.append(&session(number, 2 * number), false).unwrap();
    }
    let [open, _] = session(21, 42);
    writer.append(&[open], false).unwrap();
    writer.append(&(43..=1_042).map(noisy).collect::<Vec<_>>(), false).unwrap();
    let most = 2 << 20;
    store.prune(&size(most), 2_000).unwrap();
    assert!(is_enough(&*store, most));
    let left = places(&*store, &all());
    assert!(left.len() > 500 && left.last() == Some(&1_042), "{} entries are left", left.len());
    let sessions: Vec<u64> = store.sessions("live").unwrap().into_iter().map(|(number, _)| number).collect();
    assert_eq!(sessions, [21], "one that goes on is still known");
}

pub fn a_tape_that_is_too_large_alone_loses_its_oldest_entries_and_says_so(house: &House) {
    let store = house.open();
    let mut writer = store.begin(&tape("live", 1)).unwrap();
    for batch in (1..=4_000).collect::<Vec<u64>>().chunks(500) {
        writer.append(&batch.iter().copied().map(noisy).collect::<Vec<_>>(), false).unwrap();
    }
    let mut last = 4_000;
    for most in [2 << 20, 2 << 20, 1 << 20] {
        store.prune(&size(most), 10_000).unwrap();
        assert!(is_enough(&*store, most));
        let hits = find(&*store, &all()).hits;
        let kept = hits.len() as u64 - 1;
        let gap = Gap { facts: last - kept, reason: "pruned".into() };
        assert_eq!(hits[0].entry.content, Content::Gap(gap), "of {last} entries {kept} are left");
        assert_eq!((hits[0].entry.seq, hits[0].entry.at), (last - kept, last - kept + 1));
        assert!(hits[1..].iter().all(|hit| matches!(hit.entry.content, Content::Message(_))));
        assert_eq!(hits.last().map(|hit| hit.entry.seq), Some(last));
        assert_eq!(store.stats(None).unwrap().gaps, last - kept);
        assert_eq!(store.tapes().unwrap()[0].1, kept + 1);
        writer.append(&(1..=100).map(|n| noisy(last + n)).collect::<Vec<_>>(), false).unwrap();
        last += 100;
    }
    writer.end(last, None).unwrap();
    let text = Query { text: Some(noise(last, 1_000)), ..all() };
    assert_eq!(places(&*store, &text), [last]);
}

pub fn a_store_stays_within_its_room_while_it_is_written(house: &House) {
    let most = 3 << 20;
    let store = house.open_limited_to(most);
    keep(&*store, "old", &(1..=500).map(noisy).collect::<Vec<_>>());
    let mut writer = store.begin(&tape("live", 600)).unwrap();
    for batch in (1..=8_000).collect::<Vec<u64>>().chunks(50) {
        writer
            .append(&batch.iter().map(|seq| Entry { at: 600 + seq, ..noisy(*seq) }).collect::<Vec<_>>(), false)
            .unwrap();
        assert!(is_enough(&*store, most), "after entry {:?}", batch.last());
    }
    writer.idle().unwrap();
    assert_eq!(store.tapes().unwrap().len(), 1, "the old one went first");
    let left = find(&*store, &all()).hits;
    assert!(left.len() > 1_000 && left.last().is_some_and(|hit| hit.entry.seq == 8_000), "{} are left", left.len());
    let missing = Gap { facts: 8_001 - left.len() as u64, reason: "pruned".into() };
    assert_eq!(left[0].entry.content, Content::Gap(missing));
}
