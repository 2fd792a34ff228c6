//! Signs a checkpoint into the seal of a tape whose beginning is deleted, so that the rest still verifies.

use crate::clock::unix_nanos;
use crate::pack::DecodeError;
use crate::{content, extra};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind, StoreError};
use signalbox_seal::{SigningKey, TapeSeal};
use std::sync::Arc;

/// Last deleted entry, as stored.
pub struct CheckpointEntry<'a> {
    /// Position of the entry in its tape.
    pub seq: u64,
    /// Content code of the entry.
    pub what: u8,
    /// Bytes packed by [`extra`].
    pub extra: Option<&'a [u8]>,
}

impl CheckpointEntry<'_> {
    /// Returns its seal; `None` if it has none, for instance as the mark of an earlier deletion.
    fn seal(&self) -> Result<Option<Box<[u8]>>, DecodeError> {
        let Some(packed) = self.extra else { return Ok(None) };
        let content = match content::kind_of(self.what) {
            Some(_) => Content::Message(MessageEntry::new(Point::ClientIn, MessageKind::Raw, 0, Body::Left)),
            None => Content::SessionEnded,
        };
        let mut entry = Entry::new(self.seq, 0, Arc::default(), content);
        extra::unpack(packed, &mut entry)?;
        Ok(entry.seal)
    }

    /// Returns the seal of the tape with a checkpoint at this entry; `None` if the tape is not sealed there, or there
    /// is no key.
    pub fn checkpoint(
        &self,
        tape: &str,
        seal: Option<&[u8]>,
        key: Option<&SigningKey>,
    ) -> Result<Option<Box<[u8]>>, StoreError> {
        let own = self.seal().map_err(|torn| StoreError::Other(torn.to_string()))?;
        let (Some(seal), Some(own), Some(key)) = (seal, own, key) else { return Ok(None) };
        let pruned = TapeSeal::pruned(seal, tape, self.seq, &own, unix_nanos(), key);
        pruned.map(Some).map_err(|error| StoreError::Other(format!("the checkpoint cannot be signed: {error}")))
    }
}
