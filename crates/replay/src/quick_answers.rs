//! Answers calls on the thread that sends them.
//!
//! A conversation is a task of its own: for each call, the worker that carries it would have to wake the task's thread and be
//! woken by it. A call whose answer is in memory and has nothing to wait for needs no conversation. It is looked up when it is
//! sent, which keeps equal calls in their order, and answered by a small task on the same worker, because whoever sends may not
//! be answered before it has sent.
//!
//! While the conversation is busy with an earlier message, or clients listen for announcements, calls go through it.

use crate::call_gatherer::era;
use crate::playing::{Playing, Questions};
use crate::recorded_call::RecordedCall;
use crate::tape_connector::Played;
use crate::tape_player::{Cursor, TapePlayer};
use serde_json::Value;
use signalbox_engine::back::ToBackend;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_runtime::LinkEvents;
use signalbox_wire::{Envelope, Kind, RawId};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;

/// What a conversation shares with the link that it answers on.
pub(crate) struct QuickAnswers {
    pub(crate) player: Arc<TapePlayer>,
    pub(crate) played: Arc<Played>,
    pub(crate) events: Arc<dyn LinkEvents>,
    pub(crate) cursor: Arc<Mutex<Cursor>>,
    pub(crate) questions: Arc<Questions>,
    /// Messages that the conversation has not dealt with yet.
    pub(crate) pending: AtomicUsize,
    /// True if every call goes through the conversation.
    pub(crate) off: AtomicBool,
}

impl QuickAnswers {
    /// For a conversation with this tape.
    pub(crate) fn new(player: Arc<TapePlayer>, played: Arc<Played>, events: Arc<dyn LinkEvents>, off: bool) -> Self {
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

    /// Answers a message if that can be done at once. False if the conversation has to look at it.
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

    fn find(&self, message: &ToBackend) -> Option<Playing> {
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

    /// A recorded call on its way to whoever asked for it under this id.
    pub(crate) fn playing(&self, call: Arc<RecordedCall>, id: RawId, request: &Value, key: Option<u64>) -> Playing {
        Playing {
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
