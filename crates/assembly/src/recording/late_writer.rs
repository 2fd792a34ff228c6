//! Tapes whose store is opened when there is something to write: a store that cannot be reached holds nothing up, and
//! is tried again.

use super::StorePlace;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::record::{Entry, StoreError, TapeInfo, TapeStore, TapeWriter};
use signalbox_seal::SigningKey;
use std::sync::{Arc, Mutex};

/// A store that is opened when it is needed. Copies share it, so that all tapes of a process are written to one.
#[derive(Clone)]
pub struct LateStore(Arc<Place>);

struct Place {
    place: StorePlace,
    /// The store is kept below so many bytes.
    most: u64,
    /// Signs checkpoints where that deletes the beginning of sealed tapes.
    key: Option<SigningKey>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    store: Option<Arc<dyn TapeStore>>,
    stands_back: bool,
}

impl LateStore {
    /// A store in this place, kept below `most` bytes. `key` signs checkpoints where that deletes the beginning of
    /// sealed tapes.
    #[must_use]
    pub fn new(place: StorePlace, most: u64, key: Option<SigningKey>) -> Self {
        Self(Arc::new(Place { place, most, key, state: Mutex::default() }))
    }

    /// Writes a tape with this head.
    #[must_use]
    pub fn writer(&self, tape: TapeInfo) -> LateWriter {
        LateWriter { store: self.clone(), tape, open: None }
    }

    /// The store, opened where it is not.
    fn open(&self) -> Result<Arc<dyn TapeStore>, StoreError> {
        let Place { place, most, key, state } = &*self.0;
        let mut state = state.lock().unpoisoned();
        let store = match state.store.take() {
            Some(store) => store,
            None => place.open_for(*most, key.clone())?,
        };
        Ok(Arc::clone(state.store.insert(store)))
    }

    /// Lets calls go first: the thread that writes has a queue to lean on, and clients wait. Where the system does not
    /// let it, nothing is lost but that. Only Linux tells threads apart here. One thread writes all tapes of a process.
    fn stand_back(&self) {
        if std::mem::replace(&mut self.0.state.lock().unpoisoned().stands_back, true) {
            return;
        }
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(10);
    }
}

/// Begins its tape at the first append that finds the store there.
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
            // Nothing is to be written yet, but it should be known early that nothing can be.
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
