//! Reads one tape and indexes its calls.

use super::names::Names;
use super::offers::Offers;
use super::spool::{Place, Spool};
use super::{TapeDiffError, TapeDiffSettings};
use crate::MatchKey;
use crate::counted::counted;
use crate::diff::{Digest, Masks};
use crate::paths::Paths;
use serde_json::{Value, json};
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind};
use signalbox_tape::redact::Decryptor;
use signalbox_tape::{Gather, Piece, Story, TapeSource};
use signalbox_wire::glob::{self, Wildcards};
use std::sync::Arc;

/// Maximum number of calls compared per tape.
const MAX_CALLS: usize = 3_000_000;

/// Index entry of a call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub number: u64,
    /// Position of its first entry.
    began: u64,
    /// Key for finding its counterpart.
    pub key: Option<MatchKey>,
    /// Index of its method and subject in [`Names`].
    pub name: u32,
    pub outcome: Arc<str>,
    /// Duration of the call, in nanoseconds.
    pub took: u64,
    pub request: Message,
    /// Answer, or `None` if there was none.
    pub answer: Option<Message>,
}

/// Index entry of a message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Position in the spool, or `None` if the body was not recorded.
    place: Option<Place>,
    /// Digest that is equal for messages without differences. `None` if they must be compared in full.
    pub digest: Option<Digest>,
    pub redacted: bool,
}

impl Message {
    /// Returns `true` if the body was not recorded.
    pub fn is_left(&self) -> bool {
        self.place.is_none()
    }
}

/// Calls and offers of one tape. Message bodies stay in the spool.
pub(super) struct TapeIndex {
    pub calls: Vec<Call>,
    pub offers: Offers,
    spool: Spool,
    gaps: u64,
    /// Number of calls without a request. `beyond` counts those above the limit.
    partial: u64,
    beyond: u64,
}

impl TapeIndex {
    pub fn read(
        source: &mut TapeSource,
        session: Option<u64>,
        settings: &TapeDiffSettings,
        masks: &Masks,
        names: &mut Names,
        mut decryptor: Option<&mut Decryptor>,
    ) -> Result<Self, TapeDiffError> {
        let (calls, offers) = (Vec::new(), Offers::default());
        let mut tape_index = Self { calls, offers, spool: Spool::new()?, gaps: 0, partial: 0, beyond: 0 };
        // Entries outside of any call, such as a backend's offer, apply to every session.
        let wanted = |entry: &Entry| session.is_none() || entry.session == session || entry.exchange.is_none();
        let entries = source.entries(None).filter(|entry| entry.as_ref().map_or(true, wanted));
        let mut entries = entries.map(|entry| {
            let entry = entry?;
            Ok(match &mut decryptor {
                Some(decryptor) => decryptor.entry(entry),
                None => entry,
            })
        });
        for piece in Gather::new(&mut entries) {
            match piece? {
                Piece::Loose(entry) => match entry.content {
                    Content::Gap(gap) => tape_index.gaps += gap.facts,
                    Content::Backend(seen) => tape_index.offers.seen(*seen),
                    _ => {}
                },
                Piece::Exchange(entries) => {
                    if let Some(story) = Story::new(&entries) {
                        tape_index.story(&story, settings, masks, names)?;
                    }
                }
            }
        }
        tape_index.calls.sort_by_key(|call| call.began);
        Ok(tape_index)
    }

    fn story(
        &mut self,
        story: &Story<'_>,
        settings: &TapeDiffSettings,
        masks: &Masks,
        names: &mut Names,
    ) -> Result<(), TapeDiffError> {
        let fits = |pattern: &String| glob::fits(pattern, story.method, Wildcards::Star);
        let wanted = (settings.methods.is_empty() || settings.methods.iter().any(fits))
            && settings.tool.as_deref().is_none_or(|tool| story.subject == Some(tool));
        let Some(request) = story.request().filter(|request| request.kind == MessageKind::Request) else {
            self.partial += u64::from(wanted && story.finished.is_some());
            return Ok(());
        };
        let answer = story.answer();
        let asked = value(request);
        let answered = answer.and_then(value);
        self.offers.listed(story.method, asked.as_ref(), answered.as_ref());
        if !wanted {
            return Ok(());
        }
        if self.calls.len() >= MAX_CALLS {
            self.beyond += 1;
            return Ok(());
        }
        let key = key(story, asked, &settings.comparison.ignored, masks);
        let digest = answered.map(|answered| settings.comparison.digest(&answered));
        let (request, answer) =
            (self.keep(request, None)?, answer.map(|answer| self.keep(answer, digest)).transpose()?);
        self.calls.push(Call {
            number: story.number,
            began: story.entries.first().map_or(0, |entry| entry.seq),
            key,
            name: names.number(story.method, story.subject),
            outcome: names.outcome(story.outcome),
            took: story.took,
            request,
            answer,
        });
        Ok(())
    }

    fn keep(&mut self, message: &MessageEntry, digest: Option<Digest>) -> Result<Message, TapeDiffError> {
        let place = match &message.body {
            Body::Whole(bytes) => Some(self.spool.put(bytes)?),
            _ => None,
        };
        // Equal masks may hide different values.
        let digest = digest.filter(|_| !message.redacted);
        Ok(Message { place, digest, redacted: message.redacted })
    }

    /// Loads a message, or returns `None` if its body was not recorded.
    pub fn message(&mut self, message: &Message) -> Result<Option<Value>, TapeDiffError> {
        let Some(place) = message.place else { return Ok(None) };
        Ok(Some(parse_message(&self.spool.get(place)?)))
    }

    /// Returns the caveats to show before any calls are reported as missing.
    pub fn notes(&self, source: &TapeSource, which: &str) -> Vec<String> {
        let info = source.info();
        let mut notes = Vec::new();
        let mut note = |text: String| notes.push(format!("{which} {text}"));
        if !matches!(info.sampling.as_str(), "" | "all") {
            note(format!("is sampled ({}): calls that are missing may just not be recorded", info.sampling));
        }
        if self.gaps > 0 {
            let facts = counted(self.gaps, "fact");
            note(format!("has gaps ({facts}): calls that are missing may just not be recorded"));
        }
        if let Some(missing) = source.missing() {
            note(format!("is incomplete: {missing}"));
        }
        if self.partial > 0 {
            let calls = counted(self.partial, "call");
            let without = if self.partial == 1 { "its request, which is" } else { "their requests, which are" };
            note(format!("has {calls} without {without} not compared"));
        }
        if self.beyond > 0 {
            let last = if self.beyond == 1 { "one is".to_owned() } else { format!("{} are", self.beyond) };
            note(format!("has more than {MAX_CALLS} calls; the last {last} not compared"));
        }
        notes
    }
}

fn value(message: &MessageEntry) -> Option<Value> {
    match &message.body {
        Body::Whole(bytes) => Some(parse_message(bytes)),
        _ => None,
    }
}

/// Parses a message. Invalid JSON is compared as text.
fn parse_message(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| json!({"raw": String::from_utf8_lossy(bytes)}))
}

/// Returns the match key of a call. Without a recorded request, the key consists of the method and subject.
fn key(story: &Story<'_>, request: Option<Value>, ignored: &Paths, masks: &Masks) -> Option<MatchKey> {
    let mut request = request.unwrap_or(Value::Null);
    masks.settle(&mut request);
    MatchKey::of(&request, ignored).or_else(|| {
        let left = json!({"method": "left out", "params": {"method": story.method, "subject": story.subject}});
        MatchKey::of(&left, &Paths::default())
    })
}
