//! Removes values from a sealed tape so that the rest still verifies.

use super::body::BodySealer;
use super::pointer::of_places;
use signalbox_engine::record::{Body, Content, Entry, TapeInfo};
use signalbox_seal::{EntrySeal, TapeSeal};

/// Replacement of a removed value.
pub(super) const REMOVED: &[u8] = b"\"[redacted]\"";

/// Reason why a tape cannot be redacted with its proof.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoRedaction {
    /// The tape has no seal to preserve.
    #[error("the tape was never sealed, so that a copy would prove nothing")]
    NeverSealed,
    /// The tape is a redacted copy already.
    #[error("the tape is a redacted copy itself; redact the original")]
    NoSeed,
    /// An entry does not match its seal.
    #[error("entry {0} is not as it was sealed; see `signalbox tape verify`")]
    Broken(u64),
}

/// Makes a redacted copy of a sealed tape, entry by entry.
#[derive(Debug)]
pub struct SealedRedaction {
    bodies: BodySealer,
    /// Number of removed values, and of entries that they were removed from.
    removed: (u64, u64),
}

impl SealedRedaction {
    /// Starts with the head of the tape. Returns the head of the copy, which lacks the seed of all salts.
    ///
    /// # Errors
    /// Fails if the tape is not sealed, or is a redacted copy.
    pub fn new(tape: &TapeInfo) -> Result<(Self, TapeInfo), NoRedaction> {
        let seal = tape.seal.as_deref().and_then(TapeSeal::from_bytes).ok_or(NoRedaction::NeverSealed)?;
        let commit: Vec<Vec<String>> =
            seal.commit.iter().map(|path| path.split('.').map(str::to_owned).collect()).collect();
        let seed = seal.seed.as_deref().ok_or(NoRedaction::NoSeed)?;
        let bodies = BodySealer::new(seed, &commit).ok_or(NoRedaction::NoSeed)?;
        let copy = TapeInfo { seal: Some(TapeSeal { seed: None, ..seal }.to_bytes()), ..tape.clone() };
        Ok((Self { bodies, removed: (0, 0) }, copy))
    }

    /// Returns the entry of the copy. `removes` tells whether the value at a JSON pointer is removed; a message of
    /// which `wants_whole` selects something other than a leaf is removed completely.
    ///
    /// # Errors
    /// Fails if the entry is not sealed.
    pub fn entry(
        &mut self,
        mut entry: Entry,
        removes: &dyn Fn(&str) -> bool,
        wants_whole: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Entry, NoRedaction> {
        // A mark of pruning has no seal, and nothing to remove.
        let Some(stored) = entry.seal.as_deref() else { return Ok(entry) };
        let broken = NoRedaction::Broken(entry.seq);
        let mut seal = EntrySeal::from_bytes(stored).ok_or(broken)?;
        let Content::Message(message) = &mut entry.content else { return Ok(entry) };
        let Body::Whole(body) = &message.body else { return Ok(entry) };
        let salted_as = if seal.details.salted_as == 0 { entry.seq } else { seal.details.salted_as };
        let commitment = self.bodies.commit(body, salted_as).ok_or(broken)?;
        let leaves: Vec<_> = self.bodies.last_leaves().map(|(place, hash)| (place, *hash)).collect();
        let places: Vec<_> = leaves.iter().map(|(place, _)| place.clone()).collect();
        let gone: Vec<bool> = of_places(body, &places).iter().map(|path| removes(path)).collect();
        seal.details.salts = self.bodies.last_salts().iter().map(|salt| salt.to_vec()).collect();
        seal.details.removed.clear();
        let mut copy = Vec::with_capacity(body.len());
        let mut from = 0;
        for (((place, hash), gone), salt) in leaves.iter().zip(&gone).zip(seal.details.salts.iter_mut().skip(1)) {
            if *gone {
                copy.extend_from_slice(body.get(from..place.start).unwrap_or_default());
                copy.extend_from_slice(REMOVED);
                from = place.end;
                salt.clear();
                seal.details.removed.push(hash.to_vec());
            }
        }
        copy.extend_from_slice(body.get(from..).unwrap_or_default());
        let count = seal.details.removed.len() as u64;
        self.removed = (self.removed.0 + count, self.removed.1 + u64::from(count > 0));
        message.body = Body::Whole(copy.into());
        if let Body::Whole(body) = &message.body
            && wants_whole(body)
        {
            message.body = Body::Left;
            seal.details.salts.clear();
            seal.details.removed.clear();
            seal.details.body = Some(commitment.to_vec());
            self.removed = (self.removed.0 - count, self.removed.1 + u64::from(count == 0));
        }
        seal.details.salted_as = 0;
        entry.seal = Some(seal.to_bytes());
        Ok(entry)
    }

    /// Returns the number of separately removed values, and of entries that lost something.
    #[must_use]
    pub fn removed(&self) -> (u64, u64) {
        self.removed
    }
}
