//! Delivery of requests to a page: which are sent, which are sent again, and which fail because another page may have
//! executed them.

use crate::code::Code;
use crate::counters::RelayCounters;
use crate::mcp_result::minified;
use crate::relay::Relay;
use crate::settings::MigrationPhase;
use crate::store::RelayStoreError;
use crate::tool_request::{Delivery, ToolAnswer, ToolRequest, WorkerError};
use serde_json::Value;
use signalbox_runtime::clock::unix_millis;
use std::collections::HashSet;
use std::sync::Arc;

/// Number of bytes after which a batch of requests takes no more.
const MAX_DUE: usize = 64 * 1024;

/// Page that executes requests of a session.
#[derive(Debug)]
pub struct Worker {
    pub code: Code,
    /// Id of the page, which has the lead or waits for it.
    pub holder: Box<str>,
    /// Journal of the page; empty for none.
    pub journal: Box<str>,
    /// Id of this connection.
    pub stream: Box<str>,
    /// Requests sent on this connection.
    sent: HashSet<Box<str>>,
}

impl Worker {
    /// Creates a worker that has been sent nothing yet.
    #[must_use]
    pub fn new(code: Code, holder: &str, journal: &str, stream: &str) -> Self {
        Self { code, holder: holder.into(), journal: journal.into(), stream: stream.into(), sent: HashSet::new() }
    }

    /// Sets the requests that it has been sent before.
    #[must_use]
    pub fn having(self, sent: HashSet<Box<str>>) -> Self {
        Self { sent, ..self }
    }

    /// Returns the requests that it has been sent.
    #[must_use]
    pub fn into_sent(self) -> HashSet<Box<str>> {
        self.sent
    }

    /// Returns true if it was sent this request on this connection.
    #[must_use]
    pub fn was_given(&self, id: &str) -> bool {
        self.sent.contains(id)
    }

    /// Takes the lead if it is free, or renews it.
    ///
    /// # Errors
    /// If the store is unreachable.
    pub async fn take_lead(&self, relay: &Relay) -> Result<bool, RelayStoreError> {
        let now = unix_millis();
        let until = now.saturating_add(relay.lease_ms());
        relay.store.take_lead(&self.code, &self.holder, &self.stream, until, now).await
    }

    /// Returns the next requests to send that were not sent on this connection: about [`MAX_DUE`] bytes, or one request
    /// that is larger. The caller repeats this until it is empty.
    ///
    /// # Errors
    /// If the store is unreachable.
    pub async fn due(&mut self, relay: &Arc<Relay>) -> Result<Vec<String>, RelayStoreError> {
        let now = unix_millis();
        let waiting = relay.store.unanswered(&self.code, now).await?;
        // Answered requests are not sent again, so their ids can be dropped.
        self.sent.retain(|id| waiting.iter().any(|request| request.id == *id));
        let (mut due, mut bytes) = (Vec::new(), 0);
        for request in waiting {
            if bytes >= MAX_DUE {
                break;
            }
            if self.sent.contains(&request.id) {
                continue;
            }
            let again = match request.delivery(&self.journal) {
                Delivery::First => false,
                Delivery::Again => true,
                Delivery::Unknown => {
                    RelayCounters::add(&relay.counts.unknown_outcomes);
                    let answer = ToolAnswer::Error(WorkerError::outcome_unknown());
                    relay.store.answer(&self.code, &request.id, answer, now).await?;
                    continue;
                }
            };
            if relay.store.mark_sent(&self.code, &request.id, &self.journal, now).await? {
                RelayCounters::add(&relay.counts.delivered);
                if again {
                    RelayCounters::add(&relay.counts.redelivered);
                }
                let text = match relay.settings.phase {
                    MigrationPhase::McpOnly => to_compact_json(&request, again),
                    MigrationPhase::Dual | MigrationPhase::Deprecated => to_json(&self.code, &request, again),
                };
                bytes += text.len();
                due.push(text);
                self.sent.insert(request.id);
            }
        }
        Ok(due)
    }
}

/// Serializes a request for pages, with both spellings of its members.
#[must_use]
pub fn to_json(code: &Code, request: &ToolRequest, redelivered: bool) -> String {
    // Built as text: the arguments can be large, and a parsed tree takes several times their memory.
    let (id, tool, code) = (Value::from(&*request.id), Value::from(&*request.tool), Value::from(code.expose()));
    let (arguments, at, deadline) = (minified(request.arguments.get()), request.at, request.deadline);
    let idempotent = request.idempotent;
    format!(
        r#"{{"id":{id},"requestId":{id},"tool":{tool},"args":{arguments},"arguments":{arguments},"timestamp":{at},"sessionCode":{code},"idempotent":{idempotent},"redelivered":{redelivered},"deadline":{deadline}}}"#
    )
}

/// Serializes a request with one spelling. Without legacy pages, no page needs its arguments twice.
#[must_use]
pub fn to_compact_json(request: &ToolRequest, redelivered: bool) -> String {
    let (id, tool) = (Value::from(&*request.id), Value::from(&*request.tool));
    let (arguments, at, deadline) = (minified(request.arguments.get()), request.at, request.deadline);
    let idempotent = request.idempotent;
    format!(
        r#"{{"id":{id},"tool":{tool},"arguments":{arguments},"timestamp":{at},"idempotent":{idempotent},"redelivered":{redelivered},"deadline":{deadline}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_text::JsonText;
    use crate::settings::RelaySettings;
    use crate::store::memory::MemoryStore;
    use serde_json::value::RawValue;

    async fn relay() -> (Arc<Relay>, Code) {
        let relay = Relay::new(RelaySettings::default(), Arc::new(MemoryStore::default()));
        let code = relay.create(None).await.unwrap().record.code;
        (relay, code)
    }

    async fn push(relay: &Relay, code: &Code, id: &str, idempotent: bool) {
        let (arguments, now) = (JsonText::empty_object(), unix_millis());
        let (id, tool) = (id.into(), "t".into());
        let request = ToolRequest { id, tool, arguments, at: now, deadline: now + 60_000, idempotent, sent_to: None };
        relay.store.push(code, request, 10, now).await.unwrap();
    }

    fn shown(due: &[String]) -> Vec<(String, bool)> {
        let of = |text: &String| {
            let value: Value = serde_json::from_str(text).unwrap();
            (value["id"].as_str().unwrap().to_owned(), value["redelivered"].as_bool().unwrap())
        };
        due.iter().map(of).collect()
    }

    #[tokio::test]
    async fn a_page_that_comes_back_gets_what_its_journal_knows_and_another_only_what_does_no_harm() {
        let (relay, code) = relay().await;
        push(&relay, &code, "pay", false).await;
        push(&relay, &code, "look", true).await;
        let mut first = Worker::new(code.clone(), "page", "journal", "s1");
        assert_eq!(shown(&first.due(&relay).await.unwrap()), [("pay".to_owned(), false), ("look".to_owned(), false)]);
        assert!(first.due(&relay).await.unwrap().is_empty(), "once on one connection");
        let mut back = Worker::new(code.clone(), "page", "journal", "s2");
        assert_eq!(shown(&back.due(&relay).await.unwrap()), [("pay".to_owned(), true), ("look".to_owned(), true)]);
        let mut events = relay.store.subscribe(&code).await.unwrap();
        let mut other = Worker::new(code.clone(), "other", "", "s3");
        assert_eq!(shown(&other.due(&relay).await.unwrap()), [("look".to_owned(), true)]);
        let event = events.recv().await;
        let Some(crate::store::RelayEvent::Answered { id, answer }) = event else { panic!("{event:?}") };
        assert!(*id == *"pay" && matches!(&*answer, ToolAnswer::Error(error) if &*error.kind == "outcome_unknown"));
    }

    /// Proves C-20 and CO-10.
    #[test]
    fn a_request_has_both_spellings_and_a_fixed_order() {
        let request = ToolRequest {
            id: "00ff".into(),
            tool: "get_items".into(),
            arguments: RawValue::from_string(r#"{"b":1,"a":2}"#.to_owned()).unwrap().into(),
            at: 5,
            deadline: 9,
            idempotent: true,
            sent_to: None,
        };
        let code = Code::parse("ABC123XY").unwrap();
        let expected = r#"{"id":"00ff","requestId":"00ff","tool":"get_items","args":{"b":1,"a":2},"arguments":{"b":1,"a":2},"timestamp":5,"sessionCode":"ABC123XY","idempotent":true,"redelivered":false,"deadline":9}"#;
        assert_eq!(to_json(&code, &request, false).to_string(), expected);
        let once = r#"{"id":"00ff","tool":"get_items","arguments":{"b":1,"a":2},"timestamp":5,"idempotent":true,"redelivered":false,"deadline":9}"#;
        assert_eq!(to_compact_json(&request, false), once, "C-20");
    }
}
