//! Detects values that differ between runs and therefore do not indicate a change.

use crate::diff::{Comparison, short};
use crate::paths::escaped;
use crate::value_patterns::ValuePattern;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Places where the answers of several runs to the same calls differ.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Volatility {
    /// Proposed patterns, each with an example, keyed by their text.
    proposals: BTreeMap<String, Example>,
    /// Places for which no pattern can be proposed.
    unexplained: BTreeSet<String>,
}

#[derive(Clone, PartialEq, Debug)]
struct Example {
    call: u64,
    values: [String; 2],
}

impl Volatility {
    /// Compares the answers of several runs, each keyed by call number.
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

    /// Returns the number of proposed patterns.
    #[must_use]
    pub fn count(&self) -> usize {
        self.proposals.len()
    }

    /// Returns the places without a pattern, with their values.
    pub fn unexplained(&self) -> impl Iterator<Item = &str> {
        self.unexplained.iter().map(|line| &**line)
    }
}

/// Writes an ignore file with the proposed patterns, each below an example.
impl fmt::Display for Volatility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, Example { call, values: [one, other] }) in &self.proposals {
            // A comment ends with its line, but a value may have line breaks.
            let example = format!("call {call}: {one} and {other}").replace(['\n', '\r'], " ");
            writeln!(f, "# {example}\n{line}")?;
        }
        Ok(())
    }
}

/// Replaces the indices in a pointer by `*`.
fn general(pointer: &str) -> String {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let part = |part: &str| match is_index(part) {
        true => "/*".to_owned(),
        false => format!("/{part}"),
    };
    let path: String = pointer.split('/').skip(1).map(part).collect();
    if path.is_empty() { format!("/{}", escaped("result")) } else { path }
}
