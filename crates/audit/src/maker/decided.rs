//! What was decided about an exchange, and which policy decided it.

use super::Words;
use crate::event::Object;
use crate::record::QUOTES;
use signalbox_engine::chain::Ruling;
use signalbox_engine::fact::Decision;
use std::sync::Arc;

/// Most decisions of one exchange that are written down.
const MAX_DECISIONS: usize = 16;
/// The input of a decision that says who was asked.
const PERSON: &str = "person";
/// Most characters of the reason of a decision.
const MAX_DETAIL: usize = 300;

/// The decisions about one exchange, in their order. That it passed, and where it goes, is not among them.
#[derive(Default, Debug)]
pub struct Decided {
    rulings: Vec<(&'static str, Arc<Ruling>)>,
    more: u64,
}

impl Decided {
    /// Takes what was decided at one time.
    pub fn take(&mut self, decision: &Decision) {
        for (by, ruling) in decision.each().filter(|(by, ruling)| *by != "route" && says_something(ruling)) {
            match self.rulings.len() < MAX_DECISIONS {
                true => self.rulings.push((by, Arc::clone(ruling))),
                false => self.more += 1,
            }
        }
    }

    /// The one that decided: the last that stopped or changed something, with a policy before one without, and the gateway's own
    /// word last.
    fn deciding(&self) -> Option<&(&'static str, Arc<Ruling>)> {
        let rank = |(by, ruling): &(&'static str, Arc<Ruling>)| match ruling.verdict {
            "pass" => 0,
            _ if *by == "gateway" => 1,
            _ if ruling.rule.is_none() => 2,
            _ => 3,
        };
        self.rulings.iter().max_by_key(|one| rank(one))
    }

    /// Whether somebody refused it.
    pub fn is_denial(&self) -> bool {
        self.rulings.iter().any(|(by, ruling)| *by != "gateway" && matches!(ruling.verdict, "refuse" | "deny"))
    }

    /// Adds that texts of decisions hold values of the message, where they do. Readers who may not see arguments get
    /// the record without these texts.
    pub fn mark(&self, details: &mut Object<'_>) {
        if self.rulings.iter().any(|(_, ruling)| ruling.quotes) {
            details.raw(QUOTES, "true");
        }
    }

    /// The reason, in words.
    pub fn detail(&self, words: &Words) -> Option<String> {
        let (_, ruling) = self.deciding()?;
        (!ruling.detail.is_empty()).then(|| words.text(&ruling.detail, MAX_DETAIL))
    }

    /// Adds the deciding policy and all decisions.
    pub fn write(&self, words: &Words, details: &mut Object<'_>) {
        let Some((by, ruling)) = self.deciding() else { return };
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
                // Other inputs may be messages, which are in records only with `payloads`.
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
