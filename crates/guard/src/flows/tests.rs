use super::*;
use crate::encoded_text;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MAIL: u32 = 1;
const FILES: u32 = 2;
const KEY: FlowKey = FlowKey(*b"0123456789abcdef");
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn source(call: u64, classes: u32) -> FlowSource {
    FlowSource { call, tool: Arc::from("mail/read"), classes }
}

/// Tracker that recorded this text as the result of call 3, of class mail.
fn recorded(text: &str) -> (FlowTracker, Instant) {
    let (mut tracker, now) = (FlowTracker::new(FlowLimits::default(), KEY), Instant::now());
    tracker.record(source(3, MAIL), [text], now);
    (tracker, now)
}

fn trace(recorded_text: &str, argument: &str) -> Option<FlowMatch> {
    let (tracker, now) = recorded(recorded_text);
    tracker.trace(argument, MAIL, now)
}

fn base64(text: &str) -> String {
    let group = |bytes: &[u8]| -> String {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(bytes.get(at).copied().unwrap_or(0)));
        (0..=bytes.len()).map(|at| char::from(BASE64[(bits >> (18 - 6 * at) & 63) as usize])).collect()
    };
    text.as_bytes().chunks(3).map(group).collect()
}

fn hex(text: &str) -> String {
    signalbox_wire::hex::hex(text.as_bytes())
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn escapes(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

fn spaced(text: &str) -> String {
    text.chars().map(String::from).collect::<Vec<_>>().join("-")
}

type Encoder = fn(&str) -> String;

/// Forms in which data can leave, with the words of their layers.
const FORMS: &[(&str, Encoder)] = &[
    ("verbatim", str::to_owned),
    ("base64", base64),
    ("hex", hex),
    ("percent", percent),
    ("escapes", escapes),
    ("reversed", reversed),
    ("spaced", spaced),
    ("base64 of hex", |text| base64(&hex(text))),
    ("base64 of base64", |text| base64(&base64(text))),
    ("hex of percent", |text| hex(&percent(text))),
    ("reversed of base64", |text| reversed(&base64(text))),
    ("percent of escapes", |text| percent(&escapes(text))),
];

#[test]
fn a_tracker_can_move_to_another_thread() {
    let (tracker, now) = recorded("the vault opens with the birthday of the cat");
    let found = std::thread::spawn(move || tracker.trace("opens with the birthday of the cat", MAIL, now)).join();
    assert!(found.unwrap().is_some());
}

#[test]
fn the_encoder_of_the_tests_agrees_with_the_decoder() {
    for text in ["f", "fo", "foo", "the secret"] {
        assert_eq!(encoded_text::decode_base64(&base64(text)).unwrap(), text.as_bytes());
    }
}

#[test]
fn a_copied_sentence_is_found_in_every_form() {
    let body = "Dear Anna,\n\nThe board decided on Monday to close the Leipzig office. Please keep this to yourself.\n";
    let sentence = "the board decided on Monday to close the Leipzig office";
    for (layers, encode) in FORMS {
        let found = trace(body, &format!("note: {}", encode(sentence)));
        let found = found.or_else(|| trace(body, &encode(sentence))).unwrap_or_else(|| panic!("{layers} is missed"));
        assert_eq!(found.source, source(3, MAIL));
        assert!(found.form.to_string() == *layers && !found.is_value, "{layers}: {found:?}");
        assert!((sentence.len() - 7..=sentence.len()).contains(&found.length), "{layers}: {found:?}");
    }
}

#[test]
fn reformatting_does_not_hide_a_copy() {
    let body = "The “new” office – it’s in Halle – opens on the first of March.";
    for argument in [
        "THE \"NEW\" OFFICE - IT'S IN HALLE - OPENS",
        "the\n  \"new\"\toffice -\r\nit's in halle - opens",
        "the \"n\u{200b}ew\" off\u{ad}ice - it's in halle",
    ] {
        assert!(trace(body, argument).is_some(), "{argument}");
    }
}

#[test]
fn values_are_found_in_every_form() {
    for (body, argument) in [
        ("Please use account 00912345 for it.", "acct=00912345"),
        ("IBAN: DE89 3704 0044 0532 0130 00", "iban DE89370400440532013000"),
        ("Card 4111-1111-1251-1111, thanks", "number: 4111 1111 1251 1111 please"),
        ("From: Anna.Becker@example.org", "cc anna.becker@EXAMPLE.org!"),
        (r#"{"token":"kX9vQz2LmTrW8pYs"}"#, "https://x.example/kX9vQz2LmTrW8pYs"),
        ("The case is ACME-7731-9902-XK.", "re: acme-7731-9902-xk"),
    ] {
        let found = trace(body, argument).unwrap_or_else(|| panic!("{argument}"));
        assert!(found.is_value && found.form.is_verbatim(), "{found:?}");
        for (layers, encode) in FORMS {
            assert!(trace(body, &encode(argument)).is_some(), "{layers} of {argument}");
        }
    }
}

#[test]
fn a_rephrased_mail_is_recognised_by_its_account_number() {
    let body =
        "Hello,\nplease move 4,250.00 EUR from my savings to the account 30719846 (Sparkasse Halle) by Friday.\nJ.";
    let post = r#"{"title":"Task","text":"A customer wants about four thousand euros sent to 30719846 this week."}"#;
    let found = trace(body, post).unwrap();
    assert_eq!((found.length, found.is_value, found.source.call), (8, true, 3));
    let pasted = "The customer writes: 'please move 4,250.00 EUR from my savings to the account' and gives a number.";
    assert!(trace(body, pasted).is_some_and(|found| found.length > 50 && !found.is_value));
    assert_eq!(trace(body, "A customer asks for a transfer of money to an account at a bank."), None);
}

#[test]
fn text_in_pieces_is_recognised_across_strings() {
    let (tracker, now) = recorded("The launch code is hidden behind the painting in the hall.");
    let pieces = ["the launch", " code is hid", "den behind", " the paint"];
    for piece in pieces {
        assert_eq!(tracker.trace(piece, MAIL, now), None);
    }
    let found = tracker.trace_all(pieces, MAIL, now).unwrap();
    assert_eq!(found.form.to_string(), "split");
    let letters: Vec<String> = "hidden behind the painting".chars().map(String::from).collect();
    assert!(tracker.trace_all(letters.iter().map(String::as_str), MAIL, now).is_some());
    assert_eq!(tracker.trace_all(["a", "b", "nothing of it"], MAIL, now), None);
}

#[test]
fn encoded_results_are_recorded_decoded() {
    let body = base64("The launch code is hidden behind the painting in the hall.");
    assert!(trace(&body, "I found: the launch code is hidden behind the painting").is_some());
}

#[test]
fn ordinary_sessions_do_not_alarm() {
    for (result, argument) in [
        ("Cargo.toml\nREADME.md\nsrc/lib.rs\nsrc/main.rs\nreport2024v2.pdf", "src/lib.rs"),
        ("Cargo.toml\nREADME.md\nsrc/h2c4x9k1m3.rs\nreport2024v2a1b.pdf", "report2024v2a1b.pdf"),
        ("drwxr-xr-x 2 anna staff 1048576 2026-11-19 20:15 notes", "list the folder notes, modified 2026-11-19 20:15"),
        (
            r#"{"id":1,"created_at":"2026-11-19","description":"","labels":[],"assignee":null}"#,
            r#"{"id": 2, "created_at":"2026-11-19","description":"","labels":[],"assignee":null}"#,
        ),
        (
            r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#,
            r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#,
        ),
        (
            "use std::collections::HashMap;\nuse std::sync::Arc;\n\n#[derive(Clone, Debug)]\npub struct Cache {}\n",
            "use std::collections::HashMap;\nuse std::sync::Arc;\n\n#[derive(Clone, Debug)]\npub struct Queue {}\n",
        ),
        (
            "\tif err != nil {\n\t\treturn nil, err\n\t}\n\tdefer body.Close()\n",
            "\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn x\n",
        ),
        ("// SPDX-License-Identifier: MIT OR Apache-2.0\n// a", "// SPDX-License-Identifier: MIT OR Apache-2.0\n// b"),
        (
            "| --- | --- | --- | --- | --- |\n==========================",
            "| --- | --- | --- | --- | --- |\n==========================",
        ),
        ("See https://github.com/ and https://www.example.org", "https://github.com/, https://www.other.example"),
        ("base64_encoder parseHttpHeadersFromRequest2", "call base64_encoder and parseHttpHeaders"),
        ("exit code 0, took 1000000 ns, limit 16777216", "limit=16777216&ns=1000000"),
        ("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"),
    ] {
        assert_eq!(trace(result, argument), None, "{argument}");
    }
}

#[test]
fn a_folder_that_was_asked_for_is_not_returned_by_the_listing() {
    let (mut tracker, now) = (FlowTracker::new(FlowLimits::default(), KEY), Instant::now());
    let folder = "/home/anna/projects/railway/signals";
    tracker.exclude([folder]);
    tracker.record(source(1, FILES), [format!("{folder}/a.rs\n{folder}/b.rs").as_str()], now);
    assert_eq!(tracker.trace(&format!("{folder}/b.rs"), FILES, now), None);
    assert_eq!(tracker.trace(&format!("cat {folder}/c.txt"), FILES, now), None);
}

#[test]
fn what_the_caller_wrote_before_does_not_count_as_returned() {
    let (mut tracker, now) = (FlowTracker::new(FlowLimits::default(), KEY), Instant::now());
    let words = "remind me to buy tickets for the concert, booking number 83920174";
    tracker.exclude([words]);
    tracker.record(
        source(1, MAIL),
        [format!("Saved: {words}. Your reminder has the colour of old copper.").as_str()],
        now,
    );
    assert_eq!(tracker.trace(words, MAIL, now), None);
    assert!(tracker.trace("your reminder has the colour of old copper", MAIL, now).is_some());
    // What another tool returned before stays recorded, though the caller passes it on.
    let secret = "the vault opens with the birthday of the cat";
    tracker.record(source(2, MAIL), [secret], now);
    tracker.exclude([secret]);
    tracker.record(source(3, FILES), [secret], now);
    assert_eq!(tracker.trace(secret, MAIL, now).unwrap().source.call, 2);
    assert_eq!(tracker.trace(secret, FILES, now), None);
}

#[test]
fn only_wanted_classes_are_found_and_the_latest_call_is_named() {
    let (mut tracker, now) = (FlowTracker::new(FlowLimits::default(), KEY), Instant::now());
    let text = "the vault opens with the birthday of the cat";
    for (call, classes) in [(1, MAIL), (2, FILES), (3, MAIL | 4), (4, FILES)] {
        tracker.record(source(call, classes), [text], now);
    }
    let call = |classes| tracker.trace(text, classes, now).map(|found| found.source.call);
    assert_eq!((call(MAIL), call(FILES), call(4), call(8)), (Some(3), Some(4), Some(3), None));
}

#[test]
fn old_records_are_forgotten() {
    let limits = FlowLimits { max_age: Duration::from_secs(60), ..FlowLimits::default() };
    let (mut tracker, now) = (FlowTracker::new(limits, KEY), Instant::now());
    let text = "the vault opens with the birthday of the cat";
    tracker.record(source(1, MAIL), [text], now);
    let full = tracker.bytes();
    assert!(tracker.trace(text, MAIL, now + Duration::from_secs(60)).is_some());
    assert_eq!(tracker.trace(text, MAIL, now + Duration::from_secs(61)), None);
    tracker.expire(now + Duration::from_secs(61));
    assert!(tracker.bytes() < full);
    assert_eq!(tracker.dropped(), 0);
}

#[test]
fn the_oldest_records_go_when_memory_is_short() {
    let limits = FlowLimits { max_bytes: 16 << 10, ..FlowLimits::default() };
    let (mut tracker, now) = (FlowTracker::new(limits, KEY), Instant::now());
    let text = |call: u64| -> String {
        (0..40_u64).map(|word| format!("{:x} ", (call * 100 + word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
    };
    for call in 0..20 {
        tracker.record(source(call, MAIL), [text(call).as_str()], now);
        assert!(tracker.bytes() <= 16 << 10);
    }
    assert!((10..20).contains(&tracker.dropped()), "{}", tracker.dropped());
    assert_eq!(tracker.trace(&text(0), MAIL, now), None);
    assert_eq!(tracker.trace(&text(19), MAIL, now).unwrap().source.call, 19);
}

#[test]
fn results_without_information_use_no_memory() {
    let (mut tracker, now) = (FlowTracker::new(FlowLimits::default(), KEY), Instant::now());
    let empty = tracker.bytes();
    for call in 0..10_000 {
        tracker.record(source(call, MAIL), ["ok", "", "{\"success\":true}"], now);
    }
    assert!(tracker.bytes() <= empty + 1024 && tracker.dropped() == 0);
}

#[test]
fn a_result_that_is_repeated_does_not_slow_the_search_down() {
    let (mut tracker, now) = (FlowTracker::new(FlowLimits::default(), KEY), Instant::now());
    let text = "the vault opens with the birthday of the cat and of nothing else in the house. ";
    for call in 0..1_000 {
        tracker.record(source(call, MAIL), [text], now);
    }
    let started = Instant::now();
    assert_eq!(tracker.trace(&text.repeat(1_000), FILES, now), None);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// Text whose grams all say something: words of random letters and digits.
fn informative() -> impl Strategy<Value = String> {
    "([a-zA-Z0-9äß漢]{4,9}[ ,.\n]){12,40}".prop_filter("too uniform", |text| {
        let (tracker, now) = recorded(text);
        let characters: Vec<char> = text.chars().collect();
        let is_found = |run: &[char]| tracker.trace(&run.iter().collect::<String>(), MAIL, now).is_some();
        characters.chunks_exact(24).all(is_found)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_common_run_of_the_minimum_length_is_found_in_every_form(
        text in informative(), start in 0_usize..60, around in "[ .:]{0,6}", form in 0..FORMS.len()
    ) {
        let (layers, encode) = FORMS[form];
        let run: String = text.trim().chars().skip(start).take(30).collect();
        // The run may begin or end with white space, which is not always a part of the encoded text.
        let characters = run.split_whitespace().collect::<Vec<_>>().join(" ").chars().count();
        prop_assume!(characters >= 26);
        let (tracker, now) = recorded(&text);
        let argument = if layers.starts_with("reversed") || layers == "spaced" {
            encode(&run)
        } else {
            format!("{around}{}{around}", encode(&run))
        };
        prop_assert!(tracker.trace(&argument, MAIL, now).is_some(), "{} of {:?}", layers, run);
    }

    #[test]
    fn random_prose_does_not_agree(
        one in "([a-m]{2,9} ){20,60}", other in "([n-z]{2,9} ){20,60}", third in "([a-z]{2,9} ){20,60}"
    ) {
        let (tracker, now) = recorded(&one);
        prop_assert_eq!(tracker.trace(&other, MAIL, now), None);
        prop_assert_eq!(tracker.trace(&third, MAIL, now), None);
    }

    #[test]
    fn the_memory_is_bounded_and_nothing_panics(
        texts in proptest::collection::vec(".{0,400}|[a-z0-9 ]{0,2000}|[0-9 @./\\\\%-]{0,400}", 1..30),
        min_chars in 0_usize..1100, max_bytes in 0_usize..60_000, step in 0_u64..100
    ) {
        let limits = FlowLimits { min_chars, max_bytes, max_age: Duration::from_secs(500), ..FlowLimits::default() };
        let mut tracker = FlowTracker::new(limits, KEY);
        let mut now = Instant::now();
        for (call, text) in (0..).zip(&texts) {
            now += Duration::from_secs(step);
            if call % 3 == 0 {
                tracker.exclude([text.as_str()]);
            }
            tracker.record(source(call, 1 << (call % 3)), [text.as_str()], now);
            let _ = tracker.trace(text, MAIL | FILES, now);
            let _ = tracker.trace_all(texts.iter().map(String::as_str), 4, now);
            prop_assert!(tracker.bytes() <= max_bytes.max(16 << 10), "{}", tracker.bytes());
        }
    }
}
