//! `tapes_show`: shows a call's request, answer, decisions and duration.

use crate::ask_error::AskError;
use crate::call_line;
use crate::own_tapes::OwnTapes;
use crate::question::text;
use serde_json::{Value, json};
use signalbox_embedded::arguments::MAX_SAFE;
use signalbox_embedded::{Answer, Arguments};
use signalbox_engine::record::{DecisionEntry, MessageEntry};
use signalbox_tape::explain::explain_part;
use signalbox_tape::story;
use signalbox_wire::printable;

/// Names of the arguments.
pub(crate) const KEYS: [&str; 2] = ["tape", "exchange"];
/// Maximum length of a request or answer, in characters.
const MAX_BODY: usize = 16_384;
/// Maximum length of the explanation, in characters.
const MAX_STORY: usize = 32_768;
/// Maximum number of decisions listed.
const MAX_DECISIONS: usize = 100;

/// Reference to a call, and the arguments of `tapes_show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Show {
    pub(crate) tape: String,
    /// Exchange number on the tape.
    pub(crate) exchange: u64,
}

impl Show {
    pub(crate) fn read(reader: &mut Arguments<'_>) -> Option<Self> {
        reader.only(&KEYS);
        Self::named(reader)
    }

    /// Parses a reference to a call.
    pub(crate) fn named(reader: &mut Arguments<'_>) -> Option<Self> {
        let (tape, exchange) = (text(reader, "tape"), reader.whole("exchange", 0..=MAX_SAFE));
        if tape.is_none() {
            reader.problem("`tape` must name the tape of the call, as tapes_search shows it".to_owned());
        }
        if exchange.is_none() {
            reader.problem("`exchange` must be the number of the call, as tapes_search shows it".to_owned());
        }
        Some(Self { tape: tape?, exchange: exchange? })
    }

    /// Loads the call and formats it.
    pub(crate) fn answer(&self, own: &OwnTapes<'_>) -> Result<Answer, AskError> {
        let tape = own.tape(&self.tape)?;
        let call = own.call(&tape, self.exchange)?;
        let none = || AskError::NoCall { tape: tape.id.clone(), exchange: self.exchange };
        let story = call.story().ok_or_else(none)?;
        let mut told = call_line::of_story(&tape.id, &story);
        for (member, message) in [("request", story.request()), ("answer", story.answer())] {
            told.insert(member.into(), message.map_or(Value::Null, body));
        }
        let decisions: Vec<Value> = story.decisions().take(MAX_DECISIONS).map(|(_, one)| decision(one)).collect();
        told.insert("decisions".into(), decisions.into());
        let explanation = call_line::cut(&explain_part(&call.entries, call.reached_backend), MAX_STORY);
        told.insert("explanation".into(), explanation.clone().into());
        Ok(Answer { structured: Some(Value::Object(told)), ..Answer::text(explanation) })
    }
}

fn body(message: &MessageEntry) -> Value {
    let kept = story::text(message).map(|text| call_line::cut(&printable::one_line(&text), MAX_BODY));
    json!({"bytes": message.length, "redacted": message.redacted, "text": kept})
}

fn decision(decision: &DecisionEntry) -> Value {
    json!({
        "by": call_line::name(&decision.by),
        "rule": decision.rule.as_deref().map(call_line::name),
        "phase": call_line::name(&decision.phase),
        "verdict": call_line::name(&decision.verdict),
    })
}
