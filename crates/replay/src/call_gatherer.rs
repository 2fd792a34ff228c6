//! Assembles calls from the entries of a tape.
//!
//! ```text
//! request ──► open ──answer──► answered ──next call of its session, or its end──► complete
//!               └──finished without an answer, or the tape ends───────────────────►┘
//! ```
//!
//! A message that names an exchange belongs to that call. A notification or server request without one belongs to the
//! latest call of its session, because a client sees it there. Calls come out in the order of their completion. For the
//! order of requests, sort by [`RecordedCall::seq`].

use crate::match_key::MatchKey;
use crate::paths::Paths;
use crate::recorded_call::{RecordedCall, RecordedMessage, Step};
use crate::recorded_side::{Heading, RecordedSide};
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind};
use signalbox_tape::Bodies;
use signalbox_wire::{Envelope, Era, meta};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum number of open calls. Beyond it, the oldest one comes out incomplete.
const MAX_OPEN: usize = 10_000;
/// Maximum number of steps stored for one call, because a stream of notifications may have no end.
const MAX_STEPS: usize = 10_000;
/// Budget in bytes for earlier bodies that later ones may refer to.
const BODY_BUDGET: usize = 8 << 20;
/// Number of entries to wait for a late answer after an exchange ends without one.
const LATE_ENTRIES: u64 = 64;

/// Assembles calls from entries in tape order.
#[derive(Debug)]
pub struct CallGatherer {
    side: RecordedSide,
    ignored: Paths,
    bodies: Bodies,
    open: HashMap<u64, OpenCall>,
    /// Exchanges in order of their requests.
    order: VecDeque<u64>,
    /// Latest call by session.
    latest: HashMap<u64, u64>,
    /// Entry counts at which to close exchanges that ended without an answer.
    late: VecDeque<(u64, u64)>,
    seen: u64,
    given: VecDeque<RecordedCall>,
}

#[derive(Debug)]
struct OpenCall {
    call: RecordedCall,
    answered: bool,
}

impl CallGatherer {
    /// Creates a gatherer for the calls of one side. Match keys leave out the ignored paths.
    #[must_use]
    pub fn new(side: RecordedSide, ignored: Paths) -> Self {
        Self {
            side,
            ignored,
            bodies: Bodies::remembering(BODY_BUDGET),
            open: HashMap::new(),
            order: VecDeque::new(),
            latest: HashMap::new(),
            late: VecDeque::new(),
            seen: 0,
            given: VecDeque::new(),
        }
    }

    /// Processes the next entry and returns it with its body restored.
    pub fn take(&mut self, entry: Entry) -> Entry {
        let entry = self.bodies.whole(entry);
        self.seen += 1;
        match &entry.content {
            Content::Message(message) => {
                if let Some(heading) = self.side.heading(message).filter(|_| message.again.is_none()) {
                    self.message(&entry, message, heading);
                }
            }
            Content::Finished(_) => {
                if let Some(number) = entry.exchange
                    && self.open.get(&number).is_some_and(|open| !open.answered)
                {
                    self.late.push_back((self.seen + LATE_ENTRIES, number));
                }
            }
            Content::SessionEnded => self.close_session(entry.session),
            _ => {}
        }
        while let Some((due, number)) = self.late.front().copied()
            && due <= self.seen
        {
            self.late.pop_front();
            self.give(number);
        }
        while self.open.len() > MAX_OPEN {
            match self.order.pop_front() {
                Some(number) => self.give(number),
                None => break,
            }
        }
        entry
    }

    /// Returns the next complete call.
    pub fn next_call(&mut self) -> Option<RecordedCall> {
        self.given.pop_front()
    }

    /// Closes every open call. To be called after the last entry.
    pub fn finish(&mut self) {
        while let Some(number) = self.order.pop_front() {
            self.give(number);
        }
    }

    /// Returns `true` if an open call has this key and a request before this position.
    #[must_use]
    pub fn waits_for(&self, key: MatchKey, before: u64) -> bool {
        self.open.values().any(|open| open.call.key == Some(key) && open.call.seq < before)
    }

    fn message(&mut self, entry: &Entry, message: &MessageEntry, heading: Heading) {
        let said = RecordedMessage { at: entry.at, bytes: recorded_body(message), redacted: message.redacted };
        match (heading, message.kind, entry.exchange) {
            (Heading::ToServer, MessageKind::Request, Some(number)) if !self.open.contains_key(&number) => {
                self.begin(entry, number, message, said);
            }
            (Heading::ToServer, MessageKind::Result | MessageKind::Error, _) => self.answered_question(entry, said),
            (Heading::ToClient, MessageKind::Notification | MessageKind::Request, _) => {
                let step = Step { said, asks: message.kind == MessageKind::Request, answer: None };
                self.step(entry, step);
            }
            (Heading::ToClient, MessageKind::Result | MessageKind::Error, Some(number)) => {
                self.answer(entry, number, said);
            }
            _ => {}
        }
    }

    fn begin(&mut self, entry: &Entry, number: u64, message: &MessageEntry, said: RecordedMessage) {
        let request = said.bytes.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        let key = request.as_ref().and_then(|request| MatchKey::of(request, &self.ignored));
        let call = RecordedCall {
            number,
            session: entry.session,
            seq: entry.seq,
            last: entry.seq,
            began: entry.at,
            era: request.as_ref().map_or(Era::Legacy, era),
            method: message.method.clone().unwrap_or_default(),
            subject: message.subject.clone(),
            request: said.bytes,
            key: key.filter(|_| !message.redacted),
            steps: Vec::new(),
            answer: None,
            afterwards: Vec::new(),
            redacted: message.redacted,
        };
        if let Some(session) = entry.session
            && let Some(before) = self.latest.insert(session, number)
            && self.open.get(&before).is_some_and(|open| open.answered)
        {
            self.give(before);
        }
        self.order.push_back(number);
        self.open.insert(number, OpenCall { call, answered: false });
    }

    fn step(&mut self, entry: &Entry, step: Step) {
        let Some(open) = self.owner(entry) else { return };
        open.call.last = entry.seq;
        let steps = if open.answered { &mut open.call.afterwards } else { &mut open.call.steps };
        if steps.len() < MAX_STEPS {
            steps.push(step);
        }
    }

    /// Assigns the answer to the first open server request whose id matches.
    fn answered_question(&mut self, entry: &Entry, answer: RecordedMessage) {
        let Some(open) = self.owner(entry) else { return };
        open.call.last = entry.seq;
        let id = answer.bytes.as_ref().and_then(id);
        let mut waiting = open.call.steps.iter_mut().filter(|step| step.asks && step.answer.is_none());
        let fits = |step: &&mut Step| id.is_none() || step.said.bytes.as_ref().and_then(self::id) == id;
        if let Some(step) = waiting.find(fits) {
            step.answer = Some(answer);
        }
    }

    fn answer(&mut self, entry: &Entry, number: u64, said: RecordedMessage) {
        let Some(open) = self.open.get_mut(&number) else { return };
        open.call.last = entry.seq;
        open.call.answer = Some(said);
        open.answered = true;
        let is_latest = entry.session.is_some_and(|session| self.latest.get(&session) == Some(&number));
        if !is_latest {
            self.give(number);
        }
    }

    /// Returns the call that a message belongs to.
    fn owner(&mut self, entry: &Entry) -> Option<&mut OpenCall> {
        let number = entry.exchange.filter(|number| self.open.contains_key(number));
        let number = number.or_else(|| self.latest.get(&entry.session?).copied())?;
        self.open.get_mut(&number)
    }

    fn close_session(&mut self, session: Option<u64>) {
        if let Some(number) = session.and_then(|session| self.latest.remove(&session)) {
            self.give(number);
        }
    }

    fn give(&mut self, number: u64) {
        if let Some(open) = self.open.remove(&number) {
            self.given.push_back(open.call);
        }
        // Drop closed calls from the front, so that the queue does not grow with the tape.
        while self.order.front().is_some_and(|number| !self.open.contains_key(number)) {
            self.order.pop_front();
        }
    }
}

fn recorded_body(message: &MessageEntry) -> Option<Bytes> {
    match &message.body {
        Body::Whole(bytes) => Some(bytes.clone()),
        _ => None,
    }
}

fn id(bytes: &Bytes) -> Option<Bytes> {
    Envelope::parse(bytes.clone()).ok()?.id().map(|id| id.bytes().clone())
}

/// Returns the era of a request. Only modern requests name their revision.
pub(crate) fn era(request: &Value) -> Era {
    let named = request.get("params").and_then(|params| params.get(meta::META)?.get(meta::PROTOCOL_VERSION));
    if named.is_some() { Era::Modern } else { Era::Legacy }
}

/// Collects all calls of these entries, in the order of their requests.
///
/// # Errors
/// The first error of `entries`.
pub fn gather<E>(
    entries: impl Iterator<Item = Result<Entry, E>>,
    side: RecordedSide,
    ignored: Paths,
) -> Result<Vec<Arc<RecordedCall>>, E> {
    let mut gatherer = CallGatherer::new(side, ignored);
    let mut calls = Vec::new();
    for entry in entries {
        gatherer.take(entry?);
        calls.extend(std::iter::from_fn(|| gatherer.next_call()).map(Arc::new));
    }
    gatherer.finish();
    calls.extend(std::iter::from_fn(|| gatherer.next_call()).map(Arc::new));
    calls.sort_by_key(|call| call.seq);
    Ok(calls)
}
