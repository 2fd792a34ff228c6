//! Recomputes the commitments to the bodies of a tape.

use super::body::{BodySealer, commitment, leaf_hash, leaves};
use super::redaction::REMOVED;
use super::salts::{SALT_BYTES, Salt};
use signalbox_engine::record::{Body, Content, Entry};
use signalbox_seal::{ChainHash, SealDetails, TapeSeal};

/// Commitments of one tape.
#[derive(Debug)]
pub(super) struct Commitments {
    commit: Vec<Vec<String>>,
    sealer: Option<BodySealer>,
}

impl Commitments {
    /// Creates the commitments of a tape with this seal.
    pub(super) fn new(seal: &TapeSeal) -> Self {
        let commit: Vec<Vec<String>> =
            seal.commit.iter().map(|path| path.split('.').map(str::to_owned).collect()).collect();
        let sealer = seal.seed.as_deref().and_then(|seed| BodySealer::new(seed, &commit));
        Self { commit, sealer }
    }

    /// Returns the paths of the members whose leaves are committed separately.
    pub(super) fn paths(&self) -> &[Vec<String>] {
        &self.commit
    }

    /// Returns the details of an entry with all its salts, so that its commitment can be computed without the seed.
    pub(super) fn shown(&mut self, entry: &Entry, details: &SealDetails) -> Option<SealDetails> {
        let mut details = SealDetails { head: None, ..details.clone() };
        let Content::Message(message) = &entry.content else { return Some(details) };
        if let (Body::Whole(body), true) = (&message.body, details.salts.is_empty()) {
            let salted_as = if details.salted_as == 0 { entry.seq } else { details.salted_as };
            let sealer = self.sealer.as_mut()?;
            sealer.commit(body, salted_as)?;
            details.salts = sealer.last_salts().iter().map(|salt| salt.to_vec()).collect();
        }
        details.salted_as = 0;
        Some(details)
    }

    /// Computes the commitment to the body of an entry. Returns `Some(None)` if it has no body, `None` if the
    /// commitment cannot be computed.
    pub(super) fn of(
        &mut self,
        entry: &Entry,
        details: &SealDetails,
        scratch: &mut Vec<u8>,
    ) -> Option<Option<ChainHash>> {
        let Content::Message(message) = &entry.content else { return Some(None) };
        let body = match (&message.body, &details.body) {
            (Body::Left, Some(removed)) => return Some(Some(removed.as_slice().try_into().ok()?)),
            (Body::Left, None) => return Some(None),
            (Body::Whole(_), Some(_)) | (Body::Like { .. }, _) => return None,
            (Body::Whole(body), None) => body,
        };
        if details.salts.is_empty() {
            let salted_as = if details.salted_as == 0 { entry.seq } else { details.salted_as };
            return Some(Some(self.sealer.as_mut()?.commit(body, salted_as)?));
        }
        // A redacted copy discloses its salts, except those of removed values.
        let places = leaves(body, &self.commit);
        let (first, salts) = details.salts.split_first()?;
        if salts.len() != places.len() {
            return None;
        }
        let mut removed = details.removed.iter();
        let mut hashes = Vec::with_capacity(places.len());
        for (place, salt) in places.iter().zip(salts) {
            hashes.push(match salt.len() {
                // No other text is accepted here: a reader would take it for a recorded value.
                0 if body.get(place.clone())? == REMOVED => removed.next()?.as_slice().try_into().ok()?,
                0 => return None,
                _ => leaf_hash(&salt_of(salt)?, body.get(place.clone())?, scratch),
            });
        }
        removed.next().is_none().then(|| Some(commitment(body, &places, &salt_of(first)?, &hashes, scratch)))
    }
}

fn salt_of(bytes: &[u8]) -> Option<Salt> {
    <[u8; SALT_BYTES]>::try_from(bytes).ok()
}
