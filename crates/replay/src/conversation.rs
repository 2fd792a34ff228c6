//! Plays a recorded server for one client connection.
//!
//! ```text
//! message ─┬─ handshake, ping, list ──► answered from what the tape knows of its server
//!          ├─ call ──► found on the tape ──► its notifications, its questions, its answer, in their order
//!          │           not found ──► refused with the nearest call, or passed to the live server
//!          └─ answer to a question ──► the call that asked goes on
//! ```
//!
//! Messages are processed in order. A call without recorded pauses or questions is answered before the next message is
//! read. Other calls run in tasks of their own.

use crate::call_gatherer::era;
use crate::introduction::Introduction;
use crate::nearest;
use crate::playback::Playback;
use crate::quick_answers::QuickAnswers;
use crate::tape_connector::PlaybackStats;
use crate::tape_player::{Lookup, TapeCursor, TapePlayer};
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::back::ToBackend;
use signalbox_engine::catalog::ListKind;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::record::StoreError;
use signalbox_runtime::{Link, LinkEvents};
use signalbox_wire::{Envelope, Era, Kind, RawId, builder, codes, meta, method};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Error code for a modern client's call that is not on the tape.
const NOT_ON_TAPE: i64 = 4040;

/// Input of a conversation's task.
#[derive(Debug)]
pub(crate) enum Input {
    Message(ToBackend),
    /// The gateway no longer awaits the answer to this request.
    Abort(u64),
    Close,
}

pub(crate) struct Conversation {
    name: Arc<str>,
    player: Arc<TapePlayer>,
    played: Arc<PlaybackStats>,
    live: Option<Arc<dyn Link>>,
    always: bool,
    events: Arc<dyn LinkEvents>,
    cursor: Arc<Mutex<TapeCursor>>,
    quick: Arc<QuickAnswers>,
    tasks: JoinSet<()>,
    running: HashMap<u64, AbortHandle>,
    listening: Vec<RawId>,
}

impl Conversation {
    pub(crate) fn new(name: Arc<str>, live: Option<Arc<dyn Link>>, always: bool, quick: Arc<QuickAnswers>) -> Self {
        Self {
            name,
            player: Arc::clone(&quick.player),
            played: Arc::clone(&quick.played),
            live,
            always,
            events: Arc::clone(&quick.events),
            cursor: Arc::clone(&quick.cursor),
            quick,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            listening: Vec::new(),
        }
    }

    /// Processes input until closed.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<Input>) {
        while let Some(input) = inbox.recv().await {
            match input {
                Input::Message(message) => self.message(message).await,
                Input::Abort(key) => self.stop(key),
                Input::Close => break,
            }
            self.quick.pending.fetch_sub(1, Ordering::AcqRel);
            while self.tasks.try_join_next().is_some() {}
            if self.running.len() > 2 * self.tasks.len() + 16 {
                self.running.retain(|_, task| !task.is_finished());
            }
        }
        if self.live.is_none() {
            self.events.lost("was closed by the gateway".to_owned());
        }
    }

    fn stop(&mut self, key: u64) {
        if let Some(task) = self.running.remove(&key) {
            task.abort();
        }
        self.listening.retain(|id| id.as_u64() != Some(key));
    }

    async fn message(&mut self, message: ToBackend) {
        let Ok(envelope) = Envelope::parse(message.bytes().clone()) else { return };
        match (envelope.kind(), envelope.id()) {
            (Kind::Request, Some(id)) => self.request(message, &envelope, id).await,
            (Kind::Notification, _) => {
                if envelope.method() == Some(method::CANCELLED)
                    && let Some(span) = envelope.param("requestId")
                    && let Some(key) =
                        std::str::from_utf8(span.of(envelope.bytes())).ok().and_then(|text| text.parse().ok())
                {
                    self.stop(key);
                }
                self.pass_on(message);
            }
            (_, Some(id)) => match self.quick.questions.answer(&id, envelope.bytes()) {
                true => {}
                false => self.pass_on(message),
            },
            _ => {}
        }
    }

    async fn request(&mut self, message: ToBackend, envelope: &Envelope, id: RawId) {
        let Some(method) = envelope.method() else { return };
        let is_own = Introduction::answers(method) || ListKind::of_method(method).is_some();
        if self.live.is_some() && (self.always || is_own) {
            self.played.live.fetch_add(u64::from(!is_own), Ordering::Relaxed);
            return self.pass_on(message);
        }
        let key = message.key();
        let Ok(request) = serde_json::from_slice::<Value>(envelope.bytes()).map(Arc::new) else { return };
        if method == method::SUBSCRIPTIONS_LISTEN {
            return self.listen(&request, id);
        }
        if is_own {
            let place = self.cursor.lock().unpoisoned().place();
            let answer = Introduction::new(&self.player, place).answer(method, &request, &id);
            return self.say(answer, key);
        }
        match self.find(&request).await {
            Ok(Lookup::Call(call)) => {
                self.played.calls.fetch_add(1, Ordering::Relaxed);
                let playing = self.quick.playing(call, id, &request, key);
                self.play(playing);
            }
            // The effect on the recorded server is unknown. Without a recorded answer, treat these as no-ops.
            Ok(_) if self.live.is_none() && is_harmless(method) => {
                self.say(builder::response(&id, empty(era(&request))), key);
            }
            Ok(_) if self.live.is_some() => {
                self.played.live.fetch_add(1, Ordering::Relaxed);
                self.pass_on(message);
            }
            Ok(found) => {
                self.played.unknown.fetch_add(1, Ordering::Relaxed);
                let refusal = self.refusal(&found, &request, &id);
                self.say(refusal, key);
            }
            Err(error) => {
                tracing::warn!(backend = %self.name, %error, "the tape cannot be read");
                let text = format!("the tape cannot be read: {error}");
                self.say(builder::error(Some(&id), codes::INTERNAL_ERROR, &text, None), key);
            }
        }
    }

    /// Looks up a call, first in the part of the tape already read. Reads on in a blocking task, since that may take
    /// long.
    async fn find(&self, request: &Arc<Value>) -> Result<Lookup, StoreError> {
        let known = |key| self.player.find_known(&mut self.cursor.lock().unpoisoned(), key, |_| true);
        if let Some(call) = self.player.key_of(request).and_then(known) {
            return Ok(Lookup::Call(call));
        }
        let (player, cursor, request) = (Arc::clone(&self.player), Arc::clone(&self.cursor), Arc::clone(request));
        let found = tokio::task::spawn_blocking(move || player.find(&mut cursor.lock().unpoisoned(), &request));
        found.await.unwrap_or_else(|error| Err(StoreError::Other(error.to_string())))
    }

    fn play(&mut self, playing: Playback) {
        let place = self.cursor.lock().unpoisoned().place();
        let before = place.min(playing.call.seq);
        if !self.listening.is_empty() {
            for bytes in self.player.announced(before, place) {
                self.announce(&bytes);
            }
        }
        if !playing.waits() {
            return playing.at_once();
        }
        let key = playing.key;
        let task = self.tasks.spawn(playing.run());
        if let Some(key) = key {
            self.running.insert(key, task);
        }
    }

    /// Sends an announcement to every listen request, each under its own subscription id.
    fn announce(&self, bytes: &Bytes) {
        let Ok(mut told) = serde_json::from_slice::<Value>(bytes) else { return };
        for id in &self.listening {
            let Ok(token) = serde_json::from_slice::<Value>(id.token()) else { continue };
            if let Some(tag) = told.pointer_mut("/params/_meta").and_then(Value::as_object_mut) {
                tag.insert(meta::SUBSCRIPTION_ID.to_owned(), token);
            }
            self.say(told.to_string().into(), id.as_u64());
        }
    }

    /// Acknowledges a listen request and keeps it open.
    fn listen(&mut self, request: &Value, id: RawId) {
        let wanted = request.pointer("/params/notifications").cloned().unwrap_or_else(|| json!({}));
        let token = serde_json::from_slice::<Value>(id.token()).unwrap_or_default();
        let params = json!({"_meta": {meta::SUBSCRIPTION_ID: token}, "notifications": wanted});
        let told = json!({"jsonrpc": "2.0", "method": method::SUBSCRIPTIONS_ACKNOWLEDGED, "params": params});
        self.say(told.to_string().into(), id.as_u64());
        self.listening.push(id);
        // Announcements must precede the calls that they preceded on the tape, so every call goes through the queue.
        self.quick.off.store(true, Ordering::Release);
    }

    fn refusal(&self, found: &Lookup, request: &Value, id: &RawId) -> Bytes {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        let subject =
            request.pointer("/params/name").or_else(|| request.pointer("/params/uri")).and_then(Value::as_str);
        let what = subject.map_or_else(|| method.to_owned(), |subject| format!("{method} of {subject}"));
        let (text, data) = match found {
            Lookup::Exhausted(times) => {
                let text = format!("{what} was recorded {times} times and is asked for once more");
                (text, json!({"reason": "not_on_tape", "recorded": times}))
            }
            Lookup::Nothing(Some(near)) => {
                let recorded = near.request.as_ref().and_then(|bytes| serde_json::from_slice(bytes).ok());
                let ignored = &self.player.settings().ignored;
                let differs = recorded.map(|recorded: Value| nearest::differences(&recorded, request, ignored));
                let differs = differs.unwrap_or_default();
                let text = format!(
                    "{what} is not on the tape; call {} is nearest, and differs at {}",
                    near.number,
                    differs.join(", ")
                );
                (text, json!({"reason": "not_on_tape", "nearest": near.number, "differs": differs}))
            }
            _ => (format!("{what} is not on the tape"), json!({"reason": "not_on_tape"})),
        };
        tracing::warn!(backend = %self.name, "{text}");
        let code = match era(request) {
            Era::Modern => NOT_ON_TAPE,
            Era::Legacy => codes::LEGACY_SERVER_ERROR,
        };
        builder::error(Some(id), code, &text, Some(data.to_string().as_bytes()))
    }

    fn say(&self, bytes: Bytes, about: Option<u64>) {
        self.events.received(bytes, about, None);
    }

    fn pass_on(&self, message: ToBackend) {
        let Some(live) = &self.live else { return };
        let key = message.key();
        if let Err(fault) = live.send(message)
            && let Some(key) = key
        {
            self.events.failed(key, fault);
        }
    }
}

fn is_harmless(name: &str) -> bool {
    [method::LOGGING_SET_LEVEL, method::RESOURCES_SUBSCRIBE, method::RESOURCES_UNSUBSCRIBE].contains(&name)
}

fn empty(era: Era) -> &'static [u8] {
    match era {
        Era::Modern => br#"{"resultType":"complete"}"#,
        Era::Legacy => b"{}",
    }
}
