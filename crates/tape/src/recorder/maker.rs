//! Makes entries of facts.

use super::clock::{Anchor, Clock};
use super::counters::{Counters, GapReason};
use super::exchanges::{Exchanges, Forgotten};
use super::message::{self, Seen};
use super::numbering::way;
use super::sessions::{self, Sessions};
use super::settings::RecorderSettings;
use super::sifter::{Beginning, Ending, Sifter};
use super::words::Words;
use crate::redact::{Redacted, Redactor};
use bytes::Bytes;
use signalbox_engine::fact::{Decision, Finished, MessageFact, Point};
use signalbox_engine::record::{Body, Content, Entry, FinishedEntry, Gap, MessageEntry, MessageKind};
use signalbox_engine::{ExchangeId, Fact, SessionKey};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How often exchanges without an end are looked for, in nanoseconds.
const SWEEP_EVERY: u64 = 10_000_000_000;

#[derive(Debug)]
pub(crate) struct Maker {
    clock: Clock,
    sessions: Sessions,
    exchanges: Exchanges,
    sifter: Sifter,
    redactor: Redactor,
    words: Words,
    bodies: bool,
    max_body: usize,
    orphan_after: Duration,
    swept: u64,
    forgotten: Vec<Forgotten>,
    counters: Arc<Counters>,
}

/// A message fact, unpacked.
struct Passing<'a> {
    at: u64,
    session: SessionKey,
    exchange: Option<ExchangeId>,
    principal: &'a Arc<str>,
    point: Point,
    backend: Option<&'a Arc<str>>,
    bytes: Bytes,
}

impl Maker {
    pub(crate) fn new(
        settings: &RecorderSettings,
        redactor: Redactor,
        anchor: Anchor,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            clock: Clock::new(anchor),
            sessions: Sessions::default(),
            exchanges: Exchanges::default(),
            sifter: Sifter::new(settings, Arc::clone(&counters)),
            redactor,
            words: Words::default(),
            bodies: settings.bodies,
            max_body: settings.max_body,
            orphan_after: settings.orphan_after,
            swept: anchor.unix,
            forgotten: Vec::new(),
            counters,
        }
    }

    /// Takes a fact, and adds the entries that may be written now.
    pub(crate) fn fact(&mut self, fact: Fact, out: &mut Vec<Entry>) {
        match fact {
            Fact::Message(MessageFact { at, session, caller, exchange, point, backend, bytes, .. }) => {
                let (at, principal, backend) = (self.clock.at(at), &caller.principal().shared(), backend.as_ref());
                self.message(Passing { at, session, exchange, principal, point, backend, bytes }, out);
            }
            Fact::Decision(decision) => self.decision(&decision, out),
            Fact::Session(fact) => {
                let at = self.clock.at(fact.at);
                let number = self.sessions.enter(fact.session);
                let content = Content::Session(sessions::info(&fact));
                self.put(at, Some(number), None, fact.caller.principal().shared(), content, out);
            }
            Fact::SessionEnded { at, session, caller } => {
                let at = self.clock.at(at);
                if let Some(number) = self.sessions.number(session) {
                    self.put(at, Some(number), None, caller.principal().shared(), Content::SessionEnded, out);
                    self.sessions.end(session);
                }
            }
            Fact::Finished(finished) => self.finished(&finished, out),
            Fact::Lost(_) | Fact::Refused(_) => {}
        }
        self.forget();
        self.sifter.release(self.clock.last(), out);
    }

    /// Notes that facts are missing here.
    pub(crate) fn gap(&mut self, reason: GapReason, facts: u64, out: &mut Vec<Entry>) {
        let content = Content::Gap(Gap { facts, reason: reason.word().to_owned() });
        self.put(self.clock.last(), None, None, Arc::default(), content, out);
        self.sifter.release(self.clock.last(), out);
    }

    /// Writes what the ring holds.
    pub(crate) fn trigger(&mut self, out: &mut Vec<Entry>) {
        self.sifter.fire_all();
        self.sifter.release(self.clock.last(), out);
    }

    /// Time has passed: what is overdue is decided, and exchanges without an end are forgotten.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<Entry>) {
        let now = self.clock.at(now);
        if now.saturating_sub(self.swept) >= SWEEP_EVERY.min(self.orphan_after.as_nanos() as u64) {
            self.swept = now;
            self.exchanges.sweep(now, self.orphan_after, &mut self.forgotten);
            self.forget();
        }
        self.sifter.release(now, out);
    }

    /// The tape ends: adds what may still be written, and gives its last time.
    pub(crate) fn close(&mut self, now: Instant, out: &mut Vec<Entry>) -> u64 {
        self.sifter.close(out);
        self.clock.at(now)
    }

    fn message(&mut self, passing: Passing<'_>, out: &mut Vec<Entry>) {
        let mut seen = message::look(&passing.bytes, passing.point);
        let number = passing.exchange.map(|id| self.enter(&passing, id, &mut seen));
        let beginning = Beginning {
            method: seen.method.as_deref(),
            tool: seen.subject.as_deref(),
            principal: passing.principal,
            backend: passing.backend.map(|name| &**name),
            at: passing.at,
        };
        if self.sifter.drops(number) || number.is_none() && self.sifter.drops_loose(beginning) {
            self.counters.sampled_out.fetch_add(1, Relaxed);
            return;
        }
        let (length, kind) = (passing.bytes.len() as u64, seen.kind);
        let body = self.body(&passing, &seen);
        if let Some(id) = passing.exchange {
            self.exchanges.passed(passing.session, id, passing.point, kind);
        }
        let content = Content::Message(MessageEntry {
            point: passing.point,
            kind,
            method: seen.method,
            subject: seen.subject,
            backend: passing.backend.cloned(),
            error_code: seen.error_code,
            length,
            body,
        });
        let session = self.sessions.number(passing.session);
        self.put(passing.at, session, number, Arc::clone(passing.principal), content, out);
    }

    /// Finds the exchange of a message, begins it where it is the first, and tells the message what its request was.
    fn enter(&mut self, passing: &Passing<'_>, id: ExchangeId, seen: &mut Seen) -> u64 {
        let open = self.exchanges.enter(passing.session, id, passing.at, &mut self.forgotten);
        match (seen.kind, way(passing.point)) {
            (MessageKind::Request, 0) if open.method.is_none() => {
                // A name may hold a secret as well: a URI with a key in its query.
                seen.subject = seen.subject.take().map(|subject| self.words.redacted(&subject, &self.redactor));
                open.method.clone_from(&seen.method);
                open.subject.clone_from(&seen.subject);
            }
            // The backend knows the subject by another name.
            (MessageKind::Request, 0) => seen.subject.clone_from(&open.subject),
            (MessageKind::Request, _) => open.asked.clone_from(&seen.method),
            // An answer of the client is to what the backend asked.
            (MessageKind::Result | MessageKind::Error, 0) => seen.method.clone_from(&open.asked),
            (MessageKind::Result | MessageKind::Error, _) => {
                seen.method.clone_from(&open.method);
                seen.subject.clone_from(&open.subject);
            }
            (MessageKind::Notification, _) => seen.subject.clone_from(&open.subject),
            (MessageKind::Raw, _) => seen.method.clone_from(&open.method),
        }
        let number = open.number;
        if !std::mem::replace(&mut open.begun, true) {
            let (method, tool) = (open.method.as_deref(), open.subject.as_deref());
            let backend = passing.backend.map(|name| &**name);
            let (principal, at) = (&**passing.principal, passing.at);
            self.sifter.begin(number, Beginning { method, tool, principal, backend, at });
        } else {
            self.sifter.backend(number, passing.backend.map(|name| &**name));
        }
        number
    }

    fn body(&mut self, passing: &Passing<'_>, seen: &Seen) -> Body {
        if !self.bodies || passing.bytes.len() > self.max_body {
            return Body::Left;
        }
        let bytes = match self.redactor.message(&passing.bytes, seen.method.as_deref()) {
            Redacted::Same => passing.bytes.clone(),
            Redacted::Changed(bytes) => {
                self.counters.redacted.fetch_add(1, Relaxed);
                bytes
            }
            Redacted::Withheld => {
                self.counters.withheld.fetch_add(1, Relaxed);
                return Body::Left;
            }
        };
        let Some(id) = passing.exchange else { return Body::Whole(bytes) };
        let second = matches!(passing.point, Point::BackendOut | Point::ClientOut);
        if second
            && let Some(base) = self.exchanges.base(passing.session, id, passing.point)
            && let Some(like) = message::like(base, &bytes)
        {
            return like;
        }
        self.exchanges.set_base(passing.session, id, way(passing.point), Some(bytes.clone()));
        Body::Whole(bytes)
    }

    fn decision(&mut self, decision: &Decision, out: &mut Vec<Entry>) {
        let at = self.clock.at(decision.at);
        let principal = decision.caller.principal().as_str();
        let mut number = None;
        if let Some(id) = decision.exchange {
            let open = self.exchanges.enter(decision.session, id, at, &mut self.forgotten);
            number = Some(open.number);
            // Its request was lost. A filter cannot judge it yet; the end will tell what it is.
            if !open.begun && self.sifter.wants_all() {
                open.begun = true;
                let beginning = Beginning { method: None, tool: None, principal, backend: None, at };
                self.sifter.begin(open.number, beginning);
            }
        }
        for (_, ruling) in decision.each() {
            self.sifter.decided(number, ruling.verdict);
        }
        let loose = Beginning { method: None, tool: None, principal, backend: None, at };
        if self.sifter.drops(number) || number.is_none() && self.sifter.drops_loose(loose) {
            self.counters.sampled_out.fetch_add(1, Relaxed);
            return;
        }
        let principal = decision.caller.principal().shared();
        let phase = decision.phase;
        let mut decided = Vec::new();
        for (by, rulings) in &decision.rulings {
            self.words.all_told(by, phase, rulings, &self.redactor, &mut decided);
        }
        self.put(at, self.sessions.number(decision.session), number, principal, Content::Decisions(decided), out);
    }

    fn finished(&mut self, finished: &Finished, out: &mut Vec<Entry>) {
        let at = self.clock.at(finished.at);
        let principal = finished.caller.principal().as_str();
        let open = self.exchanges.enter(finished.session, finished.exchange, at, &mut self.forgotten);
        let number = open.number;
        let first = !std::mem::replace(&mut open.begun, true);
        let open_method = open.method.clone();
        let subject = match &open.subject {
            None => finished.subject.as_deref().map(|subject| self.redactor.text(subject.to_owned()).into()),
            known => known.clone(),
        };
        let took = u64::try_from(finished.took.as_nanos()).unwrap_or(u64::MAX);
        let (outcome, backend) = (finished.outcome.label(), finished.backend.as_deref());
        if first {
            let (method, tool) = (Some(&*finished.method), subject.as_deref());
            self.sifter.begin(number, Beginning { method, tool, principal, backend, at });
        }
        self.sifter.end(number, Ending { backend, outcome, took, at });
        if self.sifter.drops(Some(number)) {
            self.counters.sampled_out.fetch_add(1, Relaxed);
        } else {
            let content = Content::Finished(FinishedEntry {
                method: open_method.unwrap_or_else(|| Arc::from(&*finished.method)),
                subject,
                backend: finished.backend.clone(),
                outcome: outcome.into(),
                took,
                bytes_in: finished.bytes_in as u64,
                bytes_out: finished.bytes_out as u64,
            });
            let principal = finished.caller.principal().shared();
            self.put(at, self.sessions.number(finished.session), Some(number), principal, content, out);
        }
        self.exchanges.end(finished.session, finished.exchange, &mut self.forgotten);
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
        let seq = self.sifter.companion();
        self.sifter.put(Entry { seq, at, session, exchange, principal, content }, out);
    }

    fn forget(&mut self) {
        for forgotten in self.forgotten.drain(..) {
            if forgotten.orphan {
                self.counters.orphans.fetch_add(1, Relaxed);
            }
            self.sifter.forget(forgotten.number, forgotten.orphan);
        }
    }
}
