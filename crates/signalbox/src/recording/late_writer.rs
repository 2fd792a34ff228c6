//! A tape whose store is opened when there is something to write: a store that cannot be reached holds nothing up, and is
//! tried again.

use super::StorePlace;
use signalbox_engine::record::{Entry, StoreError, TapeInfo, TapeWriter};

/// Begins its tape at the first append that finds the store there.
pub struct LateWriter {
    place: StorePlace,
    tape: TapeInfo,
    open: Option<Box<dyn TapeWriter>>,
}

impl LateWriter {
    /// A tape with this head, in this place.
    pub fn new(place: StorePlace, tape: TapeInfo) -> Self {
        Self { place, tape, open: None }
    }
}

impl TapeWriter for LateWriter {
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError> {
        let writer = match &mut self.open {
            Some(writer) => writer,
            empty => {
                stand_back();
                empty.insert(self.place.open()?.begin(&self.tape)?)
            }
        };
        writer.append(entries, durable)
    }

    fn idle(&mut self) -> Result<bool, StoreError> {
        self.open.as_mut().map_or(Ok(false), |writer| writer.idle())
    }

    fn end(&mut self, at: u64) -> Result<(), StoreError> {
        self.open.as_mut().map_or(Ok(()), |writer| writer.end(at))
    }
}

/// Lets calls go first: the thread that writes has a queue to lean on, and clients wait. Where the system does not let it,
/// nothing is lost but that. Only Linux tells threads apart here.
fn stand_back() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(10);
}
