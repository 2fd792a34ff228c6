//! Replays a tape's client calls against a live server.
//!
//! The runner sends each call of a tape again and compares the new answer with the recorded one. It knows nothing of
//! transports: it is handed a connection for each recorded session, as two channels of messages, and speaks on it as
//! the recorded client did.
//!
//! ```text
//!            ┌─ not wanted (filters), not safe (writes), not whole (holes) ──► left out, counted
//! call ──────┼─ in doubt which object it means ([`pairing`]) ──► not sent, reported
//!            └─ request: new id, minted values replaced ──► server ──► answer ──► compared ──► same | different
//!                             ▲                                          │
//!                             └────────── what the server minted now ◄───┘
//! ```
//!
//! Invariants:
//! - without [`RunSettings::allow_writes`], only calls known to be read-only are sent;
//! - a write is sent only if every value it took from an earlier answer has a known counterpart now;
//! - server requests get the recorded client's answer, or an error if the tape has none;
//! - every call of the tape appears in the report exactly once.
//!
//! [`Runner::controlled`] replays one call at a time under interactive control; see [`control`].
//!
//! ```no_run
//! use signalbox_replay::call_gatherer::gather;
//! use signalbox_replay::run::{Connection, MessageTransformer, RunSettings, Runner};
//! use signalbox_replay::{Paths, RecordedCall, RecordedSide};
//! use signalbox_tape::TapeSource;
//!
//! /// Sends every call to a test account.
//! struct TestAccount;
//!
//! impl MessageTransformer for TestAccount {
//!     fn transform_request(&self, request: &mut serde_json::Value, _call: &RecordedCall) {
//!         request["params"]["arguments"]["account"] = "test".into();
//!     }
//! }
//!
//! # async fn example(mut connection: Connection) -> Result<(), Box<dyn std::error::Error>> {
//! let mut tape = TapeSource::open("talk.tape".as_ref())?;
//! let side = RecordedSide::of(&mut tape)?;
//! let calls = gather(tape.entries(None), side, Paths::default())?;
//! let settings = RunSettings { allow_writes: true, ..RunSettings::default() };
//! let mut runner = Runner::new(&settings).with(&TestAccount);
//! runner.session(&calls, &mut connection).await?;
//! let (report, _) = runner.finish();
//! println!("{}", report.to_text());
//! # Ok(()) }
//! ```

mod answer_book;
mod answer_values;
mod connection;
pub mod control;
mod control_handle;
mod controlled;
mod lineage;
mod notification;
mod order;
mod paged_lists;
mod pairing;
mod rebinding;
mod references;
mod report;
mod report_formats;
mod settings;
#[cfg(test)]
mod tests;
mod text_lines;
mod transform;
mod volatile;
mod withheld_writes;

pub use connection::{Connection, RunError};
pub use control::ReplayControl;
pub use control_handle::ReplayHandle;
pub use lineage::{Lineage, UnresolvedValue, ValueStanding};
pub use notification::RecordedNotification;
pub use pairing::Doubt;
pub use rebinding::Rebinding;
pub use report::{CallReport, ReplayVerdict, RunReport};
pub use settings::{OnError, Order, RunSettings, read_only_tools};
pub use transform::{MessageTransformer, TimeShift};
pub use volatile::Volatility;

use crate::diff::Differences;
use crate::recorded_call::RecordedCall;
use answer_book::AnswerBook;
use notification::Unsent;
use order::Schedule;
use serde_json::{Value, json};
use signalbox_engine::catalog::ListKind;
use signalbox_wire::{Era, method};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use withheld_writes::WithheldWrites;

/// Replays recorded calls on live connections.
pub struct Runner<'a> {
    settings: &'a RunSettings,
    /// Hooks that change outgoing requests and incoming answers, in this order.
    transformers: Vec<&'a dyn MessageTransformer>,
    /// Recorded client notifications to send again.
    notifications: &'a [RecordedNotification],
    rebinding: Rebinding,
    withheld: WithheldWrites,
    report: RunReport,
    /// New answers by call number, if [`RunSettings::keep_answers`] is set.
    answers: BTreeMap<u64, Value>,
}

/// Maximum number of requests for a list that differs from the recorded one. A server may still be registering entries
/// when the first client connects.
const LIST_TRIES: u32 = 4;
const LIST_PAUSE: Duration = Duration::from_millis(300);

/// Request that awaits its answer.
struct Pending {
    index: usize,
    sent: Instant,
    tries: u32,
    /// True for the first call sent in its session.
    is_first: bool,
    asked: AnswerBook,
}

impl<'a> Runner<'a> {
    /// Creates a runner with these settings.
    #[must_use]
    pub fn new(settings: &'a RunSettings) -> Self {
        Self {
            settings,
            transformers: Vec::new(),
            notifications: &[],
            rebinding: Rebinding::default(),
            withheld: WithheldWrites::default(),
            report: RunReport::default(),
            answers: BTreeMap::new(),
        }
    }

    /// Adds a transformer for requests and answers.
    #[must_use]
    pub fn with(mut self, transformer: &'a dyn MessageTransformer) -> Self {
        self.transformers.push(transformer);
        self
    }

    /// Sends these notifications at their recorded places. Sends only harmless ones unless writes are allowed.
    #[must_use]
    pub fn notifying(mut self, notifications: &'a [RecordedNotification]) -> Self {
        self.notifications = notifications;
        self
    }

    /// Registers the calls of all sessions before the first replay, because a session may use values from answers of
    /// another.
    #[must_use]
    pub fn expecting(mut self, calls: &[Arc<RecordedCall>]) -> Self {
        self.rebinding.expect(calls.iter().map(|call| &**call));
        self
    }

    /// Replays the calls of one recorded session on its own connection.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn session(&mut self, calls: &[Arc<RecordedCall>], connection: &mut Connection) -> Result<(), RunError> {
        self.rebinding.expect(calls.iter().map(|call| &**call));
        self.introduce(calls, connection).await?;
        let mut schedule = Schedule::new(calls, self.settings);
        let mut pending: HashMap<u64, Pending> = HashMap::new();
        let session = calls.first().and_then(|call| call.session);
        let mut unsent = Unsent::new(self.notifications, session, self.settings.allow_writes);
        let (began, mut is_first) = (Instant::now(), true);
        while let Some(step) = schedule.next(pending.len(), began.elapsed()) {
            match step {
                order::Next::Send(index) => {
                    let Some(call) = calls.get(index) else { continue };
                    while let Some(notification) = unsent.before(call.seq) {
                        connection.send_bytes(notification.message.clone()).await?;
                    }
                    match self.request(call) {
                        Ok(request) => {
                            let id = connection.send_request(request).await?;
                            let (asked, is_first) = (AnswerBook::new(call), std::mem::take(&mut is_first));
                            pending.insert(id, Pending { index, sent: Instant::now(), tries: 1, is_first, asked });
                        }
                        Err(verdict) => {
                            self.note(call, verdict, None);
                            schedule.done(index);
                        }
                    }
                }
                order::Next::Wait(most) => {
                    let most = most.unwrap_or(self.settings.timeout).min(self.settings.timeout);
                    let heard = connection.next(most).await?;
                    self.hear(heard, calls, connection, &mut pending, &mut schedule).await?;
                }
            }
            if self.settings.on_error == OnError::Stop && self.report.has_failed() {
                schedule.stop();
            }
        }
        let told: HashSet<u64> = self.report.calls.iter().map(|call| call.seq).collect();
        for call in calls.iter().filter(|call| !told.contains(&call.seq)) {
            self.note(call, ReplayVerdict::Skipped, None);
        }
        Ok(())
    }

    /// Performs the legacy handshake with the recorded client's parameters.
    async fn introduce(&mut self, calls: &[Arc<RecordedCall>], connection: &mut Connection) -> Result<(), RunError> {
        let recorded = calls.iter().find(|call| &*call.method == method::INITIALIZE);
        let stateless = recorded.is_none() && calls.iter().any(|call| call.era == Era::Modern);
        if stateless {
            return Ok(());
        }
        let params = recorded.and_then(|call| serde_json::from_slice::<Value>(call.request.as_ref()?).ok());
        let params = params.and_then(|mut request| request.get_mut("params").map(Value::take));
        let params = params.unwrap_or_else(|| {
            json!({"protocolVersion": "2025-11-25", "capabilities": {},
                   "clientInfo": {"name": "signalbox-replay", "version": env!("CARGO_PKG_VERSION")}})
        });
        connection.initialize(params, self.settings.timeout).await
    }

    /// Returns the request to send now, or the verdict if it must not be sent.
    fn request(&self, call: &RecordedCall) -> Result<Value, ReplayVerdict> {
        if is_handshake(&call.method) {
            return Err(ReplayVerdict::Handshake);
        }
        if !self.settings.wants(call) {
            return Err(ReplayVerdict::Filtered);
        }
        let request = self.rebound(call)?;
        if !self.settings.may_send(call) {
            return Err(ReplayVerdict::FromTape);
        }
        match self.objection(call) {
            Some(verdict) => Err(verdict),
            None => Ok(request),
        }
    }

    /// Returns the reason to withhold a call that uses a value from an earlier answer without a certain counterpart
    /// now.
    fn objection(&self, call: &RecordedCall) -> Option<ReplayVerdict> {
        let unsettled = self.rebinding.unsettled(call)?;
        let only_reads = self.settings.only_reads(call);
        if let Some(doubt) = unsettled.doubt {
            let why = format!("`{}` of call {} {}", unsettled.value, unsettled.call, doubt.words());
            return (unsettled.is_id || !only_reads).then_some(ReplayVerdict::Unclear(why));
        }
        let source = self.report.calls.iter().rev().find(|told| told.number == unsettled.call);
        let was_left_out =
            source.is_none_or(|told| matches!(told.verdict, ReplayVerdict::Filtered | ReplayVerdict::Skipped));
        let depends = ReplayVerdict::Depends { call: unsettled.call, differences: None };
        (!only_reads || unsettled.is_id && !was_left_out).then_some(depends)
    }

    /// Returns the recorded request with recorded values replaced by the server's new ones.
    fn rebound(&self, call: &RecordedCall) -> Result<Value, ReplayVerdict> {
        let whole = call.request.as_ref().filter(|_| !call.redacted);
        let request = whole.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        let Some(mut request) = request else {
            return Err(ReplayVerdict::Hole("its request is not whole on the tape"));
        };
        self.rebinding.transform_request(&mut request, call);
        self.transformers.iter().for_each(|one| one.transform_request(&mut request, call));
        Ok(request)
    }

    async fn hear(
        &mut self,
        heard: Option<Value>,
        calls: &[Arc<RecordedCall>],
        connection: &mut Connection,
        pending: &mut HashMap<u64, Pending>,
        schedule: &mut Schedule<'_>,
    ) -> Result<(), RunError> {
        let Some(message) = heard else {
            self.give_up_late(calls, pending, schedule);
            return Ok(());
        };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(name), Some(id)) => {
                let answer = pending.values_mut().find_map(|waiting| waiting.asked.answer(name));
                connection.answer(id, answer).await
            }
            (Some(_), None) => {
                self.report.notifications += 1;
                Ok(())
            }
            (None, id) => {
                let Some(id) = id.and_then(Value::as_u64) else { return Ok(()) };
                let Some(waiting) = pending.remove(&id) else { return Ok(()) };
                let Some(call) = calls.get(waiting.index) else { return Ok(()) };
                if self.is_worth_asking_again(call, &message, &waiting).await
                    && let Ok(request) = self.request(call)
                {
                    let id = connection.send_request(request).await?;
                    let asked = AnswerBook::new(call);
                    pending.insert(id, Pending { tries: waiting.tries + 1, sent: Instant::now(), asked, ..waiting });
                    return Ok(());
                }
                // A write is not repeated just to time it, and the first one may have waited for a handshake.
                let is_timed = !waiting.is_first || self.settings.only_reads(call);
                self.compare(call, message, waiting.sent.elapsed(), is_timed);
                schedule.done(waiting.index);
                Ok(())
            }
        }
    }

    /// Returns `true` if a call should be sent again: it failed and retries are on, it is a list that has not settled,
    /// or it is a slow first read that may have waited for a handshake. The gateway opens some connections only at the
    /// first call of a session.
    async fn is_worth_asking_again(&self, call: &RecordedCall, answer: &Value, waiting: &Pending) -> bool {
        let (tries, took) = (waiting.tries, waiting.sent.elapsed());
        if waiting.is_first && tries == 1 && self.settings.only_reads(call) && self.is_late(call, took).is_some() {
            return true;
        }
        let failed = answer.get("error").is_some() && !recorded_error(call);
        if failed || ListKind::of_method(&call.method).is_none() {
            return failed && self.settings.on_error == OnError::Retry && tries < self.settings.tries;
        }
        let recorded = call.answer.as_ref().and_then(|said| serde_json::from_slice::<Value>(said.bytes.as_ref()?).ok());
        let Some(recorded) = recorded else { return false };
        let unsettled = tries < LIST_TRIES && !self.differences(call, &recorded, answer).is_same();
        if unsettled {
            tokio::time::sleep(LIST_PAUSE).await;
        }
        unsettled
    }

    /// Gives up on calls that have exceeded the timeout.
    fn give_up_late(
        &mut self,
        calls: &[Arc<RecordedCall>],
        pending: &mut HashMap<u64, Pending>,
        schedule: &mut Schedule<'_>,
    ) {
        let timeout = self.settings.timeout;
        let late = pending.extract_if(|_, waiting| waiting.sent.elapsed() >= timeout);
        for (_, waiting) in late.collect::<Vec<_>>() {
            schedule.done(waiting.index);
            if let Some(call) = calls.get(waiting.index) {
                self.note(call, ReplayVerdict::Unanswered, Some(waiting.sent.elapsed()));
            }
        }
    }

    fn compare(&mut self, call: &RecordedCall, mut answer: Value, took: Duration, is_timed: bool) {
        self.transformers.iter().for_each(|one| one.transform_response(&mut answer, call));
        let recorded = call.answer.as_ref().and_then(|said| serde_json::from_slice::<Value>(said.bytes.as_ref()?).ok());
        let Some(mut recorded) = recorded else {
            return self.note(call, ReplayVerdict::Hole("its answer is not whole on the tape"), Some(took));
        };
        self.rebinding.learn(&recorded, &answer, call, &self.settings.comparison.ignored);
        self.rebinding.apply(&mut recorded);
        let differences = self.differences(call, &recorded, &answer);
        let verdict = self.verdict(call, differences, Some(took).filter(|_| is_timed));
        if self.settings.keep_answers {
            self.answers.insert(call.number, answer);
        }
        self.note(call, verdict, Some(took));
    }

    fn differences(&self, call: &RecordedCall, recorded: &Value, answer: &Value) -> Differences {
        let masks = call.answer.as_ref().filter(|said| said.redacted).map(|_| &self.settings.masks);
        let side = crate::diff::DiffSide { message: recorded, masks };
        self.settings.comparison.compare_messages(side, answer.into())
    }

    fn verdict(&self, call: &RecordedCall, differences: Differences, took: Option<Duration>) -> ReplayVerdict {
        if !differences.is_same() {
            return match self.withheld.behind(call, &differences, &self.rebinding) {
                Some(write) => ReplayVerdict::Depends { call: write, differences: Some(differences) },
                None => ReplayVerdict::Different(differences),
            };
        }
        let late = took.and_then(|took| Some((self.is_late(call, took)?, took)));
        late.map_or(ReplayVerdict::Same, |(recorded, took)| ReplayVerdict::Slow { recorded, took })
    }

    /// Returns the recorded duration of a call if `took` exceeds it by more than the budget.
    fn is_late(&self, call: &RecordedCall, took: Duration) -> Option<Duration> {
        let recorded = call.answer.as_ref().map_or(0, |answer| answer.at.saturating_sub(call.began));
        let recorded = Duration::from_nanos(recorded);
        self.settings.timing.is_some_and(|budget| took > recorded + budget).then_some(recorded)
    }

    fn note(&mut self, call: &RecordedCall, verdict: ReplayVerdict, took: Option<Duration>) {
        let is_unsent = matches!(
            verdict,
            ReplayVerdict::FromTape | ReplayVerdict::Unclear(_) | ReplayVerdict::Depends { differences: None, .. }
        );
        if is_unsent && !self.settings.only_reads(call) {
            self.withheld.add(call, &self.rebinding);
        }
        self.report.calls.push(CallReport::new(call, verdict, took));
    }

    /// Returns the report, and the new answers by call number.
    #[must_use]
    pub fn finish(mut self) -> (RunReport, BTreeMap<u64, Value>) {
        self.report.calls.sort_by_key(|call| call.seq);
        self.report.rebound = self.rebinding.len();
        self.report.lineage = self.rebinding.lineage();
        (self.report, self.answers)
    }
}

/// Returns `true` for methods that set up or keep up a connection. The runner sends these itself.
#[must_use]
pub fn is_handshake(name: &str) -> bool {
    [method::INITIALIZE, method::SERVER_DISCOVER, method::PING, method::SUBSCRIPTIONS_LISTEN].contains(&name)
}

fn recorded_error(call: &RecordedCall) -> bool {
    let answer = call.answer.as_ref().and_then(|said| serde_json::from_slice::<Value>(said.bytes.as_ref()?).ok());
    answer.is_some_and(|answer| answer.get("error").is_some())
}
