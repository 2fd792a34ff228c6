//! Writers.

use crate::house::House;
use crate::make::{all, call, find, places, request, tape};
use signalbox_engine::record::{Entry, Query, StoreError};

pub fn several_writers_write_at_once(house: &House) {
    let stores: Vec<_> = (0..4).map(|_| house.open()).collect();
    std::thread::scope(|scope| {
        for (number, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                let mut writer = store.begin(&tape(&format!("w{number}"), 1)).unwrap();
                for batch in 0..20 {
                    let entries: Vec<Entry> = (0..20)
                        .map(|n| batch * 20 + n)
                        .flat_map(|n| call(5 * n + 1, n + 1, "echo", "success", 5))
                        .collect();
                    writer.append(&entries, batch % 5 == 0).unwrap();
                    writer.idle().unwrap();
                }
                writer.end(1, None).unwrap();
            });
        }
    });
    for number in 0..4 {
        let tape = Some(format!("w{number}"));
        assert_eq!(places(&*stores[0], &Query { tape: tape.clone(), ..all() }), (1..=2_000).collect::<Vec<_>>());
        assert_eq!(places(&*stores[0], &Query { tape, text: Some("\"answer 77\"".into()), ..all() }), [383]);
    }
    assert_eq!(stores[1].stats(None).unwrap().total.count, 4 * 400);
}

/// Proves SO-9.
pub fn a_tape_that_ends_before_the_next_is_whole_and_searched_whole(house: &House) {
    let store = house.open();
    let entries: Vec<Entry> = (0..1_000).flat_map(|n| call(5 * n + 1, n + 1, "echo", "success", 5)).collect();
    let mut writer = store.begin(&tape("first", 1)).unwrap();
    writer.append(&entries, false).unwrap();
    writer.end_before_next(9, None).unwrap();
    assert!(writer.append(&[request(9_000, "late")], false).is_err(), "it has ended");
    let mut next = store.begin(&tape("next", 9)).unwrap();
    next.append(&entries[..5], false).unwrap();
    next.idle().unwrap();
    let found = |text: &str| places(&*store, &Query { tape: Some("first".into()), text: Some(text.into()), ..all() });
    assert_eq!((store.tape("first").unwrap().ended, found("\"answer 977\"")), (Some(9), vec![4_883]));
    next.end(10, None).unwrap();
    assert_eq!(found("\"answer 977\""), [4_883]);
}

pub fn a_batch_that_is_refused_leaves_nothing_and_the_next_one_is_kept(house: &House) {
    let store = house.open();
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    writer.append(&[], false).unwrap();
    writer.append(&[request(1, "a"), request(2, "b")], false).unwrap();
    for wrong in [vec![request(2, "again")], vec![request(3, "c"), request(3, "c")], vec![request(1 << 40, "far")]] {
        let error = writer.append(&wrong, false).unwrap_err();
        assert!(matches!(&error, StoreError::Query(why) if why.contains("does not follow entry")), "{error}");
    }
    assert_eq!(places(&*store, &all()), [1, 2]);
    writer.append(&[request(3, "c"), request(7, "after a gap")], false).unwrap();
    assert_eq!(places(&*store, &all()), [1, 2, 3, 7]);
    writer.end(9, None).unwrap();
    assert_eq!(writer.append(&[request(8, "late")], false).unwrap_err().to_string(), "tape t has ended");
}

pub fn a_batch_that_is_durable_is_there_for_others(house: &House) {
    let (store, other) = (house.open(), house.open());
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    for seq in 1..=20 {
        writer.append(&[request(seq, "{}")], seq % 2 == 0).unwrap();
        assert_eq!(find(&*other, &all()).hits.len() as u64, seq);
    }
}
