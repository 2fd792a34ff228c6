//! What is kept comes back.

use crate::house::House;
use crate::make::{all, body, call, entry, find, finished, keep, message, places, request, tape};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Body, Content, DecisionEntry, Entry, Gap, MessageEntry, MessageKind, Query, SessionInfo, StoreError, TapeInfo,
    TapeKind,
};
use std::sync::Arc;

/// Proves S-28 and S-29.
pub fn every_kind_of_entry_comes_back_as_it_was(house: &House) {
    let session = SessionInfo {
        external: Some("s-1".into()),
        client: Some("café".into()),
        client_version: None,
        revision: Some("2025-11-25".into()),
        transport: "http".into(),
        ..SessionInfo::default()
    };
    let decision = Arc::new(DecisionEntry {
        by: "rules".into(),
        rule: Some("no-rm".into()),
        phase: "request".into(),
        verdict: "refuse".into(),
        detail: "a long explanation, ".repeat(20),
        conditions: [("tool = \"rm\"".into(), true), ("principal = x".into(), false)].into(),
        inputs: vec![("random".into(), "0.25".into())],
        redacted: false,
    });
    let mut entries = vec![
        entry(1, Content::Session(session)),
        entry(2, Content::Decisions(vec![decision.clone(), decision])),
        entry(3, Content::Finished(finished("tools/call", None, "denied", u64::MAX >> 1))),
        entry(4, Content::Gap(Gap { facts: 12, reason: "queue_full".into() })),
        entry(5, Content::SessionEnded),
    ];
    for point in [Point::ClientIn, Point::BackendOut, Point::BackendIn, Point::ClientOut] {
        for kind in MessageKind::ALL {
            let seq = entries.len() as u64 + 1;
            let content = MessageEntry { point, kind, error_code: Some(-32_000), ..message("ping", "{}") };
            entries.push(Entry {
                session: None,
                principal: "ä \0\\0 b".into(),
                ..entry(seq, Content::Message(content))
            });
        }
    }
    let left = MessageEntry { method: None, body: Body::Left, length: 77, ..message("", "") };
    entries.push(entry(entries.len() as u64 + 1, Content::Message(left)));
    let store = house.open();
    keep(&*store, "t", &entries);
    let found: Vec<Entry> = find(&*store, &all()).hits.into_iter().map(|hit| hit.entry).collect();
    assert_eq!(found, entries);
}

pub fn bodies_that_refer_to_another_are_made_whole(house: &House) {
    let store = house.open();
    let like = |seq: u64, base: u64, prefix: u64, suffix: u64, middle: &'static str| {
        let body = Body::Like { seq: base, prefix, suffix, middle: Bytes::from_static(middle.as_bytes()) };
        entry(seq, Content::Message(MessageEntry { body, ..message("ping", "") }))
    };
    let long = "x".repeat(400);
    let long: &'static str = Box::leak(long.into_boxed_str());
    let entries = [
        request(1, "abcdef"),
        like(2, 1, 6, 0, ""),
        like(3, 1, 2, 1, "ZZ"),
        like(4, 1, 0, 3, long),
        like(5, 9, 1, 0, ""),
        like(6, 1, 6, 6, ""),
        like(7, 2, 1, 0, ""),
    ];
    keep(&*store, "t", &entries);
    let page = find(&*store, &all());
    let shown = |place: usize| body(&page.hits[place]);
    assert_eq!(&shown(1)[..], b"abcdef");
    assert_eq!(&shown(2)[..], b"abZZf");
    assert_eq!(shown(3), format!("{long}def"));
    for place in 4..7 {
        // The base is not there, is too short, or is no whole body itself.
        let Content::Message(message) = &page.hits[place].entry.content else { panic!() };
        assert_eq!(message.body, Body::Left, "{place}");
    }
}

/// Proves S-37.
pub fn bodies_of_every_size_and_sort_come_back(house: &House) {
    let store = house.open();
    let noise: Vec<u8> = (0..3_000_000u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let bodies: Vec<Bytes> = vec![
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"no json"),
        Bytes::from_static(b"\xff\xfe\x00 not UTF-8"),
        Bytes::from_static(b"{\"a\":\"\\u0000 \\ud800\"}"),
        Bytes::from(noise),
        Bytes::from("{\"text\":\"".to_owned() + &"large ".repeat(20 << 20 >> 2) + "\"}"),
    ];
    for (place, whole) in bodies.iter().enumerate() {
        let content = MessageEntry { length: whole.len() as u64, body: Body::Whole(whole.clone()), ..message("m", "") };
        keep(&*store, &format!("t{place}"), &[entry(1, Content::Message(content))]);
        let page = find(&*store, &Query { tape: Some(format!("t{place}")), ..all() });
        assert!(body(&page.hits[0]) == whole, "body {place} of {} bytes", whole.len());
    }
    let found = find(&*store, &Query { text: Some("large".into()), ..all() });
    assert_eq!(found.hits.len(), 1);
    assert_eq!(found.hits[0].tape, "t6");
    assert!(places(&*store, &Query { text: Some("UTF".into()), ..all() }).is_empty(), "what is no text has no words");
}

/// Proves S-31, S-34 and SO-8.
pub fn a_store_that_is_opened_again_has_everything(house: &House) {
    let info = TapeInfo {
        kind: TapeKind::Wrap,
        target: "npx -y server".into(),
        redaction: vec!["key password".into(), "path /a/b".into()],
        sampling: "share 0.1".into(),
        ..tape("t", 5)
    };
    let mut writer = house.open().begin(&info).unwrap();
    writer.append(&call(1, 1, "echo", "success", 5), false).unwrap();
    writer.end(99, None).unwrap();
    drop(writer);
    let store = house.open();
    assert_eq!(store.tapes().unwrap(), [(TapeInfo { ended: Some(99), ..info }, 5)]);
    assert_eq!(places(&*store, &all()), [1, 2, 3, 4, 5]);
    assert_eq!(places(&*store, &Query { text: Some("answer".into()), ..all() }), [3]);
}

pub fn a_tape_from_elsewhere_is_kept_whole_or_not_at_all(house: &House) {
    let store = house.open();
    let entries: Vec<Entry> = (0..300).flat_map(|n| call(5 * n + 1, n + 1, "echo", "success", 5)).collect();
    let info = TapeInfo { ended: Some(7), ..tape("far", 5) };
    let torn = StoreError::Other("the file is torn".into());
    let mut broken = entries.iter().take(1_200).cloned().map(Ok).chain([Err(torn.clone())]);
    assert_eq!(store.import(&info, &mut broken), Err(torn));
    assert_eq!(store.tapes().unwrap(), []);
    assert_eq!(places(&*store, &all()), [0; 0]);
    assert_eq!(store.stats(None).unwrap().total.count, 0);

    assert_eq!(store.import(&info, &mut entries.iter().cloned().map(Ok)), Ok(1_500));
    assert_eq!(store.tapes().unwrap(), [(info.clone(), 1_500)]);
    let found: Vec<u64> = places(&*store, &all());
    assert_eq!(found, (1..=1_500).collect::<Vec<_>>());
    assert_eq!(places(&*store, &Query { text: Some("\"answer 77\"".into()), ..all() }), [383]);

    let again = store.import(&info, &mut std::iter::empty()).unwrap_err();
    assert_eq!(again.to_string(), "tape far already exists");
    assert_eq!(store.tapes().unwrap().len(), 1);
}

/// Proves S-37.
pub fn many_small_bodies_come_back_after_a_dictionary_was_made(house: &House) {
    let store = house.open();
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    let text =
        |n: u64| format!("invoice {n} of {} was sent to the customer by the usual clerk on a {} day", n * 7, n % 31);
    for batch in 0..12 {
        let entries: Vec<Entry> = (1..=100).map(|n| batch * 100 + n).map(|seq| request(seq, &text(seq))).collect();
        writer.append(&entries, false).unwrap();
        while writer.idle().unwrap() {}
    }
    drop(writer);
    let page = find(&*house.open(), &all());
    assert_eq!(page.hits.len(), 1_200);
    for hit in &page.hits {
        assert_eq!(body(hit), text(hit.entry.seq));
    }
}
