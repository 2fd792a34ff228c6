//! Calls assembled from the facts of the live feed.

use super::text::{self, clean, word};
use serde_json::Value;
use signalbox_engine::fact::Point;
use std::collections::{HashMap, VecDeque};

/// Maximum number of calls in memory.
pub const MAX_CALLS: usize = 2_000;
/// Maximum size of all messages in memory, in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Maximum size of one message in memory, in bytes. Longer ones are cut.
const MAX_IMAGE: usize = 64 * 1024;
/// Maximum number of decisions stored per call.
const MAX_DECISIONS: usize = 64;

/// A call, as far as its facts have arrived.
#[derive(Clone, Debug, Default)]
pub struct WatchedCall {
    /// Sequence number among all calls seen.
    pub seq: u64,
    /// Arrival, in milliseconds since 1970.
    pub at_ms: u64,
    /// Principal of the caller.
    pub who: String,
    /// Method of the request.
    pub method: String,
    /// Tool, prompt or URI.
    pub subject: Option<String>,
    /// Backend that the call was routed to.
    pub backend: Option<String>,
    /// Outcome; `None` while the call is open.
    pub outcome: Option<String>,
    /// Time from request to outcome, in microseconds.
    pub took_us: u64,
    /// Message at each of [`Point::ALL`].
    pub images: [Option<String>; 4],
    /// Decisions about it, in order.
    pub decisions: Vec<String>,
    /// Set if the answer differs from the baseline.
    pub differs: bool,
    /// Session and exchange of the call.
    pub key: (u64, u64),
}

impl WatchedCall {
    /// Returns the subject of a tool call, otherwise the method.
    #[must_use]
    pub fn about(&self) -> &str {
        match &self.subject {
            Some(subject) if self.method == "tools/call" => subject,
            _ => &self.method,
        }
    }

    /// Returns `true` if the call matches a filter, which must be lower case.
    #[must_use]
    pub fn fits(&self, filter: &str) -> bool {
        let fields = [&*self.method, &*self.who, self.subject.as_deref().unwrap_or_default()];
        let more = [self.backend.as_deref().unwrap_or_default(), self.outcome.as_deref().unwrap_or("open")];
        filter.is_empty() || fields.into_iter().chain(more).any(|field| field.to_lowercase().contains(filter))
    }

    fn bytes(&self) -> usize {
        self.images.iter().flatten().map(String::len).sum()
    }
}

/// Calls in memory, oldest first.
#[derive(Debug, Default)]
pub struct Calls {
    all: VecDeque<WatchedCall>,
    by_key: HashMap<(u64, u64), u64>,
    last: u64,
    bytes: usize,
}

impl Calls {
    /// Applies a fact. Returns `true` if it changed a call.
    pub fn take(&mut self, fact: &Value) -> bool {
        let (Some(session), Some(exchange)) = (fact["session"].as_u64(), fact["exchange"].as_u64()) else {
            return false;
        };
        let key = (session, exchange);
        match fact["type"].as_str() {
            Some("message") => self.message(key, fact),
            Some("decision") => self.decision(key, fact),
            Some("finished") => self.finished(key, fact),
            _ => return false,
        }
        self.forget();
        true
    }

    /// Iterates over the calls that match a filter, newest first.
    pub fn newest<'a>(&'a self, filter: &'a str) -> impl Iterator<Item = &'a WatchedCall> {
        self.all.iter().rev().filter(move |call| call.fits(filter))
    }

    /// Returns the call with this sequence number, if it is still in memory.
    #[must_use]
    pub fn get(&self, seq: u64) -> Option<&WatchedCall> {
        self.all.get(self.place(seq)?)
    }

    /// Returns the number of calls seen so far.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.last
    }

    fn place(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.all.front()?.seq)?).ok()
    }

    fn of(&mut self, key: (u64, u64), fact: &Value) -> Option<&mut WatchedCall> {
        let seq = match self.by_key.get(&key) {
            Some(&seq) => seq,
            None => {
                self.last += 1;
                let who = word(fact, "principal").unwrap_or_default();
                let at_ms = fact["at_ms"].as_u64().unwrap_or(0);
                self.all.push_back(WatchedCall { seq: self.last, at_ms, who, key, ..WatchedCall::default() });
                self.by_key.insert(key, self.last);
                self.last
            }
        };
        let place = self.place(seq)?;
        self.all.get_mut(place)
    }

    fn message(&mut self, key: (u64, u64), fact: &Value) {
        // Notifications, and requests by the backend, are not among the four images.
        let named = fact["point"].as_str().and_then(Point::parse);
        let Some(point) = Point::ALL.iter().position(|one| Some(*one) == named) else { return };
        let kind = fact["kind"].as_str();
        if kind == Some("notification") || (point == 2 && kind == Some("request")) {
            return;
        }
        let body = match (&fact["body"], fact["text"].as_str()) {
            (Value::Null, Some(text)) => text.to_owned(),
            (body, _) => body.to_string(),
        };
        let image = text::cut(&body, MAX_IMAGE).to_owned();
        let added = image.len();
        let Some(call) = self.of(key, fact) else { return };
        if let Some(method) = word(fact, "method") {
            call.method = method;
            call.subject = word(fact, "subject").or(call.subject.take());
        }
        call.backend = word(fact, "backend").or(call.backend.take());
        let before = call.images[point].replace(image).map_or(0, |image| image.len());
        self.bytes = (self.bytes + added).saturating_sub(before);
    }

    fn decision(&mut self, key: (u64, u64), fact: &Value) {
        let part = |name: &str| word(fact, name).filter(|text| !text.is_empty());
        let by = part("rule").or_else(|| part("by")).unwrap_or_default();
        let mut text = format!("{} {} by {by}", part("phase").unwrap_or_default(), part("verdict").unwrap_or_default());
        if let Some(detail) = part("detail") {
            text = format!("{text}: {detail}");
        }
        for input in fact["inputs"].as_array().into_iter().flatten() {
            let side = |at: usize| clean(input[at].as_str().unwrap_or_default());
            text = format!("{text} [{}: {}]", side(0), side(1));
        }
        let Some(call) = self.of(key, fact) else { return };
        call.differs |= is_difference(fact);
        if call.decisions.len() < MAX_DECISIONS {
            call.decisions.push(text);
        }
    }

    fn finished(&mut self, key: (u64, u64), fact: &Value) {
        let Some(call) = self.of(key, fact) else { return };
        call.method = word(fact, "method").unwrap_or_default();
        call.subject = word(fact, "subject").or(call.subject.take());
        call.backend = word(fact, "backend").or(call.backend.take());
        call.outcome = word(fact, "outcome");
        call.took_us = fact["took_us"].as_u64().unwrap_or(0);
    }

    fn forget(&mut self) {
        while self.all.len() > MAX_CALLS || (self.bytes > MAX_BYTES && self.all.len() > 1) {
            let Some(gone) = self.all.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(gone.bytes());
            self.by_key.remove(&gone.key);
        }
    }
}

/// Returns `true` if a fact reports an answer that differs from the baseline.
pub(super) fn is_difference(fact: &Value) -> bool {
    fact["type"] == "decision" && fact["by"] == "baseline" && fact["verdict"] == "differs"
}

/// Returns a message of a call, split into lines.
pub(super) fn image(call: &WatchedCall, point: usize) -> Vec<String> {
    call.images[point].as_deref().map(|image| text::lines(image, MAX_IMAGE)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(exchange: u64, point: &str, body: &Value) -> Value {
        json!({"type": "message", "at_ms": 1, "session": 1, "exchange": exchange, "principal": "p", "point": point,
            "kind": "request", "method": "tools/call", "subject": "echo", "backend": null, "body": body})
    }

    #[test]
    fn a_call_is_put_together_from_its_facts() {
        let mut calls = Calls::default();
        assert!(calls.take(&message(7, "client_in", &json!({"id": 1}))));
        calls.take(&json!({"type": "decision", "session": 1, "exchange": 7, "by": "rules", "rule": "r1",
            "phase": "request", "verdict": "modify", "detail": "", "inputs": [["person", "ada"]]}));
        calls.take(&json!({"type": "finished", "session": 1, "exchange": 7, "method": "tools/call",
            "subject": "echo", "backend": "demo", "outcome": "success", "took_us": 5}));
        let call = calls.newest("").next().unwrap();
        assert_eq!((call.about(), call.outcome.as_deref()), ("echo", Some("success")));
        assert_eq!(call.decisions, ["request modify by r1 [person: ada]"]);
        assert!(call.fits("dem") && call.fits("succ") && !call.fits("fail"));
        assert!(!calls.take(&json!({"type": "session", "session": 1})));
    }

    #[test]
    fn the_oldest_are_forgotten_by_number_and_by_size() {
        let mut calls = Calls::default();
        for exchange in 0..MAX_CALLS as u64 + 5 {
            calls.take(&message(exchange, "client_in", &json!({})));
        }
        assert_eq!((calls.newest("").count(), calls.seen()), (MAX_CALLS, MAX_CALLS as u64 + 5));
        assert!(calls.get(5).is_none() && calls.get(6).is_some());
        let large = json!("x".repeat(MAX_IMAGE));
        for exchange in 10_000..10_000 + 2 * (MAX_BYTES / MAX_IMAGE) as u64 {
            calls.take(&message(exchange, "client_in", &large));
        }
        assert!(calls.bytes <= MAX_BYTES && calls.by_key.len() == calls.all.len());
    }
}
