//! Signed heads of tapes that were stored outside the recording machine.

use super::signed_head::{NoHead, SignedHead};
use crate::strict_json;
use signalbox_seal::{ChainHash, HeadKind, VerifyingKey};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

/// Maximum length of a line in a file of anchors.
const MAX_LINE: u64 = 64 << 10;
/// Maximum number of heads of one tape that are compared.
const MAX_ANCHORS: usize = 1_000_000;
/// Maximum number of foreign keys that are listed.
const MAX_STRANGERS: usize = 8;

/// Anchored positions of one tape. A tape belongs to the key of its first head. Heads of other keys are ignored,
/// because another recorder or an attacker cannot vouch for its content.
#[derive(Clone, Default, Debug)]
pub struct Anchors {
    places: BTreeMap<u64, ChainHash>,
    closed: bool,
    /// Key of the first head.
    owner: Option<VerifyingKey>,
    /// Number of heads of other keys.
    left_out: u64,
    /// Keys of ignored heads, up to a maximum.
    strangers: Vec<VerifyingKey>,
}

/// Error of reading a file of anchors.
#[derive(Debug, thiserror::Error)]
pub enum NoAnchors {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is not a signed head.
    #[error("line {0}: {1}")]
    Line(u64, NoHead),
    /// A line is too long to be a signed head.
    #[error("line {0}: longer than any signed head")]
    TooLong(u64),
    /// The signature of a line is invalid.
    #[error("line {0}: the signature does not fit; the anchors were changed")]
    Signature(u64),
    /// Two lines contradict each other about one position.
    #[error(
        "line {line}: entry {entry} of the tape was anchored with another hash before; one key signed two tapes of the same id"
    )]
    Twice {
        /// Line number, counted from 1.
        line: u64,
        /// Number of the anchored entry.
        entry: u64,
    },
    /// There are too many heads.
    #[error("more than {MAX_ANCHORS} heads of one tape")]
    TooMany,
}

impl Anchors {
    /// Reads the heads of one tape from JSON lines; lines about other tapes are ignored.
    ///
    /// # Errors
    /// Fails if the lines cannot be read, or one is not a signed head.
    pub fn read(from: impl BufRead, tape: &str) -> Result<Self, NoAnchors> {
        let mut anchors = Self::default();
        anchors.read_more(from, tape, |_| true)?;
        Ok(anchors)
    }

    /// Adds the heads of the same tape from another file, if `may_sign` accepts their key.
    ///
    /// # Errors
    /// Fails if the lines cannot be read, or one is not a signed head.
    pub fn read_more(
        &mut self,
        mut from: impl BufRead,
        tape: &str,
        may_sign: impl Fn(&VerifyingKey) -> bool,
    ) -> Result<(), NoAnchors> {
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
            let value = strict_json::check(&text).and_then(|_| serde_json::from_slice(&text));
            let head = value.map_err(NoHead::from).and_then(SignedHead::from_json);
            let head = head.map_err(|error| NoAnchors::Line(line, error))?;
            if head.tape == tape {
                self.add(&head, line, &may_sign)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, head: &SignedHead, line: u64, may_sign: impl Fn(&VerifyingKey) -> bool) -> Result<(), NoAnchors> {
        let (key, hash) = head.signer().zip(head.hash()).ok_or(NoAnchors::Signature(line))?;
        let is_owner = self.owner.as_ref().is_none_or(|owner| owner.as_bytes() == key.as_bytes());
        if !is_owner || !may_sign(&key) {
            self.left_out += 1;
            if self.strangers.len() < MAX_STRANGERS && !self.strangers.contains(&key) {
                self.strangers.push(key);
            }
            return Ok(());
        }
        self.owner.get_or_insert(key);
        let entry = head.head.seq;
        if self.places.insert(entry, hash).is_some_and(|before| before != hash) {
            return Err(NoAnchors::Twice { line, entry });
        }
        self.closed |= head.kind == HeadKind::Closing;
        if self.places.len() > MAX_ANCHORS { Err(NoAnchors::TooMany) } else { Ok(()) }
    }

    /// Returns true if there are no heads.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the key that signed the heads, or nothing if there are none.
    #[must_use]
    pub fn signers(&self) -> &[VerifyingKey] {
        self.owner.as_slice()
    }

    /// Returns the number of heads of the tape that were ignored because other keys signed them.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the keys of ignored heads, up to a maximum.
    #[must_use]
    pub fn strangers(&self) -> &[VerifyingKey] {
        &self.strangers
    }

    /// Returns the hash of the chain at this entry when it was anchored.
    pub(super) fn at(&self, entry: u64) -> Option<ChainHash> {
        self.places.get(&entry).copied()
    }

    /// Returns the last anchored entry.
    pub(super) fn last(&self) -> u64 {
        self.places.last_key_value().map_or(0, |(last, _)| *last)
    }

    /// Returns true if the end of the tape was anchored.
    pub(super) fn closed(&self) -> bool {
        self.closed
    }
}
