//! Plays one recorded call as the answer to a live request.

use crate::recorded_call::{RecordedCall, RecordedMessage, Step};
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

/// Time that a client has to answer a server request before its call continues without the answer.
const CLIENT_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// Limit on recorded pauses when no speed is set. Some clients lose progress that arrives together with its answer.
const MAX_UNSCALED_PAUSE: Duration = Duration::from_millis(10);
/// Limit on recorded pauses when a speed is set.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// Server requests of recorded calls that await the client's answer.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    next: AtomicU64,
    waiting: Mutex<HashMap<Bytes, oneshot::Sender<Bytes>>>,
}

impl Questions {
    /// Delivers the answer to the call that awaits it. Returns `false` if no request has this id.
    pub(crate) fn answer(&self, id: &RawId, answer: &Bytes) -> bool {
        let waiting = self.waiting.lock().unpoisoned().remove(id.bytes());
        waiting.map(|waiting| waiting.send(answer.clone())).is_some()
    }

    /// Registers a server request.
    fn ask(&self) -> Question<'_> {
        let id = RawId::string(&format!("tape-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unpoisoned().insert(id.bytes().clone(), sender);
        Question { questions: self, id, answer }
    }
}

/// Server request that awaits the client's answer. It is forgotten when its call ends or stops waiting.
struct Question<'a> {
    questions: &'a Questions,
    id: RawId,
    answer: oneshot::Receiver<Bytes>,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.questions.waiting.lock().unpoisoned().remove(self.id.bytes());
    }
}

/// Playback of one call to a client.
pub(crate) struct Playback {
    pub(crate) call: Arc<RecordedCall>,
    /// Id of the client's live request.
    pub(crate) id: RawId,
    /// Era of the client's live request.
    pub(crate) era: Era,
    /// Progress token of the client's live request.
    pub(crate) token: Option<Value>,
    pub(crate) speed: Option<f64>,
    pub(crate) events: Arc<dyn LinkEvents>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) key: Option<u64>,
}

impl Playback {
    /// Returns `true` if playback has pauses or server requests to wait for.
    pub(crate) fn waits(&self) -> bool {
        self.speed.is_some() || !self.call.steps.is_empty()
    }

    /// Sends the answer of a call without steps, and what followed it.
    pub(crate) fn at_once(&self) {
        self.answer();
        self.afterwards();
    }

    /// Sends all messages with the recorded pauses, and awaits the answers to server requests.
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

    async fn pause(&self, clock: &mut u64, until: &RecordedMessage) {
        let pause = Duration::from_nanos(until.at.saturating_sub(*clock)).min(MAX_PAUSE);
        *clock = until.at.max(*clock);
        let pause = match self.speed.filter(|speed| *speed > 0.0) {
            Some(speed) => pause.div_f64(speed),
            None => pause.min(MAX_UNSCALED_PAUSE),
        };
        tokio::time::sleep(pause).await;
    }

    async fn ask(&self, step: &Step) {
        let Some(bytes) = &step.said.bytes else { return };
        let Ok(question) = Envelope::parse(bytes.clone()) else { return };
        let mut asked = self.questions.ask();
        self.events.received(question.with_id(asked.id.token()), self.key, None);
        // The content of the answer does not matter: the recording continues as it is.
        let _ = tokio::time::timeout(CLIENT_ANSWER_TIMEOUT, &mut asked.answer).await;
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

    /// Rewrites a progress notification for the client's token. Returns `None` if the client gave no token.
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
            Some(answer) if self.era == Era::Modern && self.call.era == Era::Legacy => self.to_modern(&answer),
            Some(answer) => answer.with_id(self.id.token()),
            None => builder::error(Some(&self.id), codes::INTERNAL_ERROR, "the recorded answer is not a message", None),
        };
        self.events.received(bytes, self.key, None);
    }

    /// Converts a legacy result for a modern client.
    fn to_modern(&self, answer: &Envelope) -> Bytes {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_not_answered_in_time_is_forgotten() {
        let questions = Questions::default();
        let asked = questions.ask();
        let id = asked.id.clone();
        assert_eq!(questions.waiting.lock().unwrap().len(), 1);
        drop(asked);
        assert!(questions.waiting.lock().unwrap().is_empty(), "nothing is kept");
        assert!(!questions.answer(&id, &Bytes::from_static(b"{}")), "a late answer is for nobody");
        let mut asked = questions.ask();
        assert!(questions.answer(&asked.id.clone(), &Bytes::from_static(b"{}")));
        assert_eq!(asked.answer.try_recv().unwrap(), "{}");
    }
}
