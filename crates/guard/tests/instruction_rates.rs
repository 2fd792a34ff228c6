//! Holds the rates of the committed attacks and look-alikes that the rules were written with.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail wherever it wants")]

use serde_json::Value;
use signalbox_guard::instructions::{InstructionScorer, InstructionVerdict, NameSet, ScoreContext, TextLocation};
use std::path::Path;

fn samples(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guard").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn place(position: &str) -> TextLocation {
    match position {
        "definition" | "parameter-description" | "server-instructions" => TextLocation::Definition,
        "resource" => TextLocation::Resource,
        "prompt" => TextLocation::Prompt,
        "question" | "sampling" => TextLocation::Question,
        "error" => TextLocation::Error,
        "log" => TextLocation::Log,
        "result" => TextLocation::Result,
        other => panic!("unknown position {other}"),
    }
}

/// Returns the share of the samples that are suspicious, in percent.
fn suspicious_percent(name: &str) -> f64 {
    let scorer = InstructionScorer::new(None).unwrap();
    let samples = samples(name);
    let is_suspicious = |sample: &Value| {
        let tools = sample["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let other_tools = NameSet::new(tools);
        let place = place(sample["position"].as_str().unwrap());
        let context = ScoreContext { place, own_tools: &|_| false, other_tools: &other_tools };
        scorer.score(sample["text"].as_str().unwrap(), &context).verdict >= InstructionVerdict::Suspicious
    };
    let found = samples.iter().filter(|sample| is_suspicious(sample)).count();
    100.0 * found as f64 / samples.len() as f64
}

#[test]
fn seen_attacks_are_found() {
    let percent = suspicious_percent("seen-attacks.jsonl");
    assert!(percent >= 90.0, "{percent:.1} % of the seen attacks are found");
}

#[test]
fn seen_look_alikes_raise_few_alarms() {
    let percent = suspicious_percent("seen-lookalikes.jsonl");
    assert!(percent <= 3.0, "{percent:.1} % of the seen look-alikes raise an alarm");
}
