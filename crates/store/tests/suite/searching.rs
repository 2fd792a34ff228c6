//! Text.

use crate::house::House;
use crate::make::{all, body, entry, find, keep, message, places, request};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, Query, StoreError, TapeStore};

fn found(store: &dyn TapeStore, text: &str) -> Vec<u64> {
    places(store, &Query { text: Some(text.into()), ..all() })
}

/// Proves S-36.
pub fn words_and_phrases_are_found(house: &House) {
    let store = house.open();
    let bodies = [
        r#"{"text":"The quick brown fox"}"#,
        r#"{"text":"a brown, quick dog","customer_id":4711}"#,
        r#"{"text":"Gr\u00fc\u00dfe aus K\u00f6ln"}"#,
        r#"{"text":"天気予報"}"#,
        r#"{"path":"C:\\new\\table","n":3.25}"#,
        "plain text, no JSON: naïve",
    ];
    keep(&*store, "t", &bodies.iter().zip(1..).map(|(body, seq)| request(seq, body)).collect::<Vec<_>>());
    for (text, expected) in [
        ("quick", vec![1, 2]),
        ("QUICK fox", vec![1]),
        ("quick brown", vec![1, 2]),
        ("\"quick brown\"", vec![1]),
        ("\"brown quick\" dog", vec![2]),
        ("quic", vec![]),
        ("customer_id", vec![2]),
        ("4711", vec![2]),
        ("Grüße köln", vec![3]),
        ("天気", vec![4]),
        ("気天", vec![]),
        ("new table", vec![5]),
        ("3.25", vec![5]),
        ("naïve", vec![6]),
        ("json plain", vec![6]),
        ("unknown quick", vec![]),
        ("   ", (1..=6).collect()),
    ] {
        assert_eq!(found(&*store, text), expected, "{text}");
    }
}

pub fn phrases_are_found_page_by_page_among_many_that_are_none(house: &House) {
    let store = house.open();
    let text = |seq: u64| if seq.is_multiple_of(300) { "a red fox" } else { "a fox that is red" };
    keep(&*store, "t", &(1..=2_500).map(|seq| request(seq, text(seq))).collect::<Vec<_>>());
    for newest_first in [false, true] {
        let mut expected: Vec<u64> = (1..=8).map(|n| n * 300).collect();
        if newest_first {
            expected.reverse();
        }
        let query = Query { text: Some("\"red fox\"".into()), newest_first, limit: Some(3), ..all() };
        let mut paged = Vec::new();
        loop {
            let page = find(&*store, &Query { after: paged.last().copied(), ..query.clone() });
            paged.extend(page.hits.iter().map(|hit| hit.entry.seq));
            if !page.more {
                break;
            }
        }
        assert_eq!(paged, expected);
    }
}

pub fn hostile_text_is_only_text(house: &House) {
    let store = house.open();
    keep(&*store, "t", &[request(1, r#"{"text":"select near not or and from tapes"}"#), request(2, "other words")]);
    for text in [
        "near",
        "NOT",
        "OR",
        "AND",
        "select* -from",
        "\"select",
        "(select)",
        "words:select",
        "{words} : select",
        "select^2",
        "'select'",
        "select'; DROP TABLE tapes; --",
        "from+tapes",
        "select & !from",
        "se\0lect from",
    ] {
        let answer = store.find(&Query { text: Some(text.into()), ..all() });
        assert!(answer.is_ok(), "{text}: {answer:?}");
    }
    assert_eq!(found(&*store, "near(select from)"), [0; 0], "near is one word of a phrase there");
    assert_eq!(found(&*store, "NOT from"), [1]);
    assert_eq!(found(&*store, "from:*"), [1]);
    for text in ["*", "\"", "%", "' OR 1=1", "§m1", "\\", "_"] {
        let answer = store.find(&Query { text: Some(text.into()), ..all() });
        let nothing = matches!(&answer, Err(StoreError::Query(why)) if why.contains("no word to search for"));
        assert!(nothing || answer.is_ok_and(|page| page.hits.is_empty()), "{text}");
    }
    let many = store.find(&Query { text: Some("a ".repeat(1_000)), ..all() }).unwrap_err();
    assert_eq!(many.to_string(), "1000 words are too many; search for at most 32");
    assert_eq!(found(&*store, &"a".repeat(100_000)), [0; 0]);
    assert_eq!(store.tapes().unwrap().len(), 1);
}

pub fn other_images_of_a_message_are_found_only_where_a_word_differs(house: &House) {
    let store = house.open();
    let base = r#"{"id":1,"city":"Paris"}"#;
    let like = |seq: u64, prefix: u64, suffix: u64, middle: &'static str| {
        let body = Body::Like { seq: 1, prefix, suffix, middle: Bytes::from_static(middle.as_bytes()) };
        entry(seq, Content::Message(MessageEntry { body, ..message("tools/call", "") }))
    };
    let length = base.len() as u64;
    keep(
        &*store,
        "t",
        &[request(1, base), like(2, length, 0, ""), like(3, 6, length - 7, "99"), like(4, 16, 2, "London")],
    );
    assert_eq!(found(&*store, "paris"), [1], "the same message is one hit");
    assert_eq!(found(&*store, "city"), [1, 4]);
    assert_eq!(found(&*store, "London city"), [4], "what a rule or a person put in is found");
    let hit = &find(&*store, &Query { text: Some("london".into()), ..all() }).hits[0];
    assert_eq!(&body(hit)[..], br#"{"id":1,"city":"London"}"#);
}

pub fn the_client_side_is_searched_image_by_image_and_the_backend_side_is_not(house: &House) {
    let store = house.open();
    let at = |seq: u64, point: Point, body: Body| {
        let seen = MessageEntry { point, body, ..message("tools/call", "") };
        Entry { exchange: Some(1), ..entry(seq, Content::Message(seen)) }
    };
    let like = |seq: u64, prefix: u64, suffix: u64, middle: &'static str| Body::Like {
        seq,
        prefix,
        suffix,
        middle: Bytes::from_static(middle.as_bytes()),
    };
    let original = r#"{"id":1,"city":"Paris","pin":"4711"}"#;
    let length = original.len() as u64;
    let mut entries = vec![at(1, Point::BackendIn, Body::Whole(Bytes::from_static(original.as_bytes())))];
    // A later group of the index, so that an index of words alone would not lead there.
    entries.extend((2..200).map(|seq| at(seq, Point::BackendOut, Body::Whole(Bytes::from_static(b"{}")))));
    entries.push(at(200, Point::ClientOut, like(1, length - 6, 2, "****")));
    keep(&*store, "t", &entries);
    let sent = |text: &str| places(&*store, &Query { text: Some(text.into()), client_side: true, ..all() });
    assert_eq!((found(&*store, "paris"), sent("paris")), (vec![1], vec![200]));
    assert_eq!((found(&*store, "4711"), sent("4711")), (vec![1], vec![]), "what was withheld finds nothing");
    assert_eq!(places(&*store, &Query { client_side: true, ..all() }), [200]);
}

pub fn names_are_no_patterns(house: &House) {
    let store = house.open();
    let about = |seq: u64, method: &str, subject: &str| {
        entry(seq, Content::Message(MessageEntry { subject: Some(subject.into()), ..message(method, "{}") }))
    };
    keep(
        &*store,
        "t",
        &[about(1, "a_b/c", "x%"), about(2, "aXb/c", "xy"), about(3, "a%", "x'y"), about(4, "A_B/c", "X%")],
    );
    let subject = |subject: &str| places(&*store, &Query { subject: Some(subject.into()), ..all() });
    let method = |method: &str| places(&*store, &Query { methods: vec![method.into()], ..all() });
    assert_eq!(subject("x%"), [1]);
    assert_eq!(subject("x'y"), [3]);
    assert_eq!(subject("x' OR '1'='1"), [0; 0]);
    assert_eq!(method("a_b*"), [1]);
    assert_eq!(method("a%*"), [3]);
    assert_eq!(method("a*b/c"), [0; 0], "only at the end");
}
