//! A store in memory that fails when it is told to.

use super::super::{Anchor, Recorder, RecorderSettings};
use crate::Redactor;
use bytes::Bytes;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, StoreError, TapeWriter};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

#[derive(Clone, Default)]
pub(super) struct Memory {
    state: Arc<Mutex<State>>,
    gate: Arc<Mutex<()>>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    durable: usize,
    failing: Option<StoreError>,
    refused: Option<Arc<str>>,
    panics: bool,
    almost_full: bool,
    idled: usize,
    ended: Option<u64>,
    closing: Option<Vec<u8>>,
}

impl Memory {
    pub(super) fn record(&self, settings: RecorderSettings, redactor: Redactor) -> Recorder {
        Recorder::start(settings, redactor, Box::new(self.clone()), Anchor::now()).unwrap()
    }

    pub(super) fn all_entries(&self) -> Vec<Entry> {
        self.lock().entries.clone()
    }

    /// All but those that tell of callers, which every call without a session brings, in places without a hole.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let all = self.all_entries();
        let is_caller = |entry: &Entry| matches!(entry.content, Content::Client(_));
        let place = |seq: u64| seq - all.iter().filter(|entry| entry.seq < seq && is_caller(entry)).count() as u64;
        let mut rest: Vec<Entry> = all.iter().filter(|entry| !is_caller(entry)).cloned().collect();
        for entry in &mut rest {
            entry.seq = place(entry.seq);
            if let Content::Message(MessageEntry { body: Body::Like { seq, .. }, .. }) = &mut entry.content {
                *seq = place(*seq);
            }
        }
        rest
    }

    pub(super) fn durable(&self) -> usize {
        self.lock().durable
    }

    pub(super) fn idled(&self) -> usize {
        self.lock().idled
    }

    pub(super) fn ended(&self) -> Option<u64> {
        self.lock().ended
    }

    /// What closes the seal.
    pub(super) fn closing(&self) -> Option<Vec<u8>> {
        self.lock().closing.clone()
    }

    pub(super) fn fail_with(&self, error: Option<StoreError>) {
        self.lock().failing = error;
    }

    /// Has room for one entry at a time, as a disk that is almost full.
    pub(super) fn fill(&self) {
        self.lock().almost_full = true;
    }

    /// Refuses entries about this tool.
    pub(super) fn refuse(&self, tool: &str) {
        self.lock().refused = Some(tool.into());
    }

    /// Panics when it is to write.
    pub(super) fn panic(&self) {
        self.lock().panics = true;
    }

    /// Nothing is written until what this gives is dropped.
    pub(super) fn gate(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl TapeWriter for Memory {
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError> {
        drop(self.gate.lock());
        let panics = self.lock().panics;
        assert!(!panics, "as told");
        let mut state = self.lock();
        if let Some(error) = &state.failing {
            return Err(error.clone());
        }
        if state.almost_full && entries.len() > 1 {
            return Err(StoreError::Full("the disk".into()));
        }
        let about = |entry: &Entry| match &entry.content {
            Content::Message(message) => message.subject.clone(),
            _ => None,
        };
        if state.refused.is_some() && entries.iter().any(|entry| about(entry) == state.refused) {
            return Err(StoreError::Other("cannot say this".into()));
        }
        state.entries.extend(entries.iter().map(stored));
        if durable {
            state.durable = state.entries.len();
        }
        Ok(())
    }

    fn idle(&mut self) -> Result<bool, StoreError> {
        self.lock().idled += 1;
        Ok(false)
    }

    fn end(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError> {
        let mut state = self.lock();
        if let Some(error) = &state.failing {
            return Err(error.clone());
        }
        (state.ended, state.closing) = (Some(at), closing.map(<[u8]>::to_vec));
        Ok(())
    }
}

/// A store has bytes of its own.
fn stored(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if let Content::Message(MessageEntry { body: Body::Whole(bytes) | Body::Like { middle: bytes, .. }, .. }) =
        &mut entry.content
    {
        *bytes = Bytes::copy_from_slice(bytes);
    }
    entry
}

/// Waits until it holds.
pub(super) fn eventually(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to hold");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// Runs a future on this thread.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
