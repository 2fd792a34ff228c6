//! Turns facts into entries: assigns exchanges and sessions, redacts, and passes entries to the sampling buffer.

mod other_facts;
mod tape_change;
mod transport_data;

use super::clients::Clients;
use super::clock::{Anchor, Clock};
use super::counters::{Counters, GapReason};
use super::exchanges::{BaseBody, Exchanges, Forgotten};
use super::introductions::Introductions;
use super::message::{self, MessageInfo, Overlap};
use super::numbering::way;
use super::recorder_input::{QueuedInput, RecorderInput};
use super::redaction_ahead::redact_ahead;
use super::sampling_buffer::{Beginning, Ending, SamplingBuffer};
use super::session_hash::SessionHash;
use super::sessions::{self, EntrySession, Sessions};
use super::settings::RecorderSettings;
use super::withheld::Withheld;
use super::words::Words;
use crate::redact::{Redaction, Redactor};
use signalbox_engine::fact::{Decision, FinishedFact, MessageFact, Point};
use signalbox_engine::record::{
    Body, ClientEntry, Content, Entry, FinishedEntry, Gap, MessageEntry, MessageKind, SessionInfo,
};
use signalbox_engine::{Caller, ClientProfile, ExchangeId, Fact, SessionKey};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Interval of the search for exchanges without an end, in nanoseconds.
const SWEEP_EVERY: u64 = 10_000_000_000;

#[derive(Debug)]
pub(crate) struct EntryBuilder {
    clock: Clock,
    sessions: Sessions,
    session_hash: Option<SessionHash>,
    clients: Clients,
    exchanges: Exchanges,
    sampling_buffer: SamplingBuffer,
    redactor: Redactor,
    words: Words,
    withheld: Withheld,
    bodies: bool,
    max_body: usize,
    orphan_after: Duration,
    swept: u64,
    forgotten: Vec<Forgotten>,
    counters: Arc<Counters>,
}

/// A message with its time on the clock of the tape.
struct TimedFact<'a> {
    at: u64,
    principal: Arc<str>,
    fact: &'a MessageFact,
    /// Result of the redaction, if it was done ahead.
    redacted: Option<Redaction>,
}

impl EntryBuilder {
    /// Creates a maker. `has_next` tells whether other tapes follow the first one.
    pub(crate) fn new(
        settings: &RecorderSettings,
        redactor: Redactor,
        anchor: Anchor,
        counters: Arc<Counters>,
        has_next: bool,
    ) -> Self {
        let (introductions, sessions) = match has_next {
            true => (Introductions::for_series(), Sessions::for_series()),
            false => Default::default(),
        };
        Self {
            clock: Clock::new(anchor),
            sessions,
            session_hash: settings.session_hash.clone(),
            clients: Clients::default(),
            exchanges: Exchanges::default(),
            sampling_buffer: SamplingBuffer::new(settings, introductions, Arc::clone(&counters)),
            redactor,
            words: Words::default(),
            withheld: Withheld::default(),
            bodies: settings.bodies,
            max_body: settings.max_body,
            orphan_after: settings.orphan_after,
            swept: anchor.unix,
            forgotten: Vec::new(),
            counters,
        }
    }

    /// Processes one input, and adds the entries that may be written now to `out`.
    pub(crate) fn told(&mut self, told: RecorderInput, redacted: Option<Redaction>, out: &mut Vec<Entry>) {
        match told {
            RecorderInput::Fact(fact) => self.fact(fact, redacted, out),
            RecorderInput::Backend(at, seen) => self.backend(at, *seen, out),
            RecorderInput::Rules(at, rules) => self.rules(at, *rules, out),
            RecorderInput::Withhold(_, backends) => self.withheld.set(backends),
        }
        self.forget();
        self.sampling_buffer.release(self.clock.last(), out);
    }

    /// Redacts large messages that wait for their turn. Returns the number of inputs that need no further look.
    pub(crate) fn redact_ahead(&self, ready: &mut VecDeque<QueuedInput>) -> usize {
        // Redacting messages that sampling may still drop would be wasted work.
        let is_whole = self.bodies && self.sampling_buffer.keeps_all() && self.withheld.is_empty();
        match is_whole && !self.redactor.asks_for_method() {
            true => redact_ahead(ready, &self.redactor, self.max_body),
            false => ready.len(),
        }
    }

    fn fact(&mut self, fact: Fact, redacted: Option<Redaction>, out: &mut Vec<Entry>) {
        match fact {
            Fact::Message(fact) => {
                let (at, principal) = (self.clock.at(fact.at), fact.caller.principal().shared());
                self.message(TimedFact { at, principal, fact: &fact, redacted }, out);
            }
            Fact::Decision(decision) => self.decision(&decision, out),
            Fact::Session(fact) => {
                let at = self.clock.at(fact.at);
                let number = self.sessions.enter(&fact);
                let info = sessions::of_fact(&fact, self.session_hash.as_ref());
                let content = Content::Session(self.redact_introduction(info));
                self.put(at, Some(number), None, fact.caller.principal().shared(), content, out);
            }
            Fact::SessionEnded { at, session, caller } => {
                let at = self.clock.at(at);
                if let Some(number) = self.session(session) {
                    self.put(at, Some(number), None, caller.principal().shared(), Content::SessionEnded, out);
                    self.sessions.end(session);
                }
            }
            Fact::Finished(finished) => self.finished(&finished, out),
            Fact::Lost(lost) => self.lost(&lost, out),
            Fact::Refused(refused) => self.refused(&refused, out),
        }
    }

    /// Adds an entry for facts that are missing here.
    pub(crate) fn gap(&mut self, reason: GapReason, facts: u64, out: &mut Vec<Entry>) {
        let content = Content::Gap(Gap { facts, reason: reason.word().to_owned() });
        self.put(self.clock.last(), None, None, Arc::default(), content, out);
        self.sampling_buffer.release(self.clock.last(), out);
    }

    /// Writes the content of the ring.
    pub(crate) fn trigger(&mut self, out: &mut Vec<Entry>) {
        self.sampling_buffer.fire_all();
        self.sampling_buffer.release(self.clock.last(), out);
    }

    /// Decides overdue exchanges, and forgets those without an end.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<Entry>) {
        // No entry is made here, so the clock must not advance past facts that are still to come.
        let now = self.clock.time_of(now);
        if now.saturating_sub(self.swept) >= SWEEP_EVERY.min(self.orphan_after.as_nanos() as u64) {
            self.swept = now;
            self.exchanges.sweep(now, self.orphan_after, &mut self.forgotten);
            self.forget();
        }
        self.sampling_buffer.release(now, out);
    }

    /// Adds the remaining entries, and returns the time at which the tape ends.
    pub(crate) fn close(&mut self, now: Instant, out: &mut Vec<Entry>) -> u64 {
        self.sampling_buffer.close(out);
        self.clock.at(now)
    }

    /// Copies the remembered bodies, which must not stay charged to their senders while the store fails.
    pub(crate) fn own_bodies(&mut self) {
        self.exchanges.own_bases();
        self.sampling_buffer.own_bases();
    }

    fn message(&mut self, mut passing: TimedFact<'_>, out: &mut Vec<Entry>) {
        let fact = passing.fact;
        let mut seen = message::look(&fact.bytes, fact.point);
        let mut redacted = false;
        let withheld = self.is_withheld(&passing);
        let known = passing.redacted.take();
        let number = fact.exchange.map(|id| self.enter(&passing, id, &mut seen, &mut redacted));
        let beginning = Beginning {
            method: seen.method.as_deref(),
            tool: seen.subject.as_deref(),
            principal: &passing.principal,
            backend: fact.backend.as_deref(),
            at: passing.at,
        };
        if self.sampling_buffer.drops(number) || number.is_none() && self.sampling_buffer.drops_loose(beginning) {
            self.counters.sampled_out.fetch_add(1, Relaxed);
            return;
        }
        let body = if withheld { Body::Left } else { self.body(fact, &seen, known, &mut redacted) };
        if let Some(id) = fact.exchange {
            self.exchanges.passed(id, fact.point, seen.kind);
        }
        let content = Content::Message(MessageEntry {
            method: seen.method,
            subject: seen.subject,
            backend: fact.backend.clone(),
            error_code: seen.error_code,
            number: fact.number,
            own: fact.own,
            again: fact.again,
            lost: fact.lost.map(Into::into),
            redacted,
            carried: fact.carried.as_ref().map(|carried| self.carried(carried, redacted)),
            ..MessageEntry::new(fact.point, seen.kind, fact.bytes.len() as u64, body)
        });
        let session = self.session(fact.session);
        self.put(passing.at, session, number, Arc::clone(&passing.principal), content, out);
    }

    /// Returns true if the body of a message is left out because of the backends that its exchange has reached.
    fn is_withheld(&mut self, passing: &TimedFact<'_>) -> bool {
        let fact = passing.fact;
        let mut withheld = self.withheld.concerns(fact);
        if let Some(id) = fact.exchange {
            let open = self.exchanges.enter(id, passing.at, &mut self.forgotten);
            open.withheld |= withheld;
            withheld |= open.withheld && fact.point != Point::ClientIn;
        }
        withheld |= self.withheld.repeats(fact);
        if withheld && fact.point == Point::ClientOut {
            self.withheld.note(fact);
        }
        withheld
    }

    /// Finds the exchange of a message, begins it with its first message, and copies method and subject of the request.
    fn enter(&mut self, passing: &TimedFact<'_>, id: ExchangeId, seen: &mut MessageInfo, redacted: &mut bool) -> u64 {
        let fact = passing.fact;
        let open = self.exchanges.enter(id, passing.at, &mut self.forgotten);
        match (seen.kind, way(fact.point)) {
            (MessageKind::Request, 0) if open.method.is_none() => {
                // The subject may hold a secret too, such as a URI with a key in its query.
                let subject = seen.subject.as_ref().map(|subject| self.words.redacted(subject, &self.redactor));
                open.redacted = subject != seen.subject;
                seen.subject = subject;
                open.method.clone_from(&seen.method);
                open.subject.clone_from(&seen.subject);
            }
            // The backend knows the subject by another name.
            (MessageKind::Request, 0) => seen.subject.clone_from(&open.subject),
            (MessageKind::Request, _) => open.asked.clone_from(&seen.method),
            // An answer of the client belongs to the backend's request.
            (MessageKind::Result | MessageKind::Error, 0) => seen.method.clone_from(&open.asked),
            (MessageKind::Result | MessageKind::Error, _) => {
                seen.method.clone_from(&open.method);
                seen.subject.clone_from(&open.subject);
            }
            (MessageKind::Notification, _) => seen.subject.clone_from(&open.subject),
            (MessageKind::Raw, _) => seen.method.clone_from(&open.method),
        }
        *redacted = open.redacted && seen.subject.is_some();
        let backend = fact.backend.as_deref();
        if !std::mem::replace(&mut open.begun, true) {
            let (method, tool) = (open.method.as_deref(), open.subject.as_deref());
            let (principal, at) = (&*passing.principal, passing.at);
            self.sampling_buffer.begin(id.0, Beginning { method, tool, principal, backend, at });
        } else {
            self.sampling_buffer.backend(id.0, backend);
        }
        id.0
    }

    fn body(&mut self, fact: &MessageFact, seen: &MessageInfo, known: Option<Redaction>, redacted: &mut bool) -> Body {
        if !self.bodies || fact.bytes.len() > self.max_body {
            return Body::Left;
        }
        let second = matches!(fact.point, Point::BackendOut | Point::ClientOut);
        let base = fact.exchange.filter(|_| second).and_then(|id| self.exchanges.base(id, fact.point));
        // Numbers are never redacted, so an image that differs only in a numeric id need not be redacted again.
        if let (Some(base), Some(id)) = (base, seen.id)
            && let Some(base_id) = base.plain_id
            && let overlap = Overlap::of(&base.bytes, &fact.bytes)
            && overlap.differs_within(&base.bytes, base_id)
            && overlap.differs_within(&fact.bytes, id)
            && let Some(like) = overlap.like(&fact.bytes)
        {
            return like;
        }
        let mut plain_id = None;
        let kept = known.unwrap_or_else(|| self.redactor.message(&fact.bytes, seen.method.as_deref()));
        let bytes = match kept {
            Redaction::Same => {
                plain_id = seen.id;
                fact.bytes.clone()
            }
            Redaction::Changed(bytes) => {
                self.counters.redacted.fetch_add(1, Relaxed);
                *redacted = true;
                bytes
            }
            Redaction::Withheld => {
                self.counters.withheld.fetch_add(1, Relaxed);
                *redacted = true;
                return Body::Left;
            }
        };
        let Some(id) = fact.exchange else { return Body::Whole(bytes) };
        if second
            && let Some(base) = self.exchanges.base(id, fact.point)
            && let Some(like) = Overlap::of(&base.bytes, &bytes).like(&bytes)
        {
            return like;
        }
        self.exchanges.set_base(id, way(fact.point), Some(BaseBody { bytes: bytes.clone(), plain_id }));
        Body::Whole(bytes)
    }

    fn decision(&mut self, decision: &Decision, out: &mut Vec<Entry>) {
        let at = self.clock.at(decision.at);
        let principal = decision.caller.principal().as_str();
        let mut number = None;
        if let Some(id) = decision.exchange {
            let open = self.exchanges.enter(id, at, &mut self.forgotten);
            number = Some(id.0);
            // The request was lost. The end of the exchange, which repeats method and subject, begins it for filters.
            if !open.begun && self.sampling_buffer.wants_all() {
                open.begun = true;
                let beginning = Beginning { method: None, tool: None, principal, backend: None, at };
                self.sampling_buffer.begin(id.0, beginning);
            }
        }
        for (_, ruling) in decision.each() {
            self.sampling_buffer.decided(number, ruling.verdict);
        }
        let loose = Beginning { method: None, tool: None, principal, backend: None, at };
        if self.sampling_buffer.drops(number) || number.is_none() && self.sampling_buffer.drops_loose(loose) {
            self.counters.sampled_out.fetch_add(1, Relaxed);
            return;
        }
        let principal = decision.caller.principal().shared();
        let phase = decision.phase;
        let mut decided = Vec::new();
        for (by, rulings) in &decision.rulings {
            self.words.all_told(by, phase, rulings, &self.redactor, &mut decided);
        }
        let session = self.session(decision.session);
        self.put(at, session, number, principal, Content::Decisions(decided), out);
    }

    fn finished(&mut self, finished: &FinishedFact, out: &mut Vec<Entry>) {
        let at = self.clock.at(finished.at);
        let principal = finished.caller.principal().as_str();
        let number = finished.exchange.0;
        let open = self.exchanges.enter(finished.exchange, at, &mut self.forgotten);
        let first = !std::mem::replace(&mut open.begun, true);
        let (open_method, mut redacted) = (open.method.clone(), open.redacted);
        let subject = match &open.subject {
            None => finished.subject.as_deref().map(|subject| {
                let kept = self.redactor.text(subject.to_owned());
                redacted = kept != subject;
                kept.into()
            }),
            known => known.clone(),
        };
        let took = u64::try_from(finished.took.as_nanos()).unwrap_or(u64::MAX);
        let (outcome, backend) = (finished.outcome.label(), finished.backend.as_deref());
        if first {
            let (method, tool) = (Some(&*finished.method), subject.as_deref());
            self.sampling_buffer.begin(number, Beginning { method, tool, principal, backend, at });
        }
        let counts = is_call(open_method.as_deref().unwrap_or(&*finished.method));
        self.sampling_buffer.end(number, Ending { backend, outcome, took, at, counts });
        if self.sampling_buffer.drops(Some(number)) {
            self.counters.sampled_out.fetch_add(1, Relaxed);
        } else {
            let session = self.session(finished.session);
            let client = match session {
                Some(_) => None,
                None => Some(self.client(at, &finished.caller, finished.client.as_deref())),
            };
            let content = Content::Finished(FinishedEntry {
                method: open_method.unwrap_or_else(|| Arc::from(&*finished.method)),
                subject,
                backend: finished.backend.clone(),
                outcome: outcome.into(),
                took,
                bytes_in: finished.bytes_in as u64,
                bytes_out: finished.bytes_out as u64,
                operation: (finished.operation != finished.exchange).then_some(finished.operation.0),
                round: finished.round,
                client,
                redacted,
            });
            let principal = finished.caller.principal().shared();
            self.put(at, session, Some(number), principal, content, out);
        }
        self.exchanges.end(finished.exchange, &mut self.forgotten);
    }

    /// Returns the number of a caller without a session, and registers the description of a new caller.
    fn client(&mut self, at: u64, caller: &Caller, said: Option<&ClientProfile>) -> u64 {
        let (number, told) = self.clients.number(caller, said, at);
        if let Some(ClientEntry { number, info }) = told {
            let content = Content::Client(ClientEntry { number, info: self.redact_introduction(info) });
            let entry = Entry::new(0, at, caller.principal().shared(), content);
            self.sampling_buffer.introductions().caller(number, entry);
        }
        number
    }

    /// Redacts the self-description of a client, which may come from its configuration.
    fn redact_introduction(&self, info: SessionInfo) -> SessionInfo {
        let redact = |text: Option<String>| text.map(|text| self.redactor.text(text));
        SessionInfo { client: redact(info.client), client_version: redact(info.client_version), ..info }
    }

    /// Returns the number of an entry's session. If the tape lacks its description, that is written before the entry.
    fn session(&mut self, key: SessionKey) -> Option<u64> {
        let EntrySession { number, undescribed } = self.sessions.of_entry(key)?;
        if let Some(fact) = undescribed {
            let info = sessions::of_fact(&fact, self.session_hash.as_ref());
            let content = Content::Session(self.redact_introduction(info));
            let entry = Entry::new(0, 0, fact.caller.principal().shared(), content);
            self.sampling_buffer.introductions().session(number, Entry { session: Some(number), ..entry });
        }
        Some(number)
    }

    fn put(
        &mut self,
        at: u64,
        session: Option<u64>,
        exchange: Option<u64>,
        principal: Arc<str>,
        content: Content,
        out: &mut Vec<Entry>,
    ) {
        let seq = self.sampling_buffer.companion();
        self.sampling_buffer.put(Entry { session, exchange, ..Entry::new(seq, at, principal, content) }, out);
    }

    fn forget(&mut self) {
        for forgotten in self.forgotten.drain(..) {
            if forgotten.orphan {
                self.counters.orphans.fetch_add(1, Relaxed);
            }
            self.sampling_buffer.forget(forgotten.number, forgotten.orphan);
        }
    }
}

/// Returns true for requests that make the server work, as opposed to those that only explore it.
fn is_call(method: &str) -> bool {
    !matches!(method, "initialize" | "ping" | "server/discover" | "logging/setLevel") && !method.ends_with("/list")
}
