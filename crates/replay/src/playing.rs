//! Plays one recorded call to whoever asked for it.

use crate::recorded_call::{RecordedCall, Said, Step};
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_runtime::LinkEvents;
use signalbox_wire::{Envelope, Era, RawId, builder, codes, method};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a client may take to answer a question before its call goes on without the answer.
const PATIENCE: Duration = Duration::from_secs(600);
/// How much of a recorded pause is kept where there is no speed: real clients lose progress that comes together with its answer.
const BREATH: Duration = Duration::from_millis(10);
/// The longest recorded pause that is kept.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Questions of recorded calls that wait for the client.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    next: AtomicU64,
    waiting: Mutex<HashMap<Bytes, oneshot::Sender<Bytes>>>,
}

impl Questions {
    /// Gives the answer to the call that waits for it. False if no call asked under this id.
    pub(crate) fn answer(&self, id: &RawId, answer: &Bytes) -> bool {
        let waiting = self.waiting.lock().unpoisoned().remove(id.bytes());
        waiting.map(|waiting| waiting.send(answer.clone())).is_some()
    }

    /// A new id, and its answer when it comes.
    fn ask(&self) -> (RawId, oneshot::Receiver<Bytes>) {
        let id = RawId::string(&format!("tape-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().unpoisoned().insert(id.bytes().clone(), sender);
        (id, receiver)
    }
}

/// A call on its way to a client.
pub(crate) struct Playing {
    pub(crate) call: Arc<RecordedCall>,
    /// The id under which the client asks now.
    pub(crate) id: RawId,
    /// The era in which it asks.
    pub(crate) era: Era,
    /// The token for progress that it gave.
    pub(crate) token: Option<Value>,
    pub(crate) speed: Option<f64>,
    pub(crate) events: Arc<dyn LinkEvents>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) key: Option<u64>,
}

impl Playing {
    /// True if something has to be waited for.
    pub(crate) fn waits(&self) -> bool {
        self.speed.is_some() || !self.call.steps.is_empty()
    }

    /// Says everything of a call that has nothing to wait for.
    pub(crate) fn at_once(&self) {
        self.answer();
        self.afterwards();
    }

    /// Says everything with the recorded pauses, and waits for the answers to questions.
    pub(crate) async fn run(self) {
        let mut clock = self.call.began;
        for step in &self.call.steps {
            self.pause(&mut clock, &step.said).await;
            match step.asks {
                true => self.ask(step).await,
                false => self.notify(step, self.key),
            }
        }
        if let Some(answer) = &self.call.answer {
            self.pause(&mut clock, answer).await;
        }
        self.answer();
        self.afterwards();
    }

    async fn pause(&self, clock: &mut u64, until: &Said) {
        let pause = Duration::from_nanos(until.at.saturating_sub(*clock)).min(LONGEST_PAUSE);
        *clock = until.at.max(*clock);
        let pause = match self.speed.filter(|speed| *speed > 0.0) {
            Some(speed) => pause.div_f64(speed),
            None => pause.min(BREATH),
        };
        tokio::time::sleep(pause).await;
    }

    async fn ask(&self, step: &Step) {
        let Some(bytes) = &step.said.bytes else { return };
        let Ok(question) = Envelope::parse(bytes.clone()) else { return };
        let (id, answer) = self.questions.ask();
        self.events.received(question.with_id(id.token()), self.key, None);
        // The recorded call went on as it was recorded, whatever the client says now.
        let _ = tokio::time::timeout(PATIENCE, answer).await;
    }

    fn notify(&self, step: &Step, about: Option<u64>) {
        let Some(bytes) = step.said.bytes.as_ref().filter(|_| !step.asks) else { return };
        let told = Envelope::parse(bytes.clone());
        if told.is_ok_and(|told| told.method() == Some(method::PROGRESS)) {
            if let Some(bytes) = self.progress(bytes) {
                self.events.received(bytes, about, None);
            }
            return;
        }
        self.events.received(bytes.clone(), about, None);
    }

    /// Progress under the token that the client gave now; none if it gave none.
    fn progress(&self, bytes: &Bytes) -> Option<Bytes> {
        let token = self.token.clone()?;
        let mut told: Value = serde_json::from_slice(bytes).ok()?;
        told.get_mut("params")?.as_object_mut()?.insert("progressToken".to_owned(), token);
        Some(told.to_string().into())
    }

    fn answer(&self) {
        let answer = self.call.answer.as_ref().and_then(|answer| answer.bytes.clone());
        let answer = answer.and_then(|bytes| Envelope::parse(bytes).ok());
        let bytes = match answer {
            Some(answer) if self.era == Era::Modern && self.call.era == Era::Legacy => self.modernised(&answer),
            Some(answer) => answer.with_id(self.id.token()),
            None => builder::error(Some(&self.id), codes::INTERNAL_ERROR, "the recorded answer is not a message", None),
        };
        self.events.received(bytes, self.key, None);
    }

    /// What the old era answered, as the new era wants it.
    fn modernised(&self, answer: &Envelope) -> Bytes {
        let result = answer.result().and_then(|result| serde_json::from_slice::<Value>(result).ok());
        let Some(Value::Object(mut result)) = result else { return answer.with_id(self.id.token()) };
        result.entry("resultType").or_insert_with(|| "complete".into());
        if &*self.call.method == method::RESOURCES_READ {
            result.entry("ttlMs").or_insert_with(|| json!(0));
            result.entry("cacheScope").or_insert_with(|| "private".into());
        }
        builder::response(&self.id, Value::Object(result).to_string().as_bytes())
    }

    fn afterwards(&self) {
        self.call.afterwards.iter().for_each(|step| self.notify(step, None));
    }
}
