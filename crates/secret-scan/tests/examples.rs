//! Every rule finds its examples wherever they stand, and no rule finds anything in a counter-example.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use signalbox_secret_scan::made_up::{self, Example};
use signalbox_secret_scan::{Rule, Scanner};
use std::fmt::Write as _;
use std::ops::Range;

fn scanner() -> &'static Scanner {
    Scanner::built_in()
}

fn examples(rule: &Rule) -> Vec<Example> {
    let seeds = rule.examples.iter().enumerate();
    seeds.map(|(number, text)| made_up::example(text, &format!("{} {number}", rule.id))).collect()
}

/// What is wrong with how a text is scanned: the whole secret must be covered.
fn fault(rule: &Rule, form: &str, text: &str, secret: Range<usize>) -> Option<String> {
    let findings = scanner().find(text.as_bytes());
    let mut at = secret.start;
    for found in &findings.found {
        if found.start <= at && at < found.end {
            at = found.end;
        }
    }
    let covered = at >= secret.end;
    let possible = scanner().may_hold(text.as_bytes());
    (!covered || !possible || findings.more).then(|| {
        format!(
            "{} as {form}: {text:?} secret {:?} found {:?}, may hold {possible}",
            rule.id, &text[secret], findings.found
        )
    })
}

/// A text between two others, with where the secret then stands.
fn between(before: &str, example: &Example, after: &str) -> (String, Range<usize>) {
    let by = before.len();
    (format!("{before}{}{after}", example.text), example.secret.start + by..example.secret.end + by)
}

/// A text written in another way, with where the secret then stands.
fn written(example: &Example, way: impl Fn(&str) -> String) -> (String, Range<usize>) {
    let before = way(&example.text[..example.secret.start]).len();
    let until = way(&example.text[..example.secret.end]).len();
    (way(&example.text), before..until)
}

fn inner_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn url_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            true => out.push(char::from(byte)),
            false => write!(out, "%{byte:02X}").unwrap(),
        }
        out
    })
}

#[test]
fn there_are_at_least_170_kinds_with_source_examples_and_counter_examples() {
    let rules = scanner().rules();
    assert!(rules.len() >= 170, "only {} kinds", rules.len());
    scanner().compile_all().unwrap();
    let mut ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rules.len(), "two rules of one name");
    for rule in rules {
        // The format of our own keys is described in our own pages.
        let described = rule.source.starts_with("https://") || rule.source.starts_with("docs/");
        assert!(described, "{}: where the format is described", rule.id);
        assert!(!rule.about.is_empty() && !rule.examples.is_empty(), "{}", rule.id);
        assert!(!rule.counter_examples.is_empty(), "{}: a counter-example", rule.id);
    }
}

#[test]
fn every_example_is_found_by_its_own_rule_in_full() {
    let mut faults = Vec::new();
    for rule in scanner().rules() {
        let source = rule_file(rule);
        let alone = Scanner::new(&[&source]).unwrap();
        for example in examples(rule) {
            let findings = alone.find(example.text.as_bytes());
            let covers = |range: &Range<usize>| {
                findings.found.iter().any(|found| found.start <= range.start && range.end <= found.end)
            };
            if !covers(&example.secret) {
                faults.push(format!("{}: {example:?} {:?}", rule.id, findings.found));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// A file of this rule alone.
fn rule_file(rule: &Rule) -> String {
    let id = format!("id = '{}'\n", rule.id);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/rules");
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let texts: Vec<String> = files.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect();
    let mut rules = texts.iter().flat_map(|text| text.split("[[rule]]\n"));
    format!("[[rule]]\n{}", rules.find(|part| part.starts_with(&id)).unwrap())
}

#[test]
fn every_example_is_found_in_full_wherever_it_stands() {
    let mut faults = Vec::new();
    for rule in scanner().rules() {
        for example in examples(rule) {
            let mut look =
                |form: &str, (text, secret): (String, Range<usize>)| faults.extend(fault(rule, form, &text, secret));
            look("it is", (example.text.clone(), example.secret.clone()));
            look("a value", between("VALUE=", &example, "\n"));
            look("part of a sentence", between("Here it is: ", &example, " and more of the text follows."));
            look("a line", between("first line\n", &example, "\nlast line\n"));
            let json = |text: &str| format!("{{\"a\":1,\"text\":\"{}", inner_json(text));
            look("JSON", written(&example, json));
            let twice = |text: &str| format!("{{\"text\":\"{}", inner_json(&format!("{{\"t\":\"{}", inner_json(text))));
            look("JSON in a string", written(&example, twice));
            look("URL-encoded", written(&example, |text| format!("q={}", url_encoded(text))));
            for (form, engine) in [("base64", &STANDARD), ("base64 for URLs", &URL_SAFE_NO_PAD)] {
                // Three bytes are four digits: the secret begins and ends within some.
                let secret = example.secret.start * 4 / 3..(example.secret.end * 4).div_ceil(3);
                let (start, end) = (secret.start + 3, secret.end + 3);
                look(form, (format!("v: {} .", engine.encode(&example.text)), start..end));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn no_rule_finds_anything_in_a_counter_example() {
    let mut faults = Vec::new();
    for rule in scanner().rules() {
        for (number, text) in rule.counter_examples.iter().enumerate() {
            let text = made_up::example(text, &format!("{} not {number}", rule.id)).text;
            for text in [text.clone(), inner_json(&text), url_encoded(&text), STANDARD.encode(&text)] {
                let findings = scanner().find(text.as_bytes());
                if !findings.found.is_empty() {
                    faults.push(format!("{}: {text:?} {:?}", rule.id, findings.found));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn credentials_in_double_base64_in_hex_and_beside_an_underscore_are_found() {
    let mut random = made_up::Random::new("twice");
    let token = format!("ghp_{}", random.take("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", 36));
    let line = format!("deploy with {token} today");
    let hex: String = line.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = STANDARD.encode(&line);
    let unhex = |text: &str| -> Vec<u8> {
        let pair = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        (0..text.len()).step_by(2).filter_map(pair).collect()
    };
    for text in [
        format!("branch_{token}"),
        format!("{token}_old"),
        hex.clone(),
        STANDARD.encode(&base64),
        URL_SAFE_NO_PAD.encode(&base64),
        STANDARD.encode(&hex),
    ] {
        let findings = scanner().find(text.as_bytes());
        assert!(scanner().may_hold(text.as_bytes()) && findings.found.len() == 1, "{text}: {:?}", findings.found);
        let found = &findings.found[0];
        let left = format!("{}{}", &text[..found.start], &text[found.end..]);
        assert!(!left.contains(&token), "{text}: {left}");
        assert!(!String::from_utf8_lossy(&unhex(&left)).contains(&token[4..]), "{text}: {left}");
    }
}

/// Issuers change the length and the alphabet of their tokens.
#[test]
fn tokens_are_known_by_how_they_begin_whatever_their_length() {
    let mut random = made_up::Random::new("begin");
    let letters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    for begin in ["NRAK-", "CLOJARS_", "PMAK-", "CFPAT-", "glpat-"] {
        for length in [28, 50, 90] {
            let token = format!("{begin}{}", random.take(letters, length));
            let text = format!("deploy with {token}, then look");
            let findings = scanner().find(text.as_bytes());
            let covered =
                |found: &signalbox_secret_scan::CredentialMatch<'_>| text[found.start..found.end].contains(&token);
            assert!(findings.found.iter().any(covered), "{text}: {:?}", findings.found);
            assert!(scanner().may_hold(text.as_bytes()), "{text}");
        }
        let words = format!("{begin}of-the-station_and_its_platforms");
        assert!(scanner().find(words.as_bytes()).found.is_empty(), "{words}");
    }
}
