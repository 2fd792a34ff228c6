//! Body of the fuzz target. Asserts the invariants that hold for any input. Ordinary tests also run it, on mutated
//! seeds.

#![allow(clippy::expect_used, reason = "a fuzz target reports what does not hold by panicking")]

use crate::rule_set::RuleSet;
use crate::try_message::{AssumedContext, try_message};

const MESSAGE: &[u8] =
    br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello","n":3}}}"#;
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}"#;

/// Any valid rule set has a stable version, survives merging, and evaluates messages without failing.
pub fn rules(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(set) = RuleSet::parse("fuzz", text) else { return };
    let again = RuleSet::merge(vec![set.clone()]).expect("a set merges with nothing");
    assert_eq!(again.version(), set.version());
    assert_eq!(again.describe(), set.describe());
    let _ = set.warnings();
    for message in [MESSAGE, ANSWER] {
        let supposed = AssumedContext { method: Some("tools/call".to_owned()), ..AssumedContext::default() };
        try_message(&set, message, &supposed, std::time::Instant::now()).expect("the message is valid");
    }
}
