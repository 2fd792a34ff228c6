//! Tries the guard on recorded calls of tools: which of them would now be refused, changed, held or reported.
//!
//! Definitions come from the lists on the tape. Messages of which redaction removed a part are judged as far as they
//! are there, and counted. Flows, canaries, forms and the schemas of results are not tried.

use bytes::Bytes;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind};
use signalbox_guard::{Guard, TrialFinding};
use signalbox_tape::Bodies;
use signalbox_wire::{Envelope, json, method};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Bytes of earlier bodies kept to resolve later ones that refer to them.
const REMEMBERED: usize = 8 << 20;
/// Maximum number of open exchanges. Calls beyond it are not judged.
const MAX_OPEN: usize = 100_000;
/// Maximum number of definitions that are remembered.
const MAX_DEFINITIONS: usize = 100_000;
/// Maximum number of examples per kind of finding.
const MAX_EXAMPLES: usize = 5;

/// Findings of one kind about one tool.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GuardFindings {
    /// Number of findings. A call with several of them counts for each.
    pub count: u64,
    /// Examples, as tape and exchange.
    pub examples: Vec<(String, u64)>,
}

/// Result of a backtest of the guard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GuardReport {
    /// Number of calls on the tapes that were judged.
    pub calls: u64,
    /// Number of exchanges with a message of which redaction removed a part.
    pub redacted: u64,
    /// Number of calls whose tool's definition is not on the tape, so that their arguments were held against no schema.
    pub without_schema: u64,
    /// Findings by verdict, key and tool.
    pub findings: BTreeMap<(&'static str, Arc<str>, String), GuardFindings>,
}

impl GuardReport {
    /// Returns the number of findings that would change or stop a call.
    #[must_use]
    pub fn interventions(&self) -> u64 {
        let acting = self.findings.iter().filter(|((verdict, ..), _)| *verdict != "report");
        acting.map(|(_, findings)| findings.count).sum()
    }
}

/// Request whose answer has not been read yet.
enum OpenRequest {
    Call { backend: Arc<str>, tool: String },
    List { backend: Arc<str> },
}

/// Backtest of one configuration's guard.
pub struct GuardBacktest {
    guard: Guard,
    definitions: HashMap<(Arc<str>, String), Bytes>,
    report: GuardReport,
}

impl GuardBacktest {
    /// Creates a backtest with this guard.
    #[must_use]
    pub fn new(guard: Guard) -> Self {
        Self { guard, definitions: HashMap::new(), report: GuardReport::default() }
    }

    /// Returns the result so far.
    #[must_use]
    pub fn report(&self) -> &GuardReport {
        &self.report
    }

    /// Judges the calls of a tape.
    ///
    /// # Errors
    /// Returns the first error of `entries`. Calls before it are counted.
    pub fn tape<E>(&mut self, tape: &str, entries: impl Iterator<Item = Result<Entry, E>>) -> Result<(), E> {
        let mut bodies = Bodies::remembering(REMEMBERED);
        let mut open: HashMap<(Arc<str>, Option<u64>, String), OpenRequest> = HashMap::new();
        let mut redacted: HashSet<u64> = HashSet::new();
        for entry in entries {
            let entry = bodies.whole(entry?);
            let Content::Message(message) = &entry.content else { continue };
            let (Body::Whole(bytes), Some(backend)) = (&message.body, message.backend.as_ref()) else { continue };
            let Ok(envelope) = Envelope::parse(bytes.clone()) else { continue };
            let id = envelope.id_token().map(|id| String::from_utf8_lossy(id).into_owned()).unwrap_or_default();
            let key = (Arc::clone(backend), entry.exchange, id);
            match (message.point, message.kind) {
                (Point::BackendOut, MessageKind::Request) if open.len() < MAX_OPEN => {
                    if let Some(request) = self.judge_request(tape, &entry, message, backend, &envelope) {
                        open.insert(key, request);
                    }
                }
                (Point::BackendIn, MessageKind::Result | MessageKind::Error) => {
                    let Some(request) = open.remove(&key) else { continue };
                    self.judge_answer(tape, &entry, &request, &envelope);
                }
                _ => {}
            }
            let is_cut = message.redacted && entry.exchange.is_some_and(|exchange| redacted.insert(exchange));
            self.report.redacted += u64::from(is_cut);
        }
        Ok(())
    }

    /// Judges a request as it left for its backend.
    fn judge_request(
        &mut self,
        tape: &str,
        entry: &Entry,
        message: &MessageEntry,
        backend: &Arc<str>,
        request: &Envelope,
    ) -> Option<OpenRequest> {
        match message.method.as_deref()? {
            method::TOOLS_LIST => Some(OpenRequest::List { backend: Arc::clone(backend) }),
            method::TOOLS_CALL => {
                let span = request.param("name")?;
                let tool = json::string(span.of(request.bytes()))?.into_owned();
                let definition = self.definitions.get(&(Arc::clone(backend), tool.clone())).cloned();
                self.report.calls += 1;
                self.report.without_schema += u64::from(definition.is_none());
                let about = EntryRef { kind: ListKind::Tools, backend, name: &tool, definition: definition.as_deref() };
                let found = self.guard.try_call(&about, definition.as_ref(), request);
                self.count(tape, entry, &tool, found);
                Some(OpenRequest::Call { backend: Arc::clone(backend), tool })
            }
            _ => None,
        }
    }

    /// Judges an answer as it came from its backend, or learns definitions from a list.
    fn judge_answer(&mut self, tape: &str, entry: &Entry, request: &OpenRequest, answer: &Envelope) {
        match request {
            OpenRequest::Call { backend, tool } => {
                let about = EntryRef { kind: ListKind::Tools, backend, name: tool, definition: None };
                let found = self.guard.try_answer(&about, answer);
                self.count(tape, entry, tool, found);
            }
            OpenRequest::List { backend } => {
                let Some(span) = answer.result_member("tools") else { return };
                let tools = span.of(answer.bytes());
                for tool in json::elements(tools).map(|span| Bytes::copy_from_slice(span.of(tools))) {
                    let name = json::member(&tool, "name").and_then(|span| json::string(span.of(&tool)));
                    if let Some(name) = name.filter(|_| self.definitions.len() < MAX_DEFINITIONS) {
                        let key = (Arc::clone(backend), name.into_owned());
                        self.definitions.insert(key, tool);
                    }
                }
            }
        }
    }

    fn count(&mut self, tape: &str, entry: &Entry, tool: &str, found: Vec<TrialFinding>) {
        for finding in found {
            let known = self.report.findings.entry((finding.verdict, finding.key, tool.to_owned())).or_default();
            known.count += 1;
            if let Some(exchange) = entry.exchange.filter(|_| known.examples.len() < MAX_EXAMPLES) {
                known.examples.push((tape.to_owned(), exchange));
            }
        }
    }
}
