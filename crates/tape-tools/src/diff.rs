//! `tapes_diff`: compares two calls, or the latest calls of a tool on two tapes.

use crate::ask_error::AskError;
use crate::call_line;
use crate::own_tapes::{OwnCall, OwnTapes};
use crate::question::{MAX_TEXT, text};
use crate::show::Show;
use serde_json::{Value, json};
use signalbox_embedded::Arguments;
use signalbox_engine::record::{MessageEntry, Query};
use signalbox_replay::diff::{Comparison, DiffSide, Difference, Differences, Masks};
use signalbox_replay::{MatchKey, Paths};
use signalbox_tape::{Story, story};
use signalbox_wire::printable;

/// Names of the arguments.
pub(crate) const KEYS: [&str; 6] = ["first", "second", "tool", "first_tape", "second_tape", "ignore"];
/// Maximum number of differences listed for each message.
const MAX_SHOWN: usize = 50;
/// Maximum number of ignored paths.
pub(crate) const MAX_IGNORED: usize = 50;
/// Number of a tool's latest calls to search for a pair with the same arguments.
const LATEST: usize = 20;
/// Maximum length of a value or pointer in a difference, in characters.
const MAX_VALUE: usize = 300;

/// Parsed arguments of `tapes_diff`.
#[derive(Debug)]
pub(crate) struct Diff {
    of: Selection,
    comparison: Comparison,
}

#[derive(Debug)]
enum Selection {
    Calls(Box<[Show; 2]>),
    /// Latest calls of this tool on two tapes, with the same arguments if possible.
    Tool(String, [String; 2]),
}

/// Loaded call to compare.
struct Call {
    tape: String,
    exchange: u64,
    call: OwnCall,
    masks: Masks,
}

impl Diff {
    pub(crate) fn read(reader: &mut Arguments<'_>) -> Option<Self> {
        reader.only(&KEYS);
        let call = |reader: &mut Arguments<'_>, key| {
            reader.section(key, |inner| {
                inner.only(&crate::show::KEYS);
                Show::named(inner)
            })
        };
        let (first, second) = (call(reader, "first"), call(reader, "second"));
        let tool = text(reader, "tool");
        let tapes = [text(reader, "first_tape"), text(reader, "second_tape")];
        let comparison = Comparison { ignored: ignored(reader), json_in_text: true, ..Comparison::default() };
        let of = match (first, second, tool, tapes) {
            (Some(first), Some(second), None, [None, None]) => Selection::Calls(Box::new([first?, second?])),
            (None, None, Some(tool), [Some(first), Some(second)]) => Selection::Tool(tool, [first, second]),
            _ => {
                let text = "give either `first` and `second`, or `tool` with `first_tape` and `second_tape`";
                reader.problem(text.to_owned());
                return None;
            }
        };
        Some(Self { of, comparison })
    }

    /// Loads both calls and compares them.
    pub(crate) fn answer(&self, own: &OwnTapes<'_>) -> Result<Value, AskError> {
        let [first, second] = match &self.of {
            Selection::Calls(calls) => [one(own, &calls[0])?, one(own, &calls[1])?],
            Selection::Tool(tool, tapes) => pair(latest(own, tool, &tapes[0])?, latest(own, tool, &tapes[1])?),
        };
        let (stories, none) = ((first.story(), second.story()), || AskError::NoCall {
            tape: first.tape.clone(),
            exchange: first.exchange,
        });
        let (Some(one), Some(other)) = stories else { return Err(none()) };
        let requests = self.compare(&first, one.request(), &second, other.request(), "request")?;
        let answers = self.compare(&first, one.answer(), &second, other.answer(), "answer")?;
        Ok(json!({
            "first": call_line::of_story(&first.tape, &one),
            "second": call_line::of_story(&second.tape, &other),
            "request": differences_json(&requests),
            "answer": differences_json(&answers),
        }))
    }

    fn compare(
        &self,
        first: &Call,
        one: Option<&MessageEntry>,
        second: &Call,
        other: Option<&MessageEntry>,
        what: &'static str,
    ) -> Result<Differences, AskError> {
        let (one_value, other_value) = (first.value(one, what)?, second.value(other, what)?);
        let masks = |call: &Call, message: Option<&MessageEntry>| {
            message.is_some_and(|message| message.redacted).then(|| call.masks.clone())
        };
        let (one_masks, other_masks) = (masks(first, one), masks(second, other));
        Ok(self.comparison.compare_messages(
            DiffSide { message: &one_value, masks: one_masks.as_ref() },
            DiffSide { message: &other_value, masks: other_masks.as_ref() },
        ))
    }
}

impl Call {
    fn story(&self) -> Option<Story<'_>> {
        self.call.story()
    }

    fn value(&self, message: Option<&MessageEntry>, what: &'static str) -> Result<Value, AskError> {
        let value = message.and_then(story::text).and_then(|text| serde_json::from_str(&text).ok());
        value.ok_or_else(|| AskError::NotRecorded { what, tape: self.tape.clone(), exchange: self.exchange })
    }

    /// Returns the match key of its request.
    fn key(&self) -> Option<MatchKey> {
        let story = self.story()?;
        MatchKey::of(&self.value(story.request(), "request").ok()?, &Paths::default())
    }
}

fn ignored(reader: &mut Arguments<'_>) -> Paths {
    let mut paths = Paths::default();
    for text in reader.texts("ignore", MAX_IGNORED, MAX_TEXT).unwrap_or_default() {
        if let Err(error) = paths.add(&text) {
            reader.problem(format!("`ignore`: {error}"));
        }
    }
    paths
}

/// Loads a call by its number.
fn one(own: &OwnTapes<'_>, named: &Show) -> Result<Call, AskError> {
    let tape = own.tape(&named.tape)?;
    let call = own.call(&tape, named.exchange)?;
    Ok(Call { tape: tape.id, exchange: named.exchange, call, masks: Masks::of_rules(&tape.redaction) })
}

/// Returns the latest answered calls of a tool on a tape, newest first. Never empty.
fn latest(own: &OwnTapes<'_>, tool: &str, tape: &str) -> Result<Vec<Call>, AskError> {
    let tape = own.tape(tape)?;
    let query = Query {
        subject: Some(tool.to_owned()),
        methods: vec!["tools/call".to_owned()],
        only_ends: true,
        newest_first: true,
        limit: Some(LATEST),
        ..Query::default()
    };
    let mut calls = Vec::new();
    for end in own.find(&tape, query)?.0 {
        let Some(exchange) = end.exchange else { continue };
        let call = one(own, &Show { tape: tape.id.clone(), exchange })?;
        let is_whole = call.story().is_some_and(|story| call.value(story.answer(), "answer").is_ok());
        if is_whole {
            calls.push(call);
        }
    }
    match calls.is_empty() {
        true => Err(AskError::NoCallOf { tape: tape.id, tool: tool.to_owned() }),
        false => Ok(calls),
    }
}

/// Returns the newest two calls with the same arguments, or otherwise the newest two.
fn pair(mut first: Vec<Call>, mut second: Vec<Call>) -> [Call; 2] {
    let keys: Vec<Option<MatchKey>> = second.iter().map(Call::key).collect();
    let same = first.iter().enumerate().find_map(|(at, call)| {
        let key = call.key()?;
        Some((at, keys.iter().position(|other| other.as_ref() == Some(&key))?))
    });
    let (one, other) = same.unwrap_or_default();
    [first.swap_remove(one), second.swap_remove(other)]
}

fn differences_json(differences: &Differences) -> Value {
    let list: Vec<Value> = differences.list.iter().take(MAX_SHOWN).map(line).collect();
    let more = differences.more + differences.list.len().saturating_sub(MAX_SHOWN) as u64;
    json!({
        "same": differences.is_same(),
        "worst": differences.worst.map(|tier| tier.word()),
        "differences": list,
        "more": more,
        "masked": differences.masked,
    })
}

fn line(difference: &Difference) -> Value {
    let safe = |text: &str| call_line::cut(&printable::one_line(text), MAX_VALUE);
    let sides = difference.shown();
    json!({
        "pointer": safe(&difference.pointer),
        "kind": difference.kind.word(),
        "tier": difference.tier().word(),
        "first": safe(&sides.recorded),
        "second": safe(&sides.new),
    })
}
