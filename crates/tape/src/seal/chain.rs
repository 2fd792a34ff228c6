//! Chain of a tape that is being written.

use super::form;
use super::settings::SealSettings;
use super::signed_head::SignedHead;
use prost::Message as _;
use signalbox_engine::record::{Content, Entry, TapeInfo};
use signalbox_seal::canonical::EncodeError;
use signalbox_seal::{ChainHash, EntrySeal, HASH_BYTES, Head, HeadContent, HeadKind, SealDetails, sha256};
use signalbox_wire::timestamp;
use std::time::{Instant, SystemTime};

/// Domain separators of the hashes of entries, links and the start of a chain.
const ENTRY: u8 = 3;
const LINK: u8 = 4;
const START: u8 = 5;

/// Reason of the gap that pruning leaves in place of the removed entries.
pub(super) const PRUNED: &str = "pruned";

/// Returns the hash before the first entry of a tape.
pub(super) fn start(tape: &TapeInfo, commit: &[String]) -> Result<ChainHash, EncodeError> {
    let mut bytes = vec![START];
    bytes.extend_from_slice(&form::head(tape, commit)?);
    Ok(sha256(&bytes))
}

/// Returns the hash of the chain after this entry. `scratch` is reusable memory.
pub(super) fn link(
    before: &ChainHash,
    entry: &Entry,
    body: Option<&ChainHash>,
    scratch: &mut Vec<u8>,
) -> Result<ChainHash, EncodeError> {
    Ok(join(before, &digest(entry, body, scratch)?))
}

/// Returns the hash of an entry by itself.
pub(super) fn digest(entry: &Entry, body: Option<&ChainHash>, scratch: &mut Vec<u8>) -> Result<ChainHash, EncodeError> {
    scratch.clear();
    scratch.push(ENTRY);
    *scratch = form::entry(entry, body, std::mem::take(scratch))?;
    Ok(sha256(scratch))
}

/// Returns the hash of a chain after an entry of this digest.
#[must_use]
pub fn join(before: &ChainHash, digest: &ChainHash) -> ChainHash {
    let mut bytes = [LINK; 1 + 2 * HASH_BYTES];
    let (_, rest) = bytes.split_at_mut(1);
    let (first, second) = rest.split_at_mut(HASH_BYTES);
    first.copy_from_slice(before);
    second.copy_from_slice(digest);
    sha256(&bytes)
}

/// Commitment to the body of an entry that is not linked yet.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) body: ChainHash,
    /// Sequence number of the entry whose salts were used, if it is another one.
    pub(crate) salted_as: u64,
}

impl Draft {
    /// Encodes the draft, which an entry carries until it is linked.
    pub(crate) fn to_bytes(self) -> Box<[u8]> {
        [&self.body[..], &self.salted_as.to_be_bytes()].concat().into()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, rest) = bytes.split_first_chunk()?;
        Some(Self { body: *body, salted_as: u64::from_be_bytes(*rest.first_chunk()?) })
    }
}

/// Links entries into the chain, batch by batch. A batch can be linked again until it is [stored](Self::kept).
#[derive(Debug)]
pub(crate) struct Chain {
    settings: SealSettings,
    /// Hash after the last stored entry.
    before: ChainHash,
    last: u64,
    /// Number of lost facts, as the stored entries state it.
    missing: u64,
    /// Commitments of the current batch, one per entry.
    drafts: Vec<Option<Draft>>,
    unsigned: u64,
    signed: Instant,
    /// Signed heads that are not reported until their entries are stored.
    untold: Vec<(HeadKind, Head)>,
    scratch: Vec<u8>,
}

impl Chain {
    pub(crate) fn new(settings: SealSettings) -> Self {
        let before = settings.start;
        let untold = vec![(HeadKind::Opening, settings.opening.clone())];
        let (drafts, scratch) = (Vec::new(), Vec::new());
        Self { settings, before, last: 0, missing: 0, drafts, unsigned: 0, signed: Instant::now(), untold, scratch }
    }

    /// Links a new batch.
    pub(crate) fn link(&mut self, entries: &mut [Entry]) {
        self.drafts.clear();
        self.drafts.extend(entries.iter().map(|entry| entry.seal.as_deref().and_then(Draft::from_bytes)));
        self.link_from(entries, 0);
    }

    /// Links the batch again from an entry on whose body has changed or was dropped. Returns its former commitment.
    pub(crate) fn relink(&mut self, entries: &mut [Entry], from: usize, draft: Option<Draft>) -> Option<Draft> {
        let before = self.drafts.get_mut(from).and_then(|place| std::mem::replace(place, draft));
        self.link_from(entries, from);
        before
    }

    fn link_from(&mut self, entries: &mut [Entry], from: usize) {
        let last = from.checked_sub(1).and_then(|last| entries.get(last)).and_then(|entry| entry.seal.as_deref());
        let mut hash = last.and_then(EntrySeal::hash_of).unwrap_or(self.before);
        if let Some(first) = entries.get(from) {
            self.untold.retain(|(_, head)| head.seq < first.seq);
        }
        let count = entries.len();
        for (place, (entry, draft)) in entries.iter_mut().zip(&self.drafts).enumerate().skip(from) {
            let body = draft.as_ref().map(|draft| &draft.body);
            // Every entry has a canonical form in practice: it is plain data of bounded depth.
            let Ok(next) = link(&hash, entry, body, &mut self.scratch) else {
                entry.seal = None;
                continue;
            };
            hash = next;
            self.unsigned += 1;
            let salted_as = draft.map_or(0, |draft| draft.salted_as);
            let due = self.unsigned >= self.settings.interval.entries
                || place + 1 == count && self.signed.elapsed() >= self.settings.interval.time;
            if !due && salted_as == 0 {
                entry.seal = Some(Box::from(hash));
                continue;
            }
            let mut details = SealDetails { salted_as, ..SealDetails::default() };
            if due {
                let (settings, at) = (&self.settings, unix_nanos());
                let content = HeadContent::of(entry.seq, &hash, at);
                details.head = Head::sign(HeadKind::Interim, &settings.tape, content, &settings.key).ok();
                self.untold.extend(details.head.clone().map(|head| (HeadKind::Interim, head)));
                (self.unsigned, self.signed) = (0, Instant::now());
            }
            entry.seal = Some(EntrySeal { hash, details }.to_bytes());
        }
    }

    /// Marks the first entries of the batch as stored; the rest may follow.
    pub(crate) fn kept(&mut self, entries: &[Entry]) {
        self.drafts.drain(..entries.len().min(self.drafts.len()));
        self.missing = entries.iter().map(missing).fold(self.missing, u64::saturating_add);
        if let Some(last) = entries.last() {
            self.last = last.seq;
            self.before = last.seal.as_deref().and_then(EntrySeal::hash_of).unwrap_or(self.before);
        }
        if !self.untold.is_empty() {
            self.tell();
        }
    }

    /// Reports the heads whose entries are stored. A head of an entry that a crash could still remove would make the
    /// tape look forged.
    fn tell(&mut self) {
        let last = self.last;
        let Some(heads) = self.settings.heads.clone() else { return self.untold.clear() };
        for (kind, head) in self.untold.extract_if(.., |(_, head)| head.seq <= last) {
            heads.signed(SignedHead { tape: self.settings.tape.clone(), kind, head });
        }
    }

    /// Returns the head that closes the tape, in its stored form. It states how many facts were lost.
    pub(crate) fn closing(&self, ended: u64) -> Option<Vec<u8>> {
        let settings = &self.settings;
        let position = HeadContent::of(self.last, &self.before, unix_nanos());
        let content = HeadContent { ended: Some(ended), missing: self.missing, ..position };
        let head = Head::sign(HeadKind::Closing, &settings.tape, content, &settings.key).ok()?;
        Some(head.encode_to_vec())
    }

    /// Marks the tape as closed with this head, given in its stored form.
    pub(crate) fn closed(&mut self, closing: &[u8]) {
        self.untold.extend(Head::decode(closing).ok().map(|head| (HeadKind::Closing, head)));
        self.tell();
    }
}

/// Returns the number of facts that were lost in place of this entry. Pruned entries were recorded, so they do not
/// count.
pub(super) fn missing(entry: &Entry) -> u64 {
    match &entry.content {
        Content::Gap(gap) if gap.reason != PRUNED => gap.facts,
        _ => 0,
    }
}

fn unix_nanos() -> u64 {
    timestamp::nanos_of(SystemTime::now())
}
