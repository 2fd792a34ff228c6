//! A tape whose store is opened when there is something to write: a store that cannot be reached holds nothing up, and is
//! tried again.

use super::StorePlace;
use signalbox_engine::record::{Entry, StoreError, TapeInfo, TapeStore, TapeWriter};
use signalbox_seal::SigningKey;
use std::sync::Arc;

/// Begins its tape at the first append that finds the store there.
pub struct LateWriter {
    place: StorePlace,
    /// The store is kept below so many bytes.
    most: u64,
    /// Signs checkpoints where that deletes the beginning of sealed tapes.
    key: Option<SigningKey>,
    tape: TapeInfo,
    store: Option<Arc<dyn TapeStore>>,
    open: Option<Box<dyn TapeWriter>>,
}

impl LateWriter {
    /// A tape with this head, in this place.
    pub fn new(place: StorePlace, (most, key): (u64, Option<SigningKey>), tape: TapeInfo) -> Self {
        Self { place, most, key, tape, store: None, open: None }
    }

    /// The store, opened where it is not.
    fn store(&mut self) -> Result<Arc<dyn TapeStore>, StoreError> {
        let store = match self.store.take() {
            Some(store) => store,
            None => self.place.open_for(self.most, self.key.clone())?,
        };
        Ok(Arc::clone(self.store.insert(store)))
    }
}

impl TapeWriter for LateWriter {
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError> {
        if self.open.is_none() {
            stand_back();
            self.open = Some(self.store()?.begin(&self.tape)?);
        }
        self.open.as_mut().map_or(Ok(()), |writer| writer.append(entries, durable))
    }

    fn idle(&mut self) -> Result<bool, StoreError> {
        match &mut self.open {
            Some(writer) => writer.idle(),
            // Nothing is to be written yet, but it should be known early that nothing can be.
            None => self.store().map(|_| false),
        }
    }

    fn unindexed(&self) -> u64 {
        self.open.as_ref().map_or(0, |writer| writer.unindexed())
    }

    fn end(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError> {
        self.open.as_mut().map_or(Ok(()), |writer| writer.end(at, closing))
    }
}

/// Lets calls go first: the thread that writes has a queue to lean on, and clients wait. Where the system does not let it,
/// nothing is lost but that. Only Linux tells threads apart here.
fn stand_back() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(10);
}
