//! Reads one tape: what is kept of its calls, and what else has to be known of it.

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

/// Most calls of one tape that are compared.
const MAX_CALLS: usize = 3_000_000;

/// What is kept of a call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Its number on the tape.
    pub number: u64,
    /// Where it began on the tape.
    began: u64,
    /// What finds it on the other tape.
    pub key: Option<MatchKey>,
    /// Its method and tool, by number.
    pub name: u32,
    pub outcome: Arc<str>,
    /// In nanoseconds.
    pub took: u64,
    pub request: Message,
    /// None if it was not answered.
    pub answer: Option<Message>,
}

/// What is kept of a message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// None if its body is not on the tape.
    place: Option<Place>,
    /// Equal for messages that do not differ; none where nothing can be said without comparing.
    pub digest: Option<Digest>,
    pub redacted: bool,
}

impl Message {
    /// True if its body is not on the tape.
    pub fn is_left(&self) -> bool {
        self.place.is_none()
    }
}

/// One tape.
pub(super) struct Reel {
    pub calls: Vec<Call>,
    pub offers: Offers,
    spool: Spool,
    gaps: u64,
    /// Calls without a request, and calls beyond the bound.
    partial: u64,
    beyond: u64,
}

impl Reel {
    pub fn read(
        source: &mut TapeSource,
        session: Option<u64>,
        settings: &TapeDiffSettings,
        masks: &Masks,
        names: &mut Names,
        mut decryptor: Option<&mut Decryptor>,
    ) -> Result<Self, TapeDiffError> {
        let (calls, offers) = (Vec::new(), Offers::default());
        let mut reel = Self { calls, offers, spool: Spool::new()?, gaps: 0, partial: 0, beyond: 0 };
        // What belongs to no call, such as what a backend offers, is wanted of every session.
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
                    Content::Gap(gap) => reel.gaps += gap.facts,
                    Content::Backend(seen) => reel.offers.seen(*seen),
                    _ => {}
                },
                Piece::Exchange(entries) => {
                    if let Some(story) = Story::new(&entries) {
                        reel.story(&story, settings, masks, names)?;
                    }
                }
            }
        }
        reel.calls.sort_by_key(|call| call.began);
        Ok(reel)
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

    /// A message; none if its body is not on the tape.
    pub fn message(&mut self, message: &Message) -> Result<Option<Value>, TapeDiffError> {
        let Some(place) = message.place else { return Ok(None) };
        Ok(Some(parsed(&self.spool.get(place)?)))
    }

    /// What has to be said of this tape before anything is believed that is missing from it.
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
        Body::Whole(bytes) => Some(parsed(bytes)),
        _ => None,
    }
}

/// A message as JSON; what is no JSON is compared as a text.
fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| json!({"raw": String::from_utf8_lossy(bytes)}))
}

/// What finds a call on the other tape. Where the request is not on the tape, that is its tool.
fn key(story: &Story<'_>, request: Option<Value>, ignored: &Paths, masks: &Masks) -> Option<MatchKey> {
    let mut request = request.unwrap_or(Value::Null);
    masks.settle(&mut request);
    MatchKey::of(&request, ignored).or_else(|| {
        let left = json!({"method": "left out", "params": {"method": story.method, "subject": story.subject}});
        MatchKey::of(&left, &Paths::default())
    })
}
