//! The sinks that post to web addresses: all records in batches, or an alert for each record that needs immediate
//! attention.

use super::{JournalRecord, Sink, SinkError};
use crate::event::{EventType, RiskLevel};
use crate::record::AuditRecord;
use bytes::Bytes;
use serde_json::json;
use std::sync::Arc;

/// HTTP client that posts JSON and awaits the response within bounds.
pub trait Poster: Send + Sync {
    /// Posts a body. Any response but success is an error.
    ///
    /// # Errors
    /// If the body was not accepted.
    fn post(&self, url: &str, body: Bytes) -> Result<(), SinkError>;
}

/// Posts batches of records, each as a JSON array.
pub struct RemoteSink {
    url: String,
    poster: Arc<dyn Poster>,
}

impl RemoteSink {
    /// Creates a sink for this address.
    #[must_use]
    pub fn new(url: String, poster: Arc<dyn Poster>) -> Self {
        Self { url, poster }
    }
}

impl std::fmt::Debug for RemoteSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RemoteSink")
    }
}

impl Sink for RemoteSink {
    fn name(&self) -> &'static str {
        "remote"
    }

    fn write(&mut self, lines: &[JournalRecord]) -> Result<(), SinkError> {
        let all: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        self.poster.post(&self.url, Bytes::from(format!("[{}]", all.join(","))))
    }
}

/// Posts critical violations and emergency access, one at a time (G-27).
pub struct AlertSink {
    url: String,
    poster: Arc<dyn Poster>,
    /// Last record of a batch that was posted, if a later one of it failed.
    told: u64,
}

impl AlertSink {
    /// Creates an alert sink for this address.
    #[must_use]
    pub fn new(url: String, poster: Arc<dyn Poster>) -> Self {
        Self { url, poster, told: 0 }
    }
}

impl std::fmt::Debug for AlertSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AlertSink")
    }
}

impl Sink for AlertSink {
    fn name(&self) -> &'static str {
        "alert"
    }

    fn write(&mut self, lines: &[JournalRecord]) -> Result<(), SinkError> {
        let told = self.told;
        for line in lines.iter().filter(|line| line.seq > told) {
            // Most records need no alert. A substring search is enough to know.
            if line.text.contains("\"risk_level\":\"critical\"")
                && let Ok(record) = AuditRecord::read(&line.text)
                && record.risk == RiskLevel::Critical
                && let Some(text) = text(&record)
            {
                let alert = record.event_type.map(EventType::word);
                let body = json!({"alert": alert, "text": text, "event": record.without_payloads()});
                self.poster.post(&self.url, Bytes::from(body.to_string()))?;
            }
            self.told = line.seq;
        }
        Ok(())
    }
}

/// Returns the text of the alert for a critical record, if it needs one.
fn text(record: &AuditRecord) -> Option<String> {
    let reason = record.detail("reason").unwrap_or("unknown");
    let who = record.principal().unwrap_or("somebody");
    match record.event_type? {
        EventType::SecurityViolation => Some(format!("critical security violation by {who}: {reason}")),
        EventType::BreakGlass => {
            let detail = |name| record.detail(name).unwrap_or("?");
            Some(format!("`{}` breaks the glass until {}, by {who}: {reason}", detail("to"), detail("until")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::ChainPlace;
    use crate::event::AuditEvent;
    use serde_json::Value;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Kept {
        bodies: Mutex<Vec<Value>>,
        broken: Mutex<bool>,
    }

    impl Poster for Kept {
        fn post(&self, _: &str, body: Bytes) -> Result<(), SinkError> {
            if *self.broken.lock().unwrap() {
                return Err(SinkError::Refused("down".to_owned()));
            }
            self.bodies.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            Ok(())
        }
    }

    fn lines() -> Vec<JournalRecord> {
        let mut place = ChainPlace::start("c");
        let mut line = |risk| {
            let mut text = String::new();
            let details = "{\"reason\":\"replayed\",\"arguments\":{\"a\":1}}";
            place.append(&AuditEvent::own(1, EventType::SecurityViolation, details, risk), &mut text);
            JournalRecord { seq: place.seq, text: text.trim_end().to_owned() }
        };
        vec![line(RiskLevel::High), line(RiskLevel::Critical), line(RiskLevel::Critical)]
    }

    /// A batch is one JSON array of records.
    /// Proves G-41.
    #[test]
    fn a_batch_is_posted_as_an_array_of_records() {
        let poster = Arc::new(Kept::default());
        RemoteSink::new("http://x".to_owned(), poster.clone()).write(&lines()).unwrap();
        let bodies = poster.bodies.lock().unwrap();
        assert_eq!(bodies[0].as_array().unwrap().len(), 3);
        assert_eq!(bodies[0][2]["seq"], 3);
    }

    /// Somebody is told when the glass is broken, and not when that is over.
    #[test]
    fn broken_glass_is_told() {
        let mut place = ChainPlace::start("c");
        let mut line = |begins| {
            let (grant, to, by, because, until) = ("break_glass:1", "user:ada", "bob", "it burns", 0);
            let mut text = String::new();
            place.append(&crate::BrokenGlass { grant, to, by, because, until, begins }.note(1).event(), &mut text);
            JournalRecord { seq: place.seq, text: text.trim_end().to_owned() }
        };
        let poster = Arc::new(Kept::default());
        AlertSink::new("http://x".to_owned(), poster.clone()).write(&[line(true), line(false)]).unwrap();
        let bodies = poster.bodies.lock().unwrap();
        assert_eq!(bodies.len(), 1, "{bodies:?}");
        assert_eq!(
            (&bodies[0]["alert"], &bodies[0]["text"]),
            (
                &json!("break_glass"),
                &json!("`user:ada` breaks the glass until 1970-01-01T00:00:00.000Z, by bob: it burns")
            )
        );
    }

    /// An alert for each critical violation, once, without payloads.
    /// Proves G-27.
    #[test]
    fn each_critical_violation_is_told_once() {
        let poster = Arc::new(Kept::default());
        let mut sink = AlertSink::new("http://x".to_owned(), poster.clone());
        *poster.broken.lock().unwrap() = true;
        assert!(sink.write(&lines()).is_err());
        *poster.broken.lock().unwrap() = false;
        sink.write(&lines()).unwrap();
        sink.write(&lines()).unwrap();
        let bodies = poster.bodies.lock().unwrap();
        assert_eq!(bodies.len(), 2, "{bodies:?}");
        assert_eq!(bodies[0]["event"]["details"]["arguments"], "[withheld]");
    }
}
