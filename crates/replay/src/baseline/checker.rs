//! Matches live calls with recorded ones and compares their answers. One thread feeds it all facts in order.

use super::counters::Counters;
use crate::diff::{Comparison, DiffSide, Difference, Differences, Masks};
use crate::recorded_call::{RecordedCall, RecordedMessage};
use crate::tape_player::{TapeCursor, TapePlayer};
use serde_json::Value;
use signalbox_engine::bounded::make_room;
use signalbox_engine::chain::{Ruling, Rulings};
use signalbox_engine::fact::{Decision, MessageFact, Point};
use signalbox_engine::keys::KeyMap;
use signalbox_engine::record::StoreError;
use signalbox_engine::{ExchangeId, Fact, SessionKey};
use signalbox_wire::{Envelope, Kind, method};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Answer places whose values a server mints for one conversation.
pub(super) const MINTED_IN_ANSWERS: [&str; 1] = ["/result/requestState"];
/// Maximum number of sessions with their own cursor. Beyond it, the oldest starts again from the beginning.
const MAX_SESSIONS: usize = 10_000;
/// Maximum number of cursors for callers without a session. Beyond it, the one that is unused for longest is dropped.
pub(super) const MAX_CALLERS: usize = 10_000;
/// Maximum number of pending calls. Beyond it, the oldest is not compared.
const MAX_PENDING: usize = 10_000;
/// Maximum number of places listed in a decision.
const MAX_NAMED: usize = 3;
/// Maximum length of a name or pointer in a decision, in characters.
const MAX_NAME: usize = 100;

/// Returns `true` for methods whose answers are compared: those that use a server's tools, prompts and resources. `tape
/// diff` compares lists.
pub(super) fn is_compared(method: &str) -> bool {
    [method::TOOLS_CALL, method::PROMPTS_GET, method::RESOURCES_READ, method::COMPLETION_COMPLETE].contains(&method)
}

/// State of the calls in flight.
pub(super) struct Checker {
    tape: Arc<str>,
    player: TapePlayer,
    comparison: Comparison,
    masks: Masks,
    /// Cursor of each session.
    sessions: BTreeMap<SessionKey, TapeCursor>,
    /// Cursor of each caller without a session, with the number of its last call.
    callers: HashMap<Arc<str>, (TapeCursor, u64)>,
    /// Number of calls without a session.
    calls: u64,
    awaited: KeyMap<ExchangeId, PendingCall>,
    /// Pending exchanges in order of their start. May also contain exchanges that are done.
    order: VecDeque<ExchangeId>,
    counters: Arc<Counters>,
    is_failing: bool,
}

/// Call in flight with its recorded answer.
struct PendingCall {
    name: String,
    recorded: u64,
    answer: RecordedMessage,
}

impl Checker {
    pub(super) fn new(
        tape: Arc<str>,
        player: TapePlayer,
        comparison: Comparison,
        masks: Masks,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            tape,
            player,
            comparison,
            masks,
            sessions: BTreeMap::new(),
            callers: HashMap::new(),
            calls: 0,
            awaited: KeyMap::default(),
            order: VecDeque::new(),
            counters,
            is_failing: false,
        }
    }

    /// Processes a fact. Returns a decision if it completes a call that differs from the recording.
    pub(super) fn take(&mut self, fact: &Fact) -> Option<Decision> {
        match fact {
            Fact::Message(message) => {
                let exchange = message.exchange?;
                match message.point {
                    Point::ClientIn => self.request(message, exchange),
                    Point::ClientOut => self.answer(message, exchange),
                    Point::BackendOut | Point::BackendIn => None,
                }
            }
            Fact::Session(session) => {
                self.sessions.entry(session.session).or_default();
                while self.sessions.len() > MAX_SESSIONS {
                    self.sessions.pop_first();
                }
                None
            }
            Fact::SessionEnded { session, .. } => {
                self.sessions.remove(session);
                None
            }
            // A cancelled call gets no answer.
            Fact::Finished(finished) => {
                self.awaited.remove(&finished.exchange);
                None
            }
            Fact::Lost(_) | Fact::Decision(_) | Fact::Refused(_) => None,
        }
    }

    /// Drops an exchange one of whose messages did not fit into the queue. That message may have been the answer.
    pub(super) fn drop_exchange(&mut self, exchange: ExchangeId) {
        if self.awaited.remove(&exchange).is_some() {
            self.counters.dropped();
        }
    }

    fn request(&mut self, message: &MessageFact, exchange: ExchangeId) -> Option<Decision> {
        let read = Envelope::parse(message.bytes.clone()).ok().filter(|read| read.kind() == Kind::Request)?;
        read.method().filter(|method| is_compared(method))?;
        let request = as_value(&message.bytes);
        let name = name_of(&read, &request);
        let found = self.find(message, &request);
        self.is_failing &= found.is_err();
        let why = match found {
            Ok(Some(call)) => match call.answer.clone() {
                Some(answer) => {
                    self.expect(exchange, PendingCall { name, recorded: call.number, answer });
                    return None;
                }
                None => format!("{name}: call {} of the baseline has no answer", call.number),
            },
            Ok(None) => format!("{name} is not on the baseline"),
            Err(error) => {
                self.failed(&error);
                format!("{name}: the baseline cannot be read: {error}")
            }
        };
        self.counters.unknown();
        Some(self.decision(message, "request", Ruling::of("unknown", why)))
    }

    fn find(&mut self, message: &MessageFact, request: &Value) -> Result<Option<Arc<RecordedCall>>, StoreError> {
        let cursor = match self.sessions.get_mut(&message.session) {
            Some(cursor) => cursor,
            None => {
                let caller = message.caller.principal().shared();
                if !self.callers.contains_key(&caller) {
                    make_room(&mut self.callers, MAX_CALLERS, |(_, last)| *last);
                }
                self.calls += 1;
                let (cursor, last) = self.callers.entry(caller).or_default();
                *last = self.calls;
                cursor
            }
        };
        self.player.find_equal(cursor, request)
    }

    fn expect(&mut self, exchange: ExchangeId, awaited: PendingCall) {
        self.order.push_back(exchange);
        self.awaited.insert(exchange, awaited);
        while let Some(oldest) = self.order.front().copied() {
            if self.awaited.len() > MAX_PENDING {
                self.drop_exchange(oldest);
            }
            if self.awaited.contains_key(&oldest) {
                break;
            }
            self.order.pop_front();
        }
        // An old pending call keeps completed ones behind it in the queue.
        if self.order.len() > 2 * MAX_PENDING {
            self.order.retain(|exchange| self.awaited.contains_key(exchange));
        }
    }

    fn answer(&mut self, message: &MessageFact, exchange: ExchangeId) -> Option<Decision> {
        if !self.awaited.contains_key(&exchange) {
            return None;
        }
        let kind = Envelope::parse(message.bytes.clone()).map(|read| read.kind());
        if !matches!(kind, Ok(Kind::Response | Kind::Error)) {
            return None;
        }
        let awaited = self.awaited.remove(&exchange)?;
        let found = self.compare(&awaited.answer, &message.bytes);
        if found.is_same() {
            self.counters.same();
            return None;
        }
        self.counters.differs();
        let detail = format!("{} differs from call {} at {}", awaited.name, awaited.recorded, places(&found));
        Some(self.decision(message, "response", Ruling::of("differs", detail)))
    }

    fn compare(&self, recorded: &RecordedMessage, new: &[u8]) -> Differences {
        let (was, is) = (recorded.bytes.as_deref().map(as_value).unwrap_or_default(), as_value(new));
        let masks = recorded.redacted.then_some(&self.masks);
        self.comparison.compare_messages(DiffSide { message: &was, masks }, DiffSide::from(&is))
    }

    fn decision(&self, message: &MessageFact, phase: &'static str, mut ruling: Ruling) -> Decision {
        ruling.inputs.push(("baseline", self.tape.to_string()));
        Decision {
            at: Instant::now(),
            session: message.session,
            caller: message.caller.clone(),
            exchange: message.exchange,
            phase,
            rulings: vec![("baseline", Rulings::One(Arc::new(ruling)))],
        }
    }

    fn failed(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(tape = %self.tape, %error, "the baseline cannot be read: calls count as unknown");
        }
    }
}

/// Parses a message. A message nested too deeply becomes a text, which equals only itself.
fn as_value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned().into())
}

/// Formats the method with its tool, prompt or resource.
fn name_of(read: &Envelope, request: &Value) -> String {
    let method = read.method().unwrap_or_default();
    let params = request.get("params");
    let subject = params.and_then(|params| params.get("name").or_else(|| params.get("uri"))).and_then(Value::as_str);
    subject.map_or_else(|| method.to_owned(), |subject| format!("{method} {}", cut(subject)))
}

/// Lists the first places and the number of further ones, without values, which may be secrets.
fn places(found: &Differences) -> String {
    let place = |one: &Difference| {
        let pointer = if one.pointer.is_empty() { "/" } else { &one.pointer };
        format!("{} ({})", cut(pointer), one.kind.word())
    };
    let named: Vec<String> = found.list.iter().take(MAX_NAMED).map(place).collect();
    let more = found.more + found.list.len().saturating_sub(MAX_NAMED) as u64;
    let named = named.join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
