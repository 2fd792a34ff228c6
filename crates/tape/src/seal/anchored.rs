//! Signed heads of tapes that were kept outside the machine that recorded them.

use super::signed_head::{NoHead, SignedHead};
use signalbox_seal::{ChainHash, HeadKind, VerifyingKey};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

/// Longest line of a file of anchors.
const MAX_LINE: u64 = 64 << 10;
/// Most heads of one tape that are compared.
const MAX_ANCHORS: usize = 1_000_000;

/// The anchored places of one tape.
#[derive(Clone, Default, Debug)]
pub struct Anchors {
    places: BTreeMap<u64, ChainHash>,
    closed: bool,
    signers: Vec<VerifyingKey>,
}

/// Why a file of anchors cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoAnchors {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is no signed head.
    #[error("line {0}: {1}")]
    Line(u64, NoHead),
    /// A line is too long to be a signed head.
    #[error("line {0}: longer than any signed head")]
    TooLong(u64),
    /// The signature of a line does not fit.
    #[error("line {0}: the signature does not fit; somebody changed the anchors")]
    Signature(u64),
    /// Two lines say different things of one place.
    #[error(
        "line {line}: entry {entry} of the tape was anchored with another hash before; one key signed two tapes of the same id"
    )]
    Twice {
        /// Which line, from 1.
        line: u64,
        /// The entry that it is about.
        entry: u64,
    },
    /// There are too many.
    #[error("more than {MAX_ANCHORS} heads of one tape")]
    TooMany,
}

impl Anchors {
    /// Reads those of one tape from JSON lines; lines about other tapes are left out.
    ///
    /// # Errors
    /// If they cannot be read, or a line is no signed head.
    pub fn read(from: impl BufRead, tape: &str) -> Result<Self, NoAnchors> {
        let mut anchors = Self::default();
        anchors.read_more(from, tape)?;
        Ok(anchors)
    }

    /// Adds those of the same tape from another file.
    ///
    /// # Errors
    /// If they cannot be read, or a line is no signed head.
    pub fn read_more(&mut self, mut from: impl BufRead, tape: &str) -> Result<(), NoAnchors> {
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            if from.by_ref().take(MAX_LINE).read_until(b'\n', &mut text)? == 0 {
                break;
            }
            if text.len() as u64 == MAX_LINE {
                return Err(NoAnchors::TooLong(line));
            }
            if text.trim_ascii().is_empty() {
                continue;
            }
            let head = serde_json::from_slice(&text).map_err(NoHead::from).and_then(SignedHead::from_json);
            let head = head.map_err(|error| NoAnchors::Line(line, error))?;
            if head.tape == tape {
                self.add(&head, line)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, head: &SignedHead, line: u64) -> Result<(), NoAnchors> {
        let (key, hash) = head.signer().zip(head.hash()).ok_or(NoAnchors::Signature(line))?;
        if !self.signers.contains(&key) {
            self.signers.push(key);
        }
        let entry = head.head.seq;
        if self.places.insert(entry, hash).is_some_and(|before| before != hash) {
            return Err(NoAnchors::Twice { line, entry });
        }
        self.closed |= head.kind == HeadKind::Closing;
        if self.places.len() > MAX_ANCHORS { Err(NoAnchors::TooMany) } else { Ok(()) }
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The keys that signed them.
    #[must_use]
    pub fn signers(&self) -> &[VerifyingKey] {
        &self.signers
    }

    /// The hash that the chain had at this entry when it was anchored.
    pub(super) fn at(&self, entry: u64) -> Option<ChainHash> {
        self.places.get(&entry).copied()
    }

    /// The last anchored entry.
    pub(super) fn last(&self) -> u64 {
        self.places.last_key_value().map_or(0, |(last, _)| *last)
    }

    /// True if the end of the tape was anchored.
    pub(super) fn closed(&self) -> bool {
        self.closed
    }
}
