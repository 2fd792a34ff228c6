//! Removes values from a sealed tape so that what stays still proves itself.

use super::body::BodySealer;
use super::pointer::of_places;
use signalbox_engine::record::{Body, Content, Entry, TapeInfo};
use signalbox_seal::{EntrySeal, TapeSeal};

/// What stands in the place of a value that was removed.
pub(super) const REMOVED: &[u8] = b"\"[redacted]\"";

/// Why a tape cannot be redacted with its proof.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoRedaction {
    /// It has no proof to keep.
    #[error("the tape was never sealed, so that a copy would prove nothing")]
    NeverSealed,
    /// Somebody redacted it before.
    #[error("the tape is a redacted copy itself; redact the original")]
    NoSeed,
    /// An entry is not as it was sealed.
    #[error("entry {0} is not as it was sealed; see `signalbox tape verify`")]
    Broken(u64),
}

/// Makes a redacted copy of a sealed tape, entry by entry.
#[derive(Debug)]
pub struct SealedRedaction {
    bodies: BodySealer,
    /// How many values were removed, and of how many entries.
    removed: (u64, u64),
}

impl SealedRedaction {
    /// Begins with the head of the tape; the copy has the other one, without the secret that all salts come from.
    ///
    /// # Errors
    /// If the tape is not sealed, or is such a copy.
    pub fn new(tape: &TapeInfo) -> Result<(Self, TapeInfo), NoRedaction> {
        let seal = tape.seal.as_deref().and_then(TapeSeal::from_bytes).ok_or(NoRedaction::NeverSealed)?;
        let commit: Vec<Vec<String>> =
            seal.commit.iter().map(|path| path.split('.').map(str::to_owned).collect()).collect();
        let seed = seal.seed.as_deref().ok_or(NoRedaction::NoSeed)?;
        let bodies = BodySealer::new(seed, &commit).ok_or(NoRedaction::NoSeed)?;
        let copy = TapeInfo { seal: Some(TapeSeal { seed: None, ..seal }.to_bytes()), ..tape.clone() };
        Ok((Self { bodies, removed: (0, 0) }, copy))
    }

    /// The entry of the copy. `removes` says of a JSON pointer whether its value goes; a message in which it wants something that
    /// is no value of its own (`wants_whole`) goes as a whole.
    ///
    /// # Errors
    /// If the entry is not sealed.
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

    /// How many values were removed by themselves, and of how many entries something was.
    #[must_use]
    pub fn removed(&self) -> (u64, u64) {
        self.removed
    }
}
