//! Recomputes the chain of a tape entry by entry, and reports the first mismatch.

use super::anchored::Anchors;
use super::chain;
use super::commitments::Commitments;
use super::derived::{ListedSessions, StoredTables, TapeExtent};
use super::pointer::pointers;
use super::report::{RedactedEntry, SealFault, SealFaultKind, SealReport, SealVerdict, Signer, UncoveredRows};
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, SessionInfo, TapeInfo, TapeTables};
use signalbox_seal::canonical::EncodeError;
use signalbox_seal::{CHAIN_VERSION, ChainHash, EntrySeal, Head, HeadKind, SealDetails, TapeSeal};

/// Number of entries after the first mismatch that are examined to diagnose it.
const LOOK_AHEAD: usize = 2_000;
/// Maximum number of bytes of messages in them: each is hashed again for every hypothesis.
const LOOK_AHEAD_BYTES: usize = 16 << 20;
/// Maximum number of missing entries that is considered if the following entries were renumbered.
const MAX_SHIFT: u64 = 8;
/// Maximum number of redacted entries that are listed.
const MAX_REDACTED: usize = 10_000;

/// Verifier of one tape. Its entries are [pushed](Self::push) in order, with their bodies restored.
#[derive(Debug)]
pub struct TapeVerifier {
    tape: TapeInfo,
    seal: TapeSeal,
    bodies: Commitments,
    hash: ChainHash,
    report: SealReport,
    /// First mismatching entry and its successors.
    suspects: Vec<Entry>,
    /// Bytes of the messages in `suspects`.
    suspected: usize,
    /// Number of missing facts, as entries state it.
    gaps: u64,
    anchors: Anchors,
    /// Tables of the store, if the tape is in one.
    tables: Option<StoredTables>,
    /// Sessions in the head, if the tape is a file.
    listed: Option<ListedSessions>,
    scratch: Vec<u8>,
}

fn body_len(entry: &Entry) -> usize {
    match &entry.content {
        Content::Message(MessageEntry { body: Body::Whole(bytes), .. }) => bytes.len(),
        _ => 0,
    }
}

/// Mismatch of the head of a tape.
#[derive(Debug, thiserror::Error)]
enum BadHead {
    #[error("the seal of the tape is damaged, or of a later version of the program")]
    Version,
    #[error(transparent)]
    Form(#[from] EncodeError),
    #[error("the signature of the head is missing")]
    NoSignature,
    #[error("the head of the tape is not the one that was sealed")]
    Changed,
    #[error("the signature of the head does not fit")]
    Signature,
    #[error("the signature of the checkpoint does not fit")]
    Checkpoint,
}

impl TapeVerifier {
    /// Starts with the head of a tape.
    #[must_use]
    pub fn new(tape: &TapeInfo) -> Self {
        Self::against(tape, Anchors::default())
    }

    /// Starts with the head of a tape, and compares the tape with signed heads stored elsewhere.
    #[must_use]
    pub fn against(tape: &TapeInfo, anchors: Anchors) -> Self {
        let seal = tape.seal.as_deref().and_then(TapeSeal::from_bytes).unwrap_or_default();
        let report = SealReport {
            verdict: SealVerdict::NeverSealed,
            entries: 0,
            last: 0,
            signed_up_to: 0,
            pruned_up_to: 0,
            anchored_up_to: None,
            missing: 0,
            signers: vec![],
            redacted: vec![],
            uncovered: UncoveredRows::default(),
            fault: None,
        };
        let mut verifier = Self {
            tape: tape.clone(),
            bodies: Commitments::new(&seal),
            seal,
            hash: ChainHash::default(),
            report,
            suspects: vec![],
            suspected: 0,
            gaps: 0,
            anchors,
            tables: None,
            listed: None,
            scratch: vec![],
        };
        if let Err(why) = verifier.begin() {
            verifier.fail(None, SealFaultKind::Head, why.to_string());
        }
        verifier
    }

    /// Sets the tables of the store, which are compared with the entries. They must have been read before the entries.
    #[must_use]
    pub fn with_tables(self, tables: TapeTables) -> Self {
        Self { tables: Some(StoredTables::new(tables)), ..self }
    }

    /// Sets the sessions that the head of a file lists, which are compared with the entries.
    #[must_use]
    pub fn with_sessions(self, listed: Vec<(u64, SessionInfo)>) -> Self {
        Self { listed: Some(ListedSessions::new(listed)), ..self }
    }

    fn begin(&mut self) -> Result<(), BadHead> {
        if self.tape.seal.is_none() {
            return Ok(());
        }
        if self.seal.version != CHAIN_VERSION {
            return Err(BadHead::Version);
        }
        self.report.verdict = SealVerdict::NeverClosed;
        self.hash = chain::start(&self.tape, &self.seal.commit)?;
        let opening = self.seal.opening.clone().ok_or(BadHead::NoSignature)?;
        if opening.seq != 0 || opening.hash != self.hash {
            return Err(BadHead::Changed);
        }
        self.signed(HeadKind::Opening, &opening).ok_or(BadHead::Signature)?;
        if !self.agrees(0) {
            return Ok(());
        }
        if let Some(checkpoint) = self.seal.checkpoint.clone() {
            self.hash = checkpoint.hash.as_slice().try_into().map_err(|_| BadHead::Checkpoint)?;
            self.signed(HeadKind::Checkpoint, &checkpoint).ok_or(BadHead::Checkpoint)?;
            self.report.pruned_up_to = checkpoint.seq;
            self.report.last = checkpoint.seq;
            self.agrees(checkpoint.seq);
        }
        Ok(())
    }

    /// Checks the next entry. Returns false if no more are needed.
    pub fn push(&mut self, entry: Entry) -> bool {
        if self.report.fault.is_some() {
            return false;
        }
        self.note_gap(&entry);
        if self.report.verdict == SealVerdict::NeverSealed {
            if entry.seal.as_deref().and_then(EntrySeal::hash_of).is_some() {
                self.fail(None, SealFaultKind::Head, "the entries are sealed, but the seal of the tape is missing");
            }
            return self.report.fault.is_none();
        }
        if !self.suspects.is_empty() {
            self.suspected += body_len(&entry);
            self.suspects.push(entry);
            return self.suspects.len() < LOOK_AHEAD && self.suspected < LOOK_AHEAD_BYTES;
        }
        if entry.seq <= self.report.pruned_up_to {
            return self.mark(&entry);
        }
        if let Some(closing) = self.seal.closing.as_ref().filter(|closing| entry.seq > closing.seq) {
            let why = format!("the tape was closed after entry {}", closing.seq);
            self.fail(Some(entry.seq), SealFaultKind::Added, why);
            return false;
        }
        match self.link(&entry) {
            Some((hash, seal)) if hash == seal.hash => self.take(&entry, hash, &seal.details),
            _ => {
                self.suspects.push(entry);
                true
            }
        }
    }

    /// Returns the result, once all entries were pushed.
    #[must_use]
    pub fn finish(mut self) -> SealReport {
        if !self.suspects.is_empty() && self.report.fault.is_none() {
            let fault = self.diagnose();
            self.report.fault = Some(fault);
        }
        if self.report.fault.is_none() && self.report.verdict == SealVerdict::NeverClosed {
            self.close();
        }
        if self.report.fault.is_none() {
            self.miss_anchored();
        }
        if self.report.fault.is_none() && self.report.verdict != SealVerdict::NeverSealed {
            self.compare_derived();
        }
        if self.report.fault.is_some() {
            self.report.verdict = SealVerdict::Broken;
        }
        self.report
    }

    /// Counts facts that could not be recorded. Pruned entries were recorded, so they do not count.
    fn note_gap(&mut self, entry: &Entry) {
        self.gaps = self.gaps.saturating_add(chain::missing(entry));
        self.report.missing = self.report.missing.max(self.gaps);
    }

    /// Reports that the tape cannot be read from here on, or that the layout of its file was changed.
    pub fn unreadable(&mut self, why: impl Into<String>) {
        if self.report.fault.is_none() && self.suspects.is_empty() && self.report.verdict != SealVerdict::NeverSealed {
            let entry = self.report.last + 1;
            self.fail(Some(entry), SealFaultKind::Unreadable, why);
        }
    }

    fn fail(&mut self, entry: Option<u64>, kind: SealFaultKind, why: impl Into<String>) {
        self.report.fault = Some(SealFault { entry, kind, why: why.into() });
    }

    /// Checks the mark that pruning leaves in place of the last removed entry. It is not part of the chain.
    fn mark(&mut self, entry: &Entry) -> bool {
        let is_mark = matches!(&entry.content, Content::Gap(gap) if gap.reason == chain::PRUNED);
        if entry.seq != self.report.pruned_up_to || !is_mark || entry.seal.is_some() {
            let why = format!("everything up to entry {} was pruned", self.report.pruned_up_to);
            self.fail(Some(entry.seq), SealFaultKind::Added, why);
        }
        self.derive(entry);
        self.report.fault.is_none()
    }

    /// Adds an entry to what readers are to be shown besides entries.
    fn derive(&mut self, entry: &Entry) {
        if let Some(tables) = &mut self.tables {
            tables.add(entry);
        }
        if let Some(listed) = &mut self.listed {
            listed.add(entry);
        }
    }

    /// Compares what readers are shown besides the entries with what the entries give.
    fn compare_derived(&mut self) {
        let extent = TapeExtent { pruned: self.report.pruned_up_to, ended: self.tape.ended.is_some() };
        let mut uncovered = UncoveredRows::default();
        let tables = self.tables.as_ref().and_then(|tables| tables.compare(extent, &mut uncovered));
        let listed = || self.listed.as_ref().and_then(|listed| listed.compare(extent, &mut uncovered));
        let difference = tables.or_else(listed);
        self.report.uncovered = uncovered;
        if let Some(why) = difference {
            self.fail(None, SealFaultKind::Wrong, why);
        }
    }

    /// Returns true if the chain matches the anchor at this position, if there is one.
    fn agrees(&mut self, seq: u64) -> bool {
        let Some(anchored) = self.anchors.at(seq) else { return true };
        if anchored == self.hash {
            self.report.anchored_up_to = Some(seq);
            return true;
        }
        let why = "the chain had another hash here when it was anchored: the tape was made anew since";
        self.fail(Some(seq), SealFaultKind::Anchor, why);
        false
    }

    fn take(&mut self, entry: &Entry, hash: ChainHash, details: &SealDetails) -> bool {
        self.hash = hash;
        if !self.agrees(entry.seq) {
            return false;
        }
        if let Some(head) = &details.head {
            let fits = head.seq == entry.seq && head.hash == hash;
            if !fits || self.signed(HeadKind::Interim, head).is_none() {
                self.fail(Some(entry.seq), SealFaultKind::Signature, "the signature at this entry does not fit");
                return false;
            }
            self.report.signed_up_to = entry.seq;
        }
        if (details.body.is_some() || !details.removed.is_empty()) && self.report.redacted.len() < MAX_REDACTED {
            let paths = pointers(entry, details, self.bodies.paths());
            self.report.redacted.push(RedactedEntry { entry: entry.seq, paths });
        }
        self.derive(entry);
        self.report.entries += 1;
        self.report.last = entry.seq;
        true
    }

    /// Checks a signature, and records its signer.
    fn signed(&mut self, kind: HeadKind, head: &Head) -> Option<()> {
        let key = head.signer(kind, &self.tape.id)?;
        match self.report.signers.iter_mut().find(|signer| signer.key == key && signer.key.id() == key.id()) {
            Some(known) => known.at = known.at.max(head.at),
            None => self.report.signers.push(Signer { key, at: head.at }),
        }
        Some(())
    }

    fn close(&mut self) {
        let Some(closing) = self.seal.closing.clone() else {
            if self.tape.ended.is_some() {
                let why = "the tape says that it ended, but the signature that closes it is missing";
                self.fail(None, SealFaultKind::Head, why);
            }
            return;
        };
        if closing.seq > self.report.last {
            let (first, last) = (self.report.last + 1, closing.seq);
            let why = format!("the tape was closed after entry {last}: entries {first} to {last} are missing");
            return self.fail(Some(first), SealFaultKind::Missing, why);
        }
        if closing.hash != self.hash || closing.ended != self.tape.ended {
            let why = "the signature that closes the tape is of another content, or of another end";
            return self.fail(None, SealFaultKind::Signature, why);
        }
        if self.signed(HeadKind::Closing, &closing).is_none() {
            return self.fail(None, SealFaultKind::Signature, "the signature that closes the tape does not fit");
        }
        self.report.signed_up_to = closing.seq;
        self.report.missing = self.report.missing.max(closing.missing);
        self.report.verdict = if self.report.missing == 0 { SealVerdict::Valid } else { SealVerdict::ClosedWithGaps };
    }

    /// Reports an anchor beyond the end of the tape: the end, or the whole seal, was removed.
    fn miss_anchored(&mut self) {
        if self.report.verdict == SealVerdict::NeverSealed {
            if !self.anchors.is_empty() {
                self.fail(None, SealFaultKind::Anchor, "the tape was sealed when it was anchored, and is not any more");
            }
            return;
        }
        let (first, last) = (self.report.last + 1, self.anchors.last());
        if last >= first {
            let why =
                format!("the tape went on to entry {last} when it was anchored: entries {first} to {last} are missing");
            return self.fail(Some(first), SealFaultKind::Missing, why);
        }
        if self.anchors.closed() && self.report.verdict == SealVerdict::NeverClosed {
            let why = "the tape was closed when it was anchored, and the signature that closes it is missing";
            self.fail(None, SealFaultKind::Head, why);
        }
    }

    /// Returns the hash of the chain after this entry if it comes next, and the seal that the entry has.
    fn link(&mut self, entry: &Entry) -> Option<(ChainHash, EntrySeal)> {
        let before = self.hash;
        self.link_after(&before, entry)
    }

    fn link_after(&mut self, before: &ChainHash, entry: &Entry) -> Option<(ChainHash, EntrySeal)> {
        let seal = EntrySeal::from_bytes(entry.seal.as_deref()?)?;
        let body = self.bodies.of(entry, &seal.details, &mut self.scratch)?;
        let hash = chain::link(before, entry, body.as_ref(), &mut self.scratch).ok()?;
        Some((hash, seal))
    }

    /// Returns the hash of the chain if this entry fits under another number, after this hash.
    fn fits(&mut self, before: &ChainHash, entry: &Entry, seq: u64) -> Option<ChainHash> {
        let moved = Entry { seq, ..entry.clone() };
        self.link_after(before, &moved).filter(|(hash, seal)| *hash == seal.hash).map(|(hash, _)| hash)
    }

    /// Diagnoses the break of the chain.
    fn diagnose(&mut self) -> SealFault {
        let suspects = std::mem::take(&mut self.suspects);
        let (place, before) = (self.report.last + 1, self.hash);
        let found = |entry, kind, why: String| SealFault { entry: Some(entry), kind, why };
        let Some(first) = suspects.first() else {
            return found(place, SealFaultKind::Wrong, "this entry is not as it was recorded".to_owned());
        };
        // Finds the suspect that belongs at this position.
        let belongs = suspects.iter().enumerate().skip(1).find_map(|(index, entry)| {
            let hash = self.fits(&before, entry, place)?;
            Some((index, entry, hash))
        });
        if let Some((index, entry, hash)) = belongs {
            let is_next = index == 1 && self.fits(&hash, first, place + 1).is_none();
            if is_next {
                let why = "this entry was added after the tape was sealed; the one after it belongs in its place";
                return found(first.seq, SealFaultKind::Added, why.to_owned());
            }
            let why = format!("the entry that belongs here is in the place of entry {}", entry.seq);
            return found(place, SealFaultKind::Reordered, why);
        }
        if first.seq > place {
            let (from, to) = (place, first.seq - 1);
            let why =
                if from == to { "it is missing".to_owned() } else { format!("entries {from} to {to} are missing") };
            return found(place, SealFaultKind::Missing, why);
        }
        if first.seq < place {
            let why = format!("it stands after entry {}", place - 1);
            return found(first.seq, SealFaultKind::Reordered, why);
        }
        if first.seal.is_none() {
            let why = "it has no seal: it was added, or its seal was removed".to_owned();
            return found(first.seq, SealFaultKind::Added, why);
        }
        if let (Some(hash), Some(next)) = (first.seal.as_deref().and_then(EntrySeal::hash_of), suspects.get(1)) {
            let shift = (1..=MAX_SHIFT).find(|shift| self.fits(&hash, next, next.seq + shift).is_some());
            if let Some(shift) = shift {
                let why = format!("{shift} entries are missing here, and those after them were numbered again");
                return found(place, SealFaultKind::Missing, why);
            }
        }
        found(first.seq, SealFaultKind::Wrong, "this entry is not as it was recorded".to_owned())
    }
}
