//! Opens the store at the first write, so that an unreachable store delays nothing and is retried.

use super::StorePlace;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::record::{Entry, StoreError, TapeInfo, TapeStore, TapeWriter};
use signalbox_seal::SigningKey;
use std::sync::{Arc, Mutex};

/// Store that is opened at the first use. Copies share it, so that all tapes of a process go to one store.
#[derive(Clone)]
pub struct LateStore(Arc<Place>);

struct Place {
    place: StorePlace,
    /// Maximum size of the store in bytes.
    most: u64,
    /// Key for checkpoints, which replace the deleted beginning of sealed tapes.
    key: Option<SigningKey>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    store: Option<Arc<dyn TapeStore>>,
    stands_back: bool,
}

impl LateStore {
    /// Returns a store at this place with at most `most` bytes. `key` signs a checkpoint when the beginning of a sealed
    /// tape is deleted.
    #[must_use]
    pub fn new(place: StorePlace, most: u64, key: Option<SigningKey>) -> Self {
        Self(Arc::new(Place { place, most, key, state: Mutex::default() }))
    }

    /// Returns a writer for a tape with this head.
    #[must_use]
    pub fn writer(&self, tape: TapeInfo) -> LateWriter {
        LateWriter { store: self.clone(), tape, open: None }
    }

    /// Returns the store, opening it if necessary.
    fn open(&self) -> Result<Arc<dyn TapeStore>, StoreError> {
        let Place { place, most, key, state } = &*self.0;
        let mut state = state.lock().unpoisoned();
        let store = match state.store.take() {
            Some(store) => store,
            None => place.open_for(*most, key.clone())?,
        };
        Ok(Arc::clone(state.store.insert(store)))
    }

    /// Lowers the priority of the writing thread, because clients wait for calls but the tape has a queue. A failure
    /// has no other effect. Only Linux sets the priority per thread. One thread writes all tapes of a process.
    fn stand_back(&self) {
        if std::mem::replace(&mut self.0.state.lock().unpoisoned().stands_back, true) {
            return;
        }
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(10);
    }
}

/// Writer that begins its tape at the first append that can open the store.
pub struct LateWriter {
    store: LateStore,
    tape: TapeInfo,
    open: Option<Box<dyn TapeWriter>>,
}

impl TapeWriter for LateWriter {
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError> {
        if self.open.is_none() {
            self.store.stand_back();
            self.open = Some(self.store.open()?.begin(&self.tape)?);
        }
        self.open.as_mut().map_or(Ok(()), |writer| writer.append(entries, durable))
    }

    fn idle(&mut self) -> Result<bool, StoreError> {
        match &mut self.open {
            Some(writer) => writer.idle(),
            // Nothing is pending yet, but report early if the store cannot be opened.
            None => self.store.open().map(|_| false),
        }
    }

    fn unindexed(&self) -> u64 {
        self.open.as_ref().map_or(0, |writer| writer.unindexed())
    }

    fn end(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError> {
        self.open.as_mut().map_or(Ok(()), |writer| writer.end(at, closing))
    }

    fn end_before_next(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError> {
        self.open.as_mut().map_or(Ok(()), |writer| writer.end_before_next(at, closing))
    }
}
