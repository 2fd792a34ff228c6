//! Images of one message: what is kept of the second is what the redactor keeps of it alone.

use super::super::RecorderSettings;
use super::facts::{Facts, LONG};
use super::memory::Memory;
use crate::bodies;
use crate::redact::{Action, KeyRule, PathRule, PatternRule, Redaction, RedactionSettings, Redactor};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content};

/// Numbers that look random, the same ones in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn pick<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.next(among.len())]
    }
}

/// Some of these are taken out: by their names, by a pattern, as credentials.
const VALUES: &[&str] = &[
    r#""plain words""#,
    "4711",
    r#""4711""#,
    r#""see secret-4711 here""#,
    concat!(r#""AKIA"#, r#"ABCDEFGHIJKLMNOP""#),
    r#"{"password":"hunter2hunter2"}"#,
    r#"{"id":4711,"token":7}"#,
    r#"["{\"password\":\"a4711b\"}"]"#,
    "null",
];
const IDS: &[&str] = &["1", "7", "10", "4711", "47", "900719925474099", "-3", "1.5", r#""4711""#, r#""secret-4711""#];

fn redactor() -> Redactor {
    let star = || Action::Replace("*".into());
    let settings = RedactionSettings {
        keys: vec![KeyRule { name: "password".into(), action: star() }],
        paths: vec![PathRule { path: "/params/arguments/n".into(), method: None, action: star() }],
        patterns: vec![PatternRule { pattern: "secret-[0-9]+|4711".into(), action: star() }],
        credentials: Some(Action::Hash),
    };
    Redactor::new(&settings, [5; 32]).unwrap()
}

fn message(numbers: &mut Numbers, id: &str) -> String {
    let (name, value) = (numbers.pick(&["a", "n", "password", "id"]), numbers.pick(VALUES));
    let filler = "words that stay ".repeat(numbers.next(12));
    let body =
        format!(r#""method":"tools/call","params":{{"name":"t","arguments":{{"{name}":{value},"f":"{filler}"}}}}"#);
    match numbers.next(2) {
        0 => format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#),
        _ => format!(r#"{{{body},"id": {id} ,"jsonrpc":"2.0"}}"#),
    }
}

/// Records a message and its second image, and returns their bodies.
fn recorded(redactor: &Redactor, first: &str, second: &str) -> Vec<Option<Bytes>> {
    let memory = Memory::default();
    let recorder = memory.record(RecorderSettings::default(), redactor.clone());
    let facts = Facts::new(&recorder);
    facts.message(1, Some(1), Point::ClientIn, first);
    facts.message(1, Some(1), Point::BackendOut, second);
    recorder.stop(LONG);
    let mut kept: Vec<Option<Bytes>> = Vec::new();
    for entry in memory.entries() {
        let Content::Message(message) = entry.content else { continue };
        kept.push(match message.body {
            Body::Whole(bytes) => Some(bytes),
            Body::Like { prefix, suffix, middle, .. } => {
                kept[0].as_ref().and_then(|base| bodies::join(base, prefix, suffix, &middle))
            }
            Body::Left => None,
        });
    }
    kept
}

/// An image that differs by its id alone is not searched for secrets again.
#[test]
fn an_image_is_kept_as_if_it_were_redacted_alone() {
    let (redactor, mut numbers) = (redactor(), Numbers(33));
    let mut by_id = 0;
    for _ in 0..600 {
        let (id, other) = (numbers.pick(IDS), numbers.pick(IDS));
        let before = numbers.0;
        let first = message(&mut numbers, id);
        if numbers.next(4) > 0 {
            numbers.0 = before;
            by_id += 1;
        }
        let second = message(&mut numbers, other);
        let alone = |text: &str| match redactor.message(&Bytes::copy_from_slice(text.as_bytes()), Some("tools/call")) {
            Redaction::Same => Some(Bytes::copy_from_slice(text.as_bytes())),
            Redaction::Changed(bytes) => Some(bytes),
            Redaction::Withheld => None,
        };
        assert_eq!(recorded(&redactor, &first, &second), [alone(&first), alone(&second)], "{first}\n{second}");
    }
    assert!(by_id > 300, "{by_id} differ by their ids alone");
}
