//! Answers calls on the thread that sends them.
//!
//! A conversation runs in its own task, so each call costs the worker two wake-ups across threads. A call whose answer
//! is in memory and needs no wait does without the conversation. It is looked up on send, which keeps equal calls in
//! order. A small task on the same worker delivers the answer, because a sender must not be answered before its send
//! returns.
//!
//! Calls go through the conversation while it is busy with an earlier message, or while clients listen for
//! announcements.

use crate::call_gatherer::era;
use crate::playback::{Playback, Questions};
use crate::recorded_call::RecordedCall;
use crate::tape_connector::PlaybackStats;
use crate::tape_player::{TapeCursor, TapePlayer};
use serde_json::Value;
use signalbox_engine::back::ToBackend;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_runtime::LinkEvents;
use signalbox_wire::{Envelope, Kind, RawId};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;

/// State shared between a conversation and its link.
pub(crate) struct QuickAnswers {
    pub(crate) player: Arc<TapePlayer>,
    pub(crate) played: Arc<PlaybackStats>,
    pub(crate) events: Arc<dyn LinkEvents>,
    pub(crate) cursor: Arc<Mutex<TapeCursor>>,
    pub(crate) questions: Arc<Questions>,
    /// Number of messages queued for the conversation.
    pub(crate) pending: AtomicUsize,
    /// Set if every call must go through the conversation.
    pub(crate) off: AtomicBool,
}

impl QuickAnswers {
    /// Creates the shared state for a conversation with this tape.
    pub(crate) fn new(
        player: Arc<TapePlayer>,
        played: Arc<PlaybackStats>,
        events: Arc<dyn LinkEvents>,
        off: bool,
    ) -> Self {
        Self {
            player,
            played,
            events,
            cursor: Arc::default(),
            questions: Arc::default(),
            pending: AtomicUsize::new(0),
            off: AtomicBool::new(off),
        }
    }

    /// Answers a message if that needs no wait. Returns `false` if the conversation must process it.
    pub(crate) fn answer(&self, message: &ToBackend) -> bool {
        if self.off.load(Ordering::Acquire) || self.pending.load(Ordering::Acquire) > 0 {
            return false;
        }
        let Ok(worker) = Handle::try_current() else { return false };
        let Some(playing) = self.find(message) else { return false };
        self.played.calls.fetch_add(1, Ordering::Relaxed);
        worker.spawn(async move { playing.at_once() });
        true
    }

    fn find(&self, message: &ToBackend) -> Option<Playback> {
        let envelope =
            Envelope::parse(message.bytes().clone()).ok().filter(|envelope| envelope.kind() == Kind::Request)?;
        let id = envelope.id()?;
        let request: Value = serde_json::from_slice(envelope.bytes()).ok()?;
        let key = self.player.key_of(&request)?;
        let is_plain = |call: &RecordedCall| call.steps.is_empty();
        let plays_at_once = self.player.settings().speed.is_none();
        let mut cursor = self.cursor.lock().unpoisoned();
        let call = self.player.find_known(&mut cursor, key, |call| plays_at_once && is_plain(call))?;
        drop(cursor);
        Some(self.playing(call, id, &request, message.key()))
    }

    /// Prepares the playback of a recorded call as the answer to the request `id`.
    pub(crate) fn playing(&self, call: Arc<RecordedCall>, id: RawId, request: &Value, key: Option<u64>) -> Playback {
        Playback {
            call,
            id,
            era: era(request),
            token: request.pointer("/params/_meta/progressToken").cloned(),
            speed: self.player.settings().speed,
            events: Arc::clone(&self.events),
            questions: Arc::clone(&self.questions),
            key,
        }
    }
}
