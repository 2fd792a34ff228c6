//! Decisions about one exchange, and the policy that was decisive.

use super::TextPolicy;
use crate::event::Object;
use crate::record::QUOTES;
use signalbox_engine::chain::Ruling;
use signalbox_engine::fact::Decision;
use signalbox_engine::local_answer::LocalAnswer;
use std::sync::Arc;

/// Author of the gateway's own rulings.
const GATEWAY: &str = "gateway";
/// Maximum number of recorded decisions of one exchange.
const MAX_DECISIONS: usize = 16;
/// Input of a decision that names the approver.
const PERSON: &str = "person";
/// Maximum number of characters of the reason of a decision.
const MAX_DETAIL: usize = 300;

/// Decisions about one exchange, in order. Routing and plain passes are not among them.
#[derive(Default, Debug)]
pub struct ExchangeDecisions {
    rulings: Vec<(&'static str, Arc<Ruling>)>,
    more: u64,
    answered_here: bool,
}

impl ExchangeDecisions {
    /// Adds the rulings of one decision.
    pub fn take(&mut self, decision: &Decision) {
        self.answered_here |= decision.each().any(|(by, ruling)| LocalAnswer::is_ruling(by, ruling));
        for (by, ruling) in decision.each().filter(|(by, ruling)| *by != "route" && says_something(ruling)) {
            match self.rulings.len() < MAX_DECISIONS {
                true => self.rulings.push((by, Arc::clone(ruling))),
                false => self.more += 1,
            }
        }
    }

    /// Returns the decisive ruling: the last that stopped or changed something. One with a policy precedes one without,
    /// and the gateway's own comes last. Of a call that failed it comes first, unless something else stopped the call.
    fn deciding(&self, failed: bool) -> Option<&(&'static str, Arc<Ruling>)> {
        let stops = |(by, ruling): &(&'static str, Arc<Ruling>)| {
            *by != GATEWAY && matches!(ruling.verdict, "refuse" | "deny" | "hold")
        };
        let by_gateway = failed && !self.rulings.iter().any(stops);
        let rank = |(by, ruling): &(&'static str, Arc<Ruling>)| match ruling.verdict {
            "pass" => 0,
            _ if *by == GATEWAY => {
                if by_gateway {
                    4
                } else {
                    1
                }
            }
            _ if ruling.rule.is_none() => 2,
            _ => 3,
        };
        self.rulings.iter().max_by_key(|one| rank(one))
    }

    /// Returns true if a policy or an approver rejected the exchange.
    pub fn is_denial(&self) -> bool {
        self.rulings.iter().any(|(by, ruling)| *by != GATEWAY && matches!(ruling.verdict, "refuse" | "deny"))
    }

    /// Returns true if the gateway answered the call in its backend's place, after its intent was recorded.
    pub fn is_answered_here(&self) -> bool {
        self.answered_here
    }

    /// Marks the record if texts of its decisions quote the message. Readers without access to arguments get the record
    /// without these texts.
    pub fn mark(&self, details: &mut Object<'_>) {
        if self.rulings.iter().any(|(_, ruling)| ruling.quotes) {
            details.raw(QUOTES, "true");
        }
    }

    /// Returns the reason of the decisive ruling.
    pub fn detail(&self, words: &TextPolicy, failed: bool) -> Option<String> {
        let (_, ruling) = self.deciding(failed)?;
        (!ruling.detail.is_empty()).then(|| words.text(&ruling.detail, MAX_DETAIL))
    }

    /// Writes the decisive policy and all decisions, of a call that failed or not.
    pub fn write(&self, words: &TextPolicy, details: &mut Object<'_>, failed: bool) {
        let Some((by, ruling)) = self.deciding(failed) else { return };
        match &ruling.rule {
            Some(rule) => details.text("policy", &[*by, "/", rule].concat()),
            None => details.text("policy", by),
        }
        details.text("verdict", ruling.verdict);
        self.mark(details);
        let each = self.rulings.iter().map(|(by, ruling)| {
            move |out: &mut String| {
                let mut one = Object::new(out);
                one.text("by", by);
                one.maybe("rule", ruling.rule.as_deref());
                one.text("verdict", ruling.verdict);
                if !ruling.detail.is_empty() {
                    one.text("detail", &words.text(&ruling.detail, MAX_DETAIL));
                }
                // Other inputs may be messages, which records contain only with `payloads`.
                let person = ruling.inputs.iter().find(|(name, _)| *name == PERSON);
                one.maybe(PERSON, person.map(|(_, person)| words.text(person, MAX_DETAIL)).as_deref());
                one.finish();
            }
        });
        details.array("decisions", each);
        if self.more > 0 {
            details.number("decisions_left_out", self.more);
        }
    }
}

fn says_something(ruling: &Ruling) -> bool {
    ruling.verdict != "pass" || ruling.rule.is_some()
}
