//! Learns what differs from run to run, and is therefore no sign of a change.

use crate::diff::{Comparison, short};
use crate::paths::escaped;
use crate::value_patterns::ValuePattern;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Places at which the answers of several runs to the same calls differ.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Volatility {
    /// Patterns that leave open what differs, each with an example, by their lines.
    proposals: BTreeMap<String, Example>,
    /// Places that differ in a way for which no pattern is proposed.
    unexplained: BTreeSet<String>,
}

#[derive(Clone, PartialEq, Debug)]
struct Example {
    call: u64,
    values: [String; 2],
}

impl Volatility {
    /// Compares the answers of several runs, by the number of their call.
    #[must_use]
    pub fn of(runs: &[BTreeMap<u64, Value>], comparison: &Comparison) -> Self {
        let mut found = Self::default();
        let Some((first, others)) = runs.split_first() else { return found };
        for (call, answer) in first {
            for other in others.iter().filter_map(|run| run.get(call)) {
                for one in comparison.compare_messages(answer.into(), other.into()).list {
                    let path = general(&one.pointer);
                    let values = [&one.recorded, &one.new].map(|value| value.as_ref().map_or_else(String::new, short));
                    let both = one.recorded.as_ref().zip(one.new.as_ref());
                    match both.and_then(|(one, other)| ValuePattern::of(&path, one, other)) {
                        Some(pattern) => {
                            found.proposals.entry(pattern.to_string()).or_insert(Example { call: *call, values });
                        }
                        None => {
                            let [one, other] = values;
                            found.unexplained.insert(format!("{path} of call {call}: {one} and {other}"));
                        }
                    }
                }
            }
        }
        found
    }

    /// Number of proposed patterns.
    #[must_use]
    pub fn count(&self) -> usize {
        self.proposals.len()
    }

    /// Places that differ in a way for which no pattern is proposed, with their values.
    pub fn unexplained(&self) -> impl Iterator<Item = &str> {
        self.unexplained.iter().map(|line| &**line)
    }
}

/// The lines of a file of paths and patterns, each below an example.
impl fmt::Display for Volatility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, Example { call, values: [one, other] }) in &self.proposals {
            // A value may have line breaks, and a comment ends with its line.
            let example = format!("call {call}: {one} and {other}").replace(['\n', '\r'], " ");
            writeln!(f, "# {example}\n{line}")?;
        }
        Ok(())
    }
}

/// A pointer in which the places of items are left open.
fn general(pointer: &str) -> String {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let part = |part: &str| match is_index(part) {
        true => "/*".to_owned(),
        false => format!("/{part}"),
    };
    let path: String = pointer.split('/').skip(1).map(part).collect();
    if path.is_empty() { format!("/{}", escaped("result")) } else { path }
}
