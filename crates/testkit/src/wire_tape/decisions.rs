//! Which messages on a tape lack the decision that rules which see everything have left about them.

use std::collections::BTreeSet;

use super::compare::label;
use super::finding::{Finding, TapeFault};
use super::{Point, ReadTape, Taped};

/// A phase of rules, and the messages that are judged in it.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// What a rule calls it.
    pub phase: &'static str,
    /// What decisions call it.
    pub word: &'static str,
    /// Where its messages are seen.
    pub point: Point,
    /// What kind they are: `request`, `result`, `notification`.
    pub kind: &'static str,
    /// The methods that are not judged; for answers, those of the requests.
    pub spared: &'static [&'static str],
}

/// A rule for each phase that fits every message and lets it pass.
pub fn rules(phases: &[Judged]) -> String {
    let names: BTreeSet<&str> = phases.iter().map(|judged| judged.phase).collect();
    let rule = |phase: &str| {
        format!("[[rules]]\nid = \"sees-{phase}\"\nwhen = {{ phase = \"{phase}\" }}\nthen = {{ count = \"seen\" }}\n")
    };
    names.into_iter().map(rule).collect()
}

/// The messages that have to be decided about and are not.
pub fn undecided(tape: &ReadTape, phases: &[Judged]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for judged in phases {
        let mut loose = tape.decisions.iter().filter(|one| one.exchange.is_none() && one.phase == judged.word).count();
        for message in tape.messages.iter().filter(|message| fits(message, judged)) {
            let decided = match message.exchange {
                Some(exchange) => {
                    tape.decisions.iter().any(|one| one.exchange == Some(exchange) && one.phase == judged.word)
                }
                None => {
                    let any = loose > 0;
                    loose = loose.saturating_sub(1);
                    any
                }
            };
            if !decided {
                let text = message.text.as_deref().unwrap_or_default();
                findings.push(Finding::new(TapeFault::Undecided, message.point, label(message), text));
            }
        }
    }
    findings
}

fn fits(message: &Taped, judged: &Judged) -> bool {
    let method = message.method.as_deref().unwrap_or_default();
    message.point == judged.point && label(message).starts_with(judged.kind) && !judged.spared.contains(&method)
}
