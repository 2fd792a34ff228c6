//! A rule that refuses everything it is asked about, and what passed all the same.

use super::Point;
use super::finding::{Finding, TapeFault};
use super::witness::WitnessedMessage;

/// What must not pass when a phase is refused.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    /// What a rule calls the phase.
    pub phase: &'static str,
    /// Where none of it may be seen.
    pub point: Point,
    /// What begins the words for it: `request`, `result`, `notification`.
    pub kind: &'static str,
    /// What may pass all the same, by how its words go on.
    pub spared: &'static [&'static str],
}

/// A rule that refuses every message of a phase; with requests also those to be told of changes, which the gateway
/// answers.
pub fn rule(phase: &str) -> String {
    let listen = if phase == "request" {
        "[[rules]]\nid = \"refuses-listening\"\nwhen = { phase = \"gateway_request\", method = \"subscriptions/listen\" }\nthen = { block = \"refused\" }\n"
    } else {
        ""
    };
    format!("[[rules]]\nid = \"refuses\"\nwhen = {{ phase = \"{phase}\" }}\nthen = {{ block = \"refused\" }}\n{listen}")
}

/// What a witness saw although it is refused.
pub fn passed(wire: &[WitnessedMessage], refused: &Refused) -> Vec<Finding> {
    let spared =
        |rest: &str| refused.spared.iter().any(|spared| rest == *spared || rest.starts_with(&format!("{spared} ")));
    let broke = wire.iter().filter(|seen| seen.point == refused.point).filter(|seen| {
        seen.label.strip_prefix(refused.kind).is_some_and(|rest| {
            let rest = rest.trim_start().trim_start_matches("of ");
            !spared(rest)
        })
    });
    broke.map(|seen| Finding::new(TapeFault::Passed, seen.point, &seen.label, &seen.text)).collect()
}
