//! What came with version 2 is kept: marks of messages, callers, backends, rules, losses, refusals and seals.

use crate::house::House;
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::fact::{HttpHead, TransportData};
use signalbox_engine::record::{
    BackendOffer, Body, ClientEntry, Content, DecisionEntry, Entry, FinishedEntry, LostEntry, MessageEntry,
    MessageKind, NotificationStats, Query, RefusedEntry, Retention, RulesEntry, SessionInfo, TapeInfo, TapeKind,
    TapeStore,
};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

pub fn info() -> TapeInfo {
    let info = TapeInfo::new("t".into(), TapeKind::Serve, "x".into(), 1);
    TapeInfo { parent: Some("before".into()), seal: Some([0, 1, 255].into()), ..info }
}

pub fn session() -> SessionInfo {
    SessionInfo {
        external: Some("hmac:00".into()),
        client: Some("agent".into()),
        transport: "http".into(),
        proof: Some("certificate".into()),
        claims: vec![("subject".into(), "CN=ann".into()), ("issuer".into(), String::new())],
        address: Some("10.0.0.7".into()),
        ..SessionInfo::default()
    }
}

fn message(point: Point, kind: MessageKind, method: &str) -> MessageEntry {
    let body = Body::Whole(Bytes::from_static(b"{}"));
    MessageEntry { method: Some(method.into()), ..MessageEntry::new(point, kind, 2, body) }
}

fn contents() -> Vec<Content> {
    let http = HttpHead {
        method: Some("POST".into()),
        url: Some("/mcp".into()),
        status: Some(202),
        headers: vec![("authorization".into(), "[redacted]".into())],
        redacted: true,
    };
    let decision = |redacted| Arc::new(DecisionEntry { by: "rules".into(), redacted, ..DecisionEntry::default() });
    vec![
        Content::Session(session()),
        Content::Client(ClientEntry { number: 300, info: session() }),
        Content::Backend(Box::new(BackendOffer {
            backend: "math".into(),
            view: "sessions".into(),
            revision: Some("2025-11-25".into()),
            hash: "00ff".into(),
            parts: vec![
                ("tools".into(), Bytes::from(vec![b'x'; 100_000])),
                ("server".into(), Bytes::from_static(b"\xff")),
            ],
            left: vec!["resources".into()],
            redacted: true,
        })),
        Content::Rules(RulesEntry { hash: "h".into(), text: "[]".repeat(1_000), redacted: true }),
        Content::Message(MessageEntry {
            number: u64::MAX,
            own: true,
            again: NonZeroU64::new(7),
            lost: Some("closed".into()),
            redacted: true,
            carried: Some(Arc::new(TransportData { event_id: Some("7_1".into()), http: Some(http) })),
            ..message(Point::ClientOut, MessageKind::Notification, "notifications/progress")
        }),
        Content::Message(message(Point::BackendIn, MessageKind::Notification, "notifications/progress")),
        Content::Lost(LostEntry { number: 9, point: Point::ClientOut, reason: "overflow".into() }),
        Content::Refused(RefusedEntry {
            status: Some(404),
            reason: "unknown_session".into(),
            detail: "no".into(),
            client: Some(300),
        }),
        Content::Refused(RefusedEntry { reason: "bad_line".into(), ..RefusedEntry::default() }),
        Content::Decisions(vec![decision(false), decision(true), decision(true)]),
        Content::Finished(FinishedEntry {
            outcome: "success".into(),
            took: 40,
            operation: Some(1),
            round: 3,
            client: Some(300),
            redacted: true,
            ..FinishedEntry::default()
        }),
    ]
}

pub fn entries() -> Vec<Entry> {
    let entry = |(place, content)| {
        let seq = place as u64 + 1;
        let seal = seq.is_multiple_of(2).then(|| vec![seq as u8; 70].into_boxed_slice());
        Entry { session: Some(1), exchange: Some(2), seal, ..Entry::new(seq, seq, "ann".into(), content) }
    };
    contents().into_iter().enumerate().map(entry).collect()
}

pub fn found(store: &dyn TapeStore, query: &Query) -> Vec<Entry> {
    store.find(query).unwrap().hits.into_iter().map(|hit| hit.entry).collect()
}

/// Proves S-15, S-16, S-28, S-29 and S-71.
pub fn everything_of_version_2_comes_back_as_it_was(house: &House) {
    let store = house.open();
    store.import(&info(), &mut entries().into_iter().map(Ok)).unwrap();
    drop(store);
    let store = house.open();
    assert_eq!(store.tape("t").unwrap(), info());
    assert_eq!(store.sessions("t").unwrap(), [(1, session())]);
    assert_eq!(found(&*store, &Query::default()), entries());
    let of_backend = found(&*store, &Query { backend: Some("math".into()), ..Query::default() });
    assert!(matches!(&of_backend[..], [Entry { content: Content::Backend(_), .. }]), "{of_backend:?}");
}

/// Proves S-30.
pub fn notifications_are_counted_by_method_and_durations_on_average(house: &House) {
    let store = house.open();
    store.import(&info(), &mut entries().into_iter().map(Ok)).unwrap();
    let second = TapeInfo { id: "u".into(), ..info() };
    let mut more = entries();
    if let Some(Entry { content: Content::Finished(end), .. }) = more.last_mut() {
        end.took = 61;
    }
    store.import(&second, &mut more.into_iter().map(Ok)).unwrap();
    let progress = |came, went| vec![("notifications/progress".to_owned(), NotificationStats { came, went })];
    let (one, all) = (store.stats(Some("t")).unwrap(), store.stats(None).unwrap());
    assert_eq!((one.total.mean, one.notifications), (40, progress(1, 1)));
    assert_eq!((all.total.mean, all.notifications), (50, progress(2, 2)));
    store.remove("u").unwrap();
    assert_eq!(store.stats(None).unwrap().notifications, progress(1, 1));
}

pub fn notifications_that_are_forgotten_are_not_counted_any_more(house: &House) {
    let store = house.open();
    let mut writer = store.begin(&info()).unwrap();
    let day = 24 * 3_600 * 1_000_000_000;
    let at = |seq: u64| {
        let content = Content::Message(message(Point::ClientIn, MessageKind::Notification, "notifications/x"));
        Entry::new(seq, seq * day, "ann".into(), content)
    };
    writer.append(&(1..=10).map(at).collect::<Vec<_>>(), false).unwrap();
    let week = Retention { max_age: Some(Duration::from_secs(7 * 24 * 3_600)), ..Retention::default() };
    store.prune(&week, 10 * day).unwrap();
    let left = found(&*store, &Query::default()).len() as u64;
    assert!((1..10).contains(&left), "{left}");
    let counted = store.stats(Some("t")).unwrap().notifications;
    assert_eq!(counted, [("notifications/x".to_owned(), NotificationStats { came: left, went: 0 })]);
}

// A key of an index has a length; a method has none.
pub fn a_method_of_any_length_is_counted(house: &House) {
    let store = house.open();
    let noise = |seed: u64| -> String {
        let number = |n: u64| (n + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (1..=2_000).map(|n| format!("{:x}", number(n))).collect()
    };
    let methods = [noise(0), noise(9_000), "a\0b\\".to_owned(), String::new()];
    let notification = |(place, method): (usize, &String)| {
        let content = Content::Message(message(Point::ClientOut, MessageKind::Notification, method));
        Entry::new(place as u64 + 1, 1, "ann".into(), content)
    };
    let entries: Vec<Entry> = methods.iter().chain(&methods).enumerate().map(notification).collect();
    let mut writer = store.begin(&info()).unwrap();
    for batch in entries.chunks(3) {
        writer.append(batch, false).unwrap();
    }
    let mut expected: Vec<_> =
        methods.into_iter().map(|method| (method, NotificationStats { came: 0, went: 2 })).collect();
    expected.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert_eq!(store.stats(None).unwrap().notifications, expected);
}
