//! A first look at a rule that excludes most rules that do not match by a few bytes, without touching the rule itself.

use crate::action::Action;
use crate::condition::{Condition, Leaf, MethodTest};
use crate::facts::MessageView;
use crate::outcomes::Outcomes;
use crate::rule::Rule;
use crate::value_test::ValueTest;
use serde_json::Value as Json;
use signalbox_engine::chain::Phase;

/// How many bytes are compared.
const BYTES: usize = 8;

/// A rule that may match messages of one phase and method. Small, since all of them are looked at for each message.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RuleCandidate {
    /// The condition after those that hold, where it can be told from the beginning of a text: that beginning, and where
    /// the text is.
    beginning: Beginning,
    slot: u16,
    /// Its number.
    pub rule: u16,
    /// How many conditions come first that hold for all of these messages.
    held: u16,
    /// There are no others.
    fits: bool,
    /// The rule does nothing but count.
    pub tallies: bool,
}

/// The slot of a candidate that cannot be told from a text.
const NONE: u16 = u16::MAX;

/// The beginning of the text that was last looked at, since rules that follow each other mostly look at the same.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SeenBeginning {
    slot: u16,
    beginning: Option<Beginning>,
}

impl SeenBeginning {
    /// Nothing yet, or something that may have changed.
    pub const NOTHING: Self = Self { slot: NONE, beginning: None };
}

/// The first bytes of a text, as a number.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Beginning {
    word: u64,
    length: u8,
}

impl Beginning {
    /// Of what stands between the quotes of a text. None if it is not a text, or contains an escape.
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

    /// False if a text with this beginning cannot begin as the other one does.
    fn may_be(self, wanted: Self) -> bool {
        let mask = u64::MAX.checked_shr(64 - 8 * u32::from(wanted.length)).unwrap_or(0);
        self.length >= wanted.length && self.word & mask == wanted.word
    }
}

impl RuleCandidate {
    /// The candidate for messages of this phase, and of this method where it is known.
    pub fn new(at: u16, rule: &Rule, phase: Phase, method: Option<&str>) -> Self {
        let mut leaves = Vec::new();
        let all = flatten(&rule.when, &mut leaves);
        let held = leaves.iter().take_while(|leaf| holds_always(leaf, phase, method)).count();
        let (slot, beginning) =
            leaves.get(held).and_then(|leaf| prefix_test(leaf, phase)).unwrap_or((NONE, Beginning::default()));
        let fits = all && held == leaves.len();
        let tallies = rule.then.iter().all(|action| matches!(action, Action::Count { .. }));
        // A rule has far fewer conditions than that.
        Self { rule: at, tallies, held: u16::try_from(held).unwrap_or(u16::MAX), fits, slot, beginning }
    }

    /// True if the rule certainly matches; then the outcomes of its conditions are noted.
    pub fn fits(&self, outcomes: &mut Outcomes) -> bool {
        if self.fits {
            outcomes.push_run(self.held, false);
        }
        self.fits
    }

    /// True if the rule certainly does not match; then the outcomes of what was looked at are noted.
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

/// The conditions that are asked one after the other until one does not hold. Behind anything else none is known.
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
