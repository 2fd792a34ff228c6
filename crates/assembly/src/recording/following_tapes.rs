//! Factory of the tapes after the first one of a process, in the same store.

use super::late_writer::LateStore;
use super::seal::{SealTapeError, TapeSealing};
use super::{random, tape_id};
use signalbox_engine::record::TapeInfo;
use signalbox_tape::recorder::{NextTape, NextTapeError, TapeFactory};
use std::error::Error;
use std::sync::Arc;
use tokio::sync::watch;

/// Factory of the tapes after the first one.
pub(super) struct FollowingTapes {
    /// Template for the heads of tapes.
    pub(super) head: TapeInfo,
    pub(super) store: LateStore,
    pub(super) sealing: Option<TapeSealing>,
    /// Publishes the head of the tape that is being written.
    pub(super) current: watch::Sender<Arc<TapeInfo>>,
}

impl FollowingTapes {
    fn make(&self, started: u64) -> Result<NextTape, SealTapeError> {
        let mut info = TapeInfo { id: tape_id()?, started, ..self.head.clone() };
        let seal = self.sealing.as_ref().map(|sealing| sealing.seal(&mut info)).transpose()?;
        let writer = Box::new(self.store.writer(info.clone()));
        Ok(NextTape { info, writer, seal, hash_key: random()? })
    }
}

impl TapeFactory for FollowingTapes {
    fn next_tape(&mut self, started: u64) -> Result<NextTape, NextTapeError> {
        Ok(self.make(started).map_err(Box::<dyn Error + Send + Sync>::from)?)
    }

    fn begun(&mut self, tape: TapeInfo) {
        self.current.send_replace(Arc::new(tape));
    }
}
