mod card_and_account_numbers;
mod look_alikes;
mod telephone_numbers_and_email;

use super::*;
use card_and_account_numbers::{CARDS, IBANS};
use proptest::prelude::*;
use std::time::Instant;
use telephone_numbers_and_email::{EMAILS, INTERNATIONAL};

/// Every class but credentials.
const NUMBERS_AND_ADDRESSES: PrivacyClasses = PrivacyClasses::NONE
    .with(PrivacyClass::Email)
    .with(PrivacyClass::Phone)
    .with(PrivacyClass::Iban)
    .with(PrivacyClass::Card);

fn found(text: &str) -> Vec<(PrivacyClass, &str)> {
    let findings = find(text, PrivacyClasses::ALL);
    findings.spans.iter().map(|span| (span.class, &text[span.range.clone()])).collect()
}

fn redacted(text: &str) -> String {
    redact(text, &find(text, PrivacyClasses::ALL))
}

/// Asserts that a text holds this and nothing else, alone and within JSON, Markdown and a sentence.
fn assert_found(class: PrivacyClass, private: &str) {
    let frames =
        ["{}", "\"{}\"", "see {}.", "({})", "a, {}, b", "{\"a\":\"{}\"}", "x\\n{}\\n", "**{}**", "a\n{}\nb", "a={};"];
    for frame in frames {
        let text = frame.replace("{}", private);
        assert_eq!(found(&text), [(class, private)], "{text}");
    }
}

#[test]
fn credentials_are_replaced_with_their_kind() {
    assert_eq!(redacted("key AKIAABCDEFGHIJKLMNOP."), "key [credential removed: aws-access-key-id].");
    let text = "ann@host.org AKIAABCDEFGHIJKLMNOP 4242424242424242";
    let classes: Vec<_> = found(text).into_iter().map(|(class, _)| class).collect();
    assert_eq!(classes, [PrivacyClass::Email, PrivacyClass::Credential, PrivacyClass::Card]);
}

#[test]
fn redaction_leaves_everything_else_in_place() {
    let text = "Ann <ann@host.org>, +49 30 23125 000,\nIBAN: DE89 3704 0044 0532 0130 00; Visa 4242-4242-4242-4242 é";
    let expected = "Ann <[email removed]>, [phone removed],\nIBAN: [iban removed]; Visa [card removed] é";
    assert_eq!(redacted(text), expected);
    assert_eq!(redacted("nothing"), "nothing");
    assert_eq!(redacted("{\"a\":\"x\\nann@host.org\"}"), "{\"a\":\"x\\n[email removed]\"}");
}

#[test]
fn a_placeholder_never_becomes_the_text_of_a_link() {
    assert_eq!(redacted("!+4930123456 (a) +4930123456[a]"), "![phone removed] (a) [phone removed] [a]");
    assert_eq!(redacted("[ann@host.org](mailto:ann@host.org)"), "[[email removed]](mailto:[email removed])");
    assert_eq!(redacted("ann@host.org: hi"), "[email removed] : hi");
}

#[test]
fn only_the_classes_of_the_set_are_found() {
    let text = "ann@host.org +49 30 23125 000 DE89370400440532013000 4242424242424242 AKIAABCDEFGHIJKLMNOP";
    assert!(find(text, PrivacyClasses::NONE).spans.is_empty());
    for class in PrivacyClass::ALL {
        let classes: Vec<_> = find(text, [class].into_iter().collect()).spans.iter().map(|span| span.class).collect();
        assert_eq!(classes, [class]);
    }
    assert_eq!(find(text, PrivacyClasses::ALL).spans.len(), 5);
}

#[test]
fn sets_hold_the_classes_they_are_made_of() {
    assert!(PrivacyClasses::NONE.is_empty() && !PrivacyClasses::ALL.is_empty());
    for class in PrivacyClass::ALL {
        let set = PrivacyClasses::NONE.with(class);
        assert!(PrivacyClass::ALL.iter().all(|other| set.contains(*other) == (*other == class)));
        assert!(PrivacyClasses::ALL.contains(class));
        assert_eq!(serde_json::to_value(class).unwrap(), class.word());
    }
}

#[test]
fn placeholders_are_not_searched_and_forged_ones_are() {
    for text in
        ["[email removed]", "[credential removed: aws-access-key-id]", "password=[credential removed: npm-token]"]
    {
        assert_eq!(found(text), [], "{text}");
    }
    let forged = "[credential removed: AKIAABCDEFGHIJKLMNOP]";
    assert_eq!(redacted(forged), "[credential removed: [credential removed: aws-access-key-id]]");
    // Letters beside a placeholder are those of what it replaced.
    assert_eq!(found("[email removed]4242424242424242"), []);
    assert_eq!(found("[email removed] 4242424242424242").len(), 1);
}

#[test]
fn bounds_are_told() {
    let long = " ".repeat(MAX_TEXT + 1);
    assert!(find(&long, PrivacyClasses::ALL).is_incomplete);
    let many = "ann@host.org ".repeat(MAX_SPANS + 1);
    let findings = find(&many, NUMBERS_AND_ADDRESSES);
    assert!(findings.is_incomplete);
    assert_eq!(findings.spans.len(), MAX_SPANS);
    let enough = find(&many[13..], NUMBERS_AND_ADDRESSES);
    assert!(!enough.is_incomplete);
    assert_eq!(enough.spans.len(), MAX_SPANS);
}

#[test]
fn spans_that_do_not_fit_a_text_are_left_out() {
    let findings = find("é ann@host.org", PrivacyClasses::ALL);
    assert_eq!(redact("ééééé", &findings), "ééééé");
    assert_eq!(redact("short", &findings), "short");
}

/// Inputs that make a careless search quadratic. Each has 400 KB.
#[test]
fn hostile_repetitions_take_linear_time() {
    let pieces = [
        "@",
        "a@",
        "a@b",
        "a.@b.",
        "a@b.co",
        "a@b.co ",
        ".",
        "+",
        "+4",
        "+49",
        "+49 30 ",
        "+4930123456",
        "1",
        "1 ",
        "12-",
        "4242 ",
        "4242",
        "4242-",
        "(415) ",
        "(",
        "tel ",
        "tel 1",
        "DE89",
        "DE89 ",
        "DE89370400440532013000",
        "a1",
        "aé1",
        " removed",
        "[email removed",
        "[email removed]",
        "[credential removed: ",
        "[",
        "phone(1)2",
        "\u{a0}1",
        "é@é.é",
        "4242424242424242,",
        "4242424242424241, ",
        "+4930123456+",
        "a@b.co+4930123456",
    ];
    for piece in pieces {
        let text = piece.repeat(400_000 / piece.len());
        let start = Instant::now();
        let _ = find(&text, NUMBERS_AND_ADDRESSES);
        assert!(start.elapsed().as_secs() < 5, "{piece:?} took {:?}", start.elapsed());
    }
}

/// Fragments that combine into private data, parts of it and placeholders.
fn fragments() -> impl Strategy<Value = String> {
    let pieces = [
        "@",
        ".",
        "+",
        "-",
        " ",
        "(",
        ")",
        ":",
        "/",
        ",",
        "[",
        "]",
        "\\n",
        "%",
        "\u{a0}",
        "é",
        "例",
        "a",
        "ann",
        "host.org",
        "1",
        "49",
        "4242",
        "4242424242424242",
        "555",
        "0100",
        "(415)",
        "30 23125 000",
        "+49",
        "tel ",
        "phone: ",
        "card ",
        "DE89",
        "370400440532013000",
        "3704 0044 0532 0130 00",
        "ann@host.org",
        "x@y.co",
        "+4930123456",
        " removed",
        "[email removed]",
        "[card removed]",
        "[credential removed: npm-token]",
        "[credential removed: ",
        "password=",
        "AKIAABCDEFGHIJKLMNOP",
        "Bearer ",
        "hunter2hunter2",
        "https://",
        "\"",
        "=",
    ];
    let all = pieces.iter().chain(CARDS).chain(IBANS).chain(INTERNATIONAL).chain(EMAILS).copied().collect::<Vec<_>>();
    let small = proptest::sample::select(pieces.to_vec());
    let any = proptest::sample::select(all);
    proptest::collection::vec(prop_oneof![3 => small, 1 => any], 0..24).prop_map(|parts| parts.concat())
}

/// Asserts what holds for the findings of every text.
fn assert_sound(text: &str, classes: PrivacyClasses) {
    let findings = find(text, classes);
    assert!(!findings.is_incomplete);
    let mut end = 0;
    for span in &findings.spans {
        assert!(end <= span.range.start && span.range.start < span.range.end, "{text:?}: {findings:?}");
        assert!(text.get(span.range.clone()).is_some(), "{text:?}: {findings:?}");
        assert!(classes.contains(span.class));
        end = span.range.end;
    }
    let once = redact(text, &findings);
    let again = find(&once, classes);
    assert!(again.spans.is_empty(), "{text:?} becomes {once:?}, then {again:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_changes_nothing_more(text in fragments()) {
        assert_sound(&text, PrivacyClasses::ALL);
        assert_sound(&text, NUMBERS_AND_ADDRESSES);
    }

    #[test]
    fn any_text_can_be_searched(text in "\\PC{0,60}|(?s:.{0,60})|[0-9 +().@-]{0,80}") {
        assert_sound(&text, PrivacyClasses::ALL);
    }

    /// Text of letters and common punctuation holds nothing private, in any script.
    #[test]
    fn words_are_not_found(text in "[\\p{L} .,;!?\n\t]{0,60}") {
        prop_assert_eq!(find(&text, NUMBERS_AND_ADDRESSES).spans, []);
    }

    #[test]
    fn private_data_is_found_between_words(before in "[a-z]{1,8} ", card in proptest::sample::select(CARDS), after in " [a-z]{1,8}") {
        let text = format!("{before}{card}{after}");
        prop_assert_eq!(found(&text), [(PrivacyClass::Card, card)]);
    }
}
