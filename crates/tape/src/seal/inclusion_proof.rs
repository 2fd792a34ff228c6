//! Proof that one entry is on a sealed tape, for a recipient who gets that entry and not the tape.
//!
//! The chain is linear: `h(n)` is a hash of `h(n-1)` and of the digest of entry `n`. The entry, the hash before it and
//! the digests of the entries up to the next signed head suffice to recompute the signed hash. The digests reveal
//! nothing of those entries.

use super::chain;
use super::commitments::Commitments;
use super::pointer::pointers;
use super::signed_head::{NoHead, SignedHead};
use super::verify::TapeVerifier;
use crate::export::{ExportError, jsonl};
use crate::strict_json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use signalbox_engine::record::{Content, Entry, StoreError, TapeInfo};
use signalbox_seal::{ChainHash, EntrySeal, HASH_BYTES, HeadKind, SealDetails, TapeSeal, VerifyingKey, hex, unhex};

/// Value of the first member of a proof.
const FORMAT: &str = "signalbox-proof/1";
/// Maximum size of a proof: the largest message, as text, and the digests of the longest stretch between signatures.
pub const MAX_PROOF: u64 = 192 << 20;

/// The proof for one entry.
#[derive(Clone, PartialEq, Debug)]
pub struct InclusionProof {
    /// Head of the tape, with the fields that its opening signature covers.
    tape: TapeInfo,
    /// The proved entry, with all its salts.
    entry: Entry,
    before: ChainHash,
    /// Digests of the entries after it, up to the signed one.
    digests: Vec<ChainHash>,
    head: SignedHead,
}

/// Reason why there is no proof for an entry.
#[derive(Debug, thiserror::Error)]
pub enum NoProof {
    /// The tape has no seal.
    #[error("the tape was never sealed")]
    NeverSealed,
    /// The entry does not exist.
    #[error("the tape has no entry {0}")]
    NoEntry(u64),
    /// The entry was pruned.
    #[error("entry {0} was pruned")]
    Pruned(u64),
    /// The entry came after the last signature.
    #[error("no signature covers entry {0} yet; a tape is signed from time to time and when it ends")]
    NotSigned(u64),
    /// The seal of the tape is broken at the entry.
    #[error("entry {0} is not as it was sealed; see `signalbox tape verify`")]
    Broken(u64),
    /// The tape cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Error of reading a proof.
#[derive(Debug, thiserror::Error)]
pub enum BadProof {
    /// The file is not JSON, has a member twice, or one is missing, unknown or of another type.
    #[error("it is no proof: {0}")]
    Json(#[from] serde_json::Error),
    /// The proof has another format, or is of a later version of the program.
    #[error("`format` must be `{FORMAT}`")]
    Format,
    /// A member has an invalid value.
    #[error("`{0}` of a proof makes no sense")]
    Member(&'static str),
    /// A member says something that no hash of the proof covers.
    #[error("the proof is not valid: nothing that was signed covers `{0}`")]
    NotCovered(String),
    /// The tape or the entry cannot be read.
    #[error(transparent)]
    Line(#[from] ExportError),
    /// The signed head cannot be read.
    #[error(transparent)]
    Head(#[from] NoHead),
}

/// Reason why a readable proof is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProofFault {
    /// The head of the tape is invalid.
    #[error("{0}")]
    Tape(String),
    /// The entry has no seal that could be checked.
    #[error("the seal of the entry cannot be read, or its salts do not fit its message")]
    Entry,
    /// The hashes do not lead from the entry to the signed one.
    #[error("the entry is not one that was signed: its hashes do not lead to the signed hash")]
    Chain,
    /// The signature is invalid.
    #[error("the signature does not fit")]
    Signature,
}

/// Facts that a valid proof establishes.
#[derive(Clone, PartialEq, Debug)]
pub struct ProvedEntry {
    /// Keys that signed the position after the entry and the head of the tape, with the times of signing.
    pub signers: Vec<(VerifyingKey, u64)>,
    /// Number of the signed entry.
    pub signed_at: u64,
    /// JSON pointers of the values that were removed from the entry.
    pub removed: Vec<String>,
    /// True if the whole message was removed.
    pub removed_whole: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    tape: Value,
    entry: Value,
    before: String,
    /// Concatenated digests in base64.
    digests: String,
    head: Value,
}

impl InclusionProof {
    /// Returns the head of the tape that the entry is on.
    #[must_use]
    pub fn tape(&self) -> &TapeInfo {
        &self.tape
    }

    /// Returns the proved entry.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns the signed position that the hashes lead to.
    #[must_use]
    pub fn head(&self) -> &SignedHead {
        &self.head
    }

    /// Recomputes the hashes and checks the signatures. The caller decides whether the keys are trusted.
    ///
    /// # Errors
    /// Returns the first mismatch.
    pub fn verify(&self) -> Result<ProvedEntry, ProofFault> {
        let begun = TapeVerifier::new(&self.tape).finish();
        if let Some(fault) = begun.fault {
            return Err(ProofFault::Tape(fault.why));
        }
        let seal = self.tape.seal.as_deref().and_then(TapeSeal::from_bytes);
        let seal = seal.ok_or_else(|| ProofFault::Tape("the tape was never sealed".to_owned()))?;
        let EntrySeal { hash, details } =
            self.entry.seal.as_deref().and_then(EntrySeal::from_bytes).ok_or(ProofFault::Entry)?;
        let (mut commitments, mut scratch) = (Commitments::new(&seal), Vec::new());
        let body = commitments.of(&self.entry, &details, &mut scratch).ok_or(ProofFault::Entry)?;
        let own = chain::digest(&self.entry, body.as_ref(), &mut scratch).map_err(|_| ProofFault::Entry)?;
        let sealed = chain::join(&self.before, &own);
        if sealed != hash {
            return Err(ProofFault::Chain);
        }
        let reached = self.digests.iter().fold(sealed, |before, digest| chain::join(&before, digest));
        let place = &self.head;
        let is_late = matches!(place.kind, HeadKind::Interim | HeadKind::Closing);
        if place.tape != self.tape.id || place.hash() != Some(reached) || place.head.seq < self.entry.seq || !is_late {
            return Err(ProofFault::Chain);
        }
        let key = place.signer().ok_or(ProofFault::Signature)?;
        let mut signers: Vec<_> = begun.signers.into_iter().map(|signer| (signer.key, signer.at)).collect();
        signers.retain(|(known, _)| *known != key || known.id() != key.id());
        signers.push((key, place.head.at));
        let removed = pointers(&self.entry, &details, commitments.paths());
        Ok(ProvedEntry { signers, signed_at: place.head.seq, removed, removed_whole: details.body.is_some() })
    }

    /// Returns the proof as a JSON document, which ends with a line break.
    ///
    /// # Errors
    /// Fails only if the JSON encoder does, which no known entry causes.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let document = Document {
            format: FORMAT.to_owned(),
            tape: jsonl::head_value(&self.tape)?,
            entry: jsonl::value(&self.entry)?,
            before: hex(&self.before),
            digests: STANDARD.encode(self.digests.as_flattened()),
            head: self.head.to_json(),
        };
        Ok(format!("{}\n", serde_json::to_string_pretty(&document)?))
    }

    /// Reads a proof from a document. The hashes must cover every member, because a reader sees them all.
    ///
    /// # Errors
    /// Fails if the text is not a proof, or says more than is proved.
    pub fn from_json(text: &[u8]) -> Result<Self, BadProof> {
        strict_json::check(text)?;
        let document: Document = serde_json::from_slice(text)?;
        if document.format != FORMAT {
            return Err(BadProof::Format);
        }
        let before = unhex(&document.before).and_then(|before| before.try_into().ok());
        let digests = STANDARD.decode(&document.digests).map_err(|_| BadProof::Member("digests"))?;
        let (digests, []) = digests.as_chunks::<HASH_BYTES>() else { return Err(BadProof::Member("digests")) };
        let proof = Self {
            tape: jsonl::read_head(document.tape.clone())?,
            entry: jsonl::read_entry(document.entry.clone())?,
            before: before.ok_or(BadProof::Member("before"))?,
            digests: digests.to_vec(),
            head: SignedHead::from_json(document.head.clone())?,
        };
        match proof.not_covered(&document)? {
            Some(path) => Err(BadProof::NotCovered(path)),
            None => Ok(proof),
        }
    }
}

impl InclusionProof {
    /// Returns the path of the first member of the document that is no part of what the hashes cover.
    fn not_covered(&self, document: &Document) -> serde_json::Result<Option<String>> {
        let mut tape = jsonl::head_value(&TapeInfo { ended: None, ..self.tape.clone() })?;
        // Proofs of earlier versions of the format are read as well.
        tape["version"].clone_from(&document.tape["version"]);
        let parts = [
            ("tape", &document.tape, tape),
            ("entry", &document.entry, jsonl::value(&self.entry)?),
            ("head", &document.head, self.head.to_json()),
        ];
        let unread = |(name, given, read): &(&str, &Value, Value)| {
            strict_json::unread(given, read).map(|path| strict_json::below(name, &path))
        };
        let unread = parts.iter().find_map(unread);
        let by_seal = || match (self.is_tape_seal_covered(), self.is_entry_seal_covered()) {
            (false, _) => Some("tape.seal".to_owned()),
            (true, false) => Some("entry.seal".to_owned()),
            (true, true) => None,
        };
        Ok(unread.or_else(by_seal))
    }

    /// Returns false if the seal of the tape states more than its beginning.
    fn is_tape_seal_covered(&self) -> bool {
        let Some(bytes) = self.tape.seal.as_deref() else { return true };
        let Some(seal) = TapeSeal::from_bytes(bytes) else { return true };
        seal.seed.is_none() && seal.checkpoint.is_none() && seal.closing.is_none() && seal.to_bytes()[..] == *bytes
    }

    /// Returns false if the seal of the entry states more than its hash and the salts of its message.
    fn is_entry_seal_covered(&self) -> bool {
        let Some(bytes) = self.entry.seal.as_deref() else { return true };
        let Some(seal) = EntrySeal::from_bytes(bytes) else { return true };
        let salted = match &self.entry.content {
            Content::Message(_) => true,
            _ => seal.details == SealDetails::default(),
        };
        salted && seal.details.head.is_none() && seal.details.salted_as == 0 && seal.to_bytes()[..] == *bytes
    }
}

/// Builds a proof from the entries of a tape, which are pushed in order with their bodies restored.
pub(crate) struct ProofMaker {
    tape: TapeInfo,
    seal: TapeSeal,
    commitments: Commitments,
    wanted: u64,
    /// Hash after the last pushed entry.
    before: ChainHash,
    found: Option<(Entry, ChainHash)>,
    digests: Vec<ChainHash>,
    head: Option<SignedHead>,
    scratch: Vec<u8>,
}

impl ProofMaker {
    /// Starts the search for the entry of this number on the tape with this head.
    pub(crate) fn new(tape: &TapeInfo, wanted: u64) -> Result<Self, NoProof> {
        let seal = tape.seal.as_deref().and_then(TapeSeal::from_bytes).ok_or(NoProof::NeverSealed)?;
        let broken = NoProof::Broken(wanted);
        let before = match &seal.checkpoint {
            Some(checkpoint) if wanted <= checkpoint.seq => return Err(NoProof::Pruned(wanted)),
            Some(checkpoint) => checkpoint.hash.as_slice().try_into().map_err(|_| broken)?,
            None => chain::start(tape, &seal.commit).map_err(|_| broken)?,
        };
        let kept = TapeSeal { seed: None, checkpoint: None, closing: None, ..seal.clone() };
        Ok(Self {
            // The proof covers neither the end of the tape nor later entries, so it must not state them.
            tape: TapeInfo { ended: None, seal: Some(kept.to_bytes()), ..tape.clone() },
            commitments: Commitments::new(&seal),
            seal,
            wanted,
            before,
            found: None,
            digests: vec![],
            head: None,
            scratch: vec![],
        })
    }

    /// Processes the next entry. Returns false if no more are needed.
    pub(crate) fn push(&mut self, mut entry: Entry) -> Result<bool, NoProof> {
        // The mark that pruning leaves has no seal.
        let Some(stored) = entry.seal.as_deref() else { return Ok(true) };
        let broken = || NoProof::Broken(entry.seq);
        let EntrySeal { hash, details } = EntrySeal::from_bytes(stored).ok_or_else(broken)?;
        if entry.seq < self.wanted {
            self.before = hash;
            return Ok(true);
        }
        if entry.seq > self.wanted {
            if self.found.is_none() {
                return Err(NoProof::NoEntry(self.wanted));
            }
            let body = self.commitments.of(&entry, &details, &mut self.scratch).ok_or_else(broken)?;
            let digest = chain::digest(&entry, body.as_ref(), &mut self.scratch).map_err(|_| broken())?;
            self.digests.push(digest);
        } else {
            let shown = self.commitments.shown(&entry, &details).ok_or_else(broken)?;
            entry.seal = Some(EntrySeal { hash, details: shown }.to_bytes());
            self.found = Some((entry, self.before));
        }
        self.head = details.head.map(|head| SignedHead { tape: self.tape.id.clone(), kind: HeadKind::Interim, head });
        Ok(self.head.is_none())
    }

    /// Returns the proof, once all necessary entries were pushed. The proof is verified before it is returned.
    pub(crate) fn finish(self) -> Result<InclusionProof, NoProof> {
        let (entry, before) = self.found.ok_or(NoProof::NoEntry(self.wanted))?;
        let closing = |head| SignedHead { tape: self.tape.id.clone(), kind: HeadKind::Closing, head };
        let head = self.head.or_else(|| self.seal.closing.map(closing)).ok_or(NoProof::NotSigned(self.wanted))?;
        let proof = InclusionProof { tape: self.tape, entry, before, digests: self.digests, head };
        proof.verify().map_err(|_| NoProof::Broken(self.wanted))?;
        Ok(proof)
    }
}
