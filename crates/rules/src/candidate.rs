//! Compact pre-check of a rule. Rules out most mismatches by comparing a few bytes, without touching the rule itself.

use crate::action::Action;
use crate::condition::{Condition, Leaf, MethodTest};
use crate::facts::MessageView;
use crate::outcomes::Outcomes;
use crate::rule::Rule;
use crate::value_test::ValueTest;
use serde_json::Value as Json;
use signalbox_engine::chain::Phase;

/// Number of bytes compared.
const BYTES: usize = 8;

/// Rule that may match messages of one phase and method. Small, because every message visits all of them.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RuleCandidate {
    /// Required start of a text, for the first condition that is not known to hold. `slot` locates the text.
    beginning: Beginning,
    slot: u16,
    /// Index of the rule.
    pub rule: u16,
    /// Number of leading conditions that always hold for these messages.
    held: u16,
    /// Set if there are no further conditions.
    fits: bool,
    /// Set if the rule does nothing but count.
    pub tallies: bool,
}

/// Slot of a candidate without a text to compare.
const NONE: u16 = u16::MAX;

/// Start of the last text compared. Consecutive rules usually compare the same text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SeenBeginning {
    slot: u16,
    beginning: Option<Beginning>,
}

impl SeenBeginning {
    /// No text, or one that may have changed.
    pub const NOTHING: Self = Self { slot: NONE, beginning: None };
}

/// First bytes of a text, packed into a number.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Beginning {
    word: u64,
    length: u8,
}

impl Beginning {
    /// Reads a JSON string token. Returns `None` for other tokens, and if the compared part contains an escape.
    pub fn of_token(token: &[u8]) -> Option<Self> {
        let [b'"', content @ .., b'"'] = token else { return None };
        let beginning = Self::of(content);
        (!content.iter().take(BYTES).any(|byte| *byte == b'\\')).then_some(beginning)
    }

    fn of(text: &[u8]) -> Self {
        let mut bytes = [0; BYTES];
        for (byte, from) in bytes.iter_mut().zip(text) {
            *byte = *from;
        }
        Self { word: u64::from_le_bytes(bytes), length: text.len().min(BYTES) as u8 }
    }

    /// Returns `false` if a text with this start cannot have the other start.
    fn may_be(self, wanted: Self) -> bool {
        let mask = u64::MAX.checked_shr(64 - 8 * u32::from(wanted.length)).unwrap_or(0);
        self.length >= wanted.length && self.word & mask == wanted.word
    }
}

impl RuleCandidate {
    /// Builds the candidate for messages of this phase and, if known, this method.
    pub fn new(at: u16, rule: &Rule, phase: Phase, method: Option<&str>) -> Self {
        let mut leaves = Vec::new();
        let all = flatten(&rule.when, &mut leaves);
        let held = leaves.iter().take_while(|leaf| holds_always(leaf, phase, method)).count();
        let (slot, beginning) =
            leaves.get(held).and_then(|leaf| prefix_test(leaf, phase)).unwrap_or((NONE, Beginning::default()));
        let fits = all && held == leaves.len();
        let tallies = rule.then.iter().all(|action| matches!(action, Action::Count { .. }));
        // Rules have far fewer conditions than `u16::MAX`.
        Self { rule: at, tallies, held: u16::try_from(held).unwrap_or(u16::MAX), fits, slot, beginning }
    }

    /// Returns `true` and records the outcomes if the rule certainly matches.
    pub fn fits(&self, outcomes: &mut Outcomes) -> bool {
        if self.fits {
            outcomes.push_run(self.held, false);
        }
        self.fits
    }

    /// Returns `true` and records the outcomes if the rule certainly does not match.
    #[inline]
    pub fn misses(&self, view: &MessageView<'_>, seen: &mut SeenBeginning, outcomes: &mut Outcomes) -> bool {
        if self.slot == NONE {
            return false;
        }
        if seen.slot != self.slot {
            *seen = SeenBeginning { slot: self.slot, beginning: view.beginning(usize::from(self.slot)) };
        }
        let missed = seen.beginning.is_some_and(|seen| !seen.may_be(self.beginning));
        if missed {
            outcomes.push_run(self.held, true);
        }
        missed
    }
}

/// Lists the conditions of nested conjunctions in evaluation order. Returns `false` if others follow.
fn flatten<'a>(condition: &'a Condition, leaves: &mut Vec<&'a Leaf>) -> bool {
    match condition {
        Condition::And(all) => all.iter().all(|one| flatten(one, leaves)),
        Condition::Leaf(leaf, _) => {
            leaves.push(leaf);
            true
        }
        Condition::Or(_) | Condition::Not(_) => false,
    }
}

fn holds_always(leaf: &Leaf, phase: Phase, method: Option<&str>) -> bool {
    match (leaf, method) {
        (Leaf::Method(MethodTest::In(list)), Some(method)) => list.iter().any(|one| **one == *method),
        (Leaf::Phase(phases) | Leaf::Direction(phases), _) => phases.has(phase),
        _ => false,
    }
}

fn prefix_test(leaf: &Leaf, phase: Phase) -> Option<(u16, Beginning)> {
    let Leaf::Value { slot, test, root, .. } = leaf else { return None };
    let wanted = match test {
        ValueTest::StartsWith(start) => &**start,
        ValueTest::Equals(Json::String(text)) => text.as_str(),
        _ => return None,
    };
    let looked_at = *root != crate::facts::Root::Result || crate::phases::Phases::RESULTS.has(phase);
    let beginning = Beginning::of(wanted.as_bytes());
    let slot = u16::try_from(*slot).ok().filter(|slot| *slot != NONE)?;
    looked_at.then_some((slot, beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_tells_only_what_is_sure() {
        let seen = |token: &str| Beginning::of_token(token.as_bytes());
        let may =
            |token: &str, wanted: &str| seen(token).is_none_or(|seen| seen.may_be(Beginning::of(wanted.as_bytes())));
        for (token, wanted) in [
            (r#""""#, ""),
            (r#""abc""#, ""),
            (r#""abc""#, "abc"),
            (r#""abcdefghij""#, "abcdefghix"),
            (r#""a\u0062c""#, "xyz"),
            ("7", "7"),
        ] {
            assert!(may(token, wanted), "{token} {wanted}");
        }
        for (token, wanted) in [(r#""""#, "a"), (r#""ab""#, "abc"), (r#""abd""#, "abc"), (r#""abcdefgX""#, "abcdefgh")]
        {
            assert!(!may(token, wanted), "{token} {wanted}");
        }
        assert!(seen(r#""abcdefgh\n""#).is_some(), "an escape behind it does not matter");
    }
}
