//! Stores the signed heads of other recorders' tapes in the data folder.
//!
//! A sender is identified by the key that signed the head. The key must be trusted as a recorder or a gateway. A tape
//! belongs to the key of its first head, so no other recorder can speak for it. For each tape only heads after the last
//! one are appended, so repeated heads do not fill the file.

use crate::recording::unix_nanos;
use crate::seal_folder::SealFolder;
use signalbox_engine::lock::LockResultExt;
use signalbox_seal::keys::files::KeyStorageError;
use signalbox_seal::{ChainHash, HeadKind, KeyRole, TrustError};
use signalbox_tape::seal::SignedHead;
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Mutex;

/// Maximum size of the file in bytes.
pub const MAX_ANCHOR_FILE: u64 = 256 << 20;

/// Reason for rejecting a head.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    /// The signature does not verify.
    #[error("the signature of the head does not fit")]
    Signature,
    /// The signing key is not trusted here.
    #[error("{0}")]
    Untrusted(TrustError),
    /// A different head for the same entry is stored already.
    #[error("entry {seq} of tape {tape} was anchored with another hash before")]
    Conflict {
        /// Id of the tape.
        tape: String,
        /// Sequence number of the entry.
        seq: u64,
    },
    /// Another key signed the first head of the tape.
    #[error("tape {0} belongs to another key, which signed its first head")]
    Owner(String),
    /// The file has reached [`MAX_ANCHOR_FILE`].
    #[error("the file of anchors has grown to {} MiB; move it away", MAX_ANCHOR_FILE >> 20)]
    Full,
    /// The trusted keys cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyStorageError),
    /// The file cannot be read or written.
    #[error("the file of anchors: {0}")]
    File(#[from] io::Error),
}

/// Outcome of an accepted head.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AnchorOutcome {
    /// The head was appended.
    New,
    /// This head, or one that covers it, is stored already.
    Known,
}

/// Last stored head of a tape.
#[derive(Clone, Debug)]
struct Last {
    /// Public key that signed the first head. The signature does not prove the key's name.
    owner: [u8; 32],
    seq: u64,
    closed: bool,
    hash: ChainHash,
}

/// Anchor file of one data folder, with the last head of each tape in memory.
#[derive(Debug)]
pub struct AnchorBook {
    folder: SealFolder,
    /// Last head by tape id. `None` until the file has been read.
    last: Mutex<Option<HashMap<String, Last>>>,
}

impl AnchorBook {
    /// Returns a book for this folder. The file is read at the first head.
    #[must_use]
    pub fn new(folder: SealFolder) -> Self {
        Self { folder, last: Mutex::default() }
    }

    /// Appends a head and syncs the file before it returns.
    ///
    /// # Errors
    /// If the head is not signed by a trusted key, contradicts a stored one, or cannot be written.
    pub fn keep(&self, head: &SignedHead) -> Result<AnchorOutcome, AnchorError> {
        let (key, hash) = head.signer().zip(head.hash()).ok_or(AnchorError::Signature)?;
        let now = i64::try_from(unix_nanos() / 1_000_000_000).unwrap_or(i64::MAX);
        let keys = self.folder.key_set()?;
        let known =
            keys.trusted(key.id(), &[KeyRole::Recorder, KeyRole::Gateway], now).map_err(AnchorError::Untrusted)?;
        if known.key.as_bytes() != key.as_bytes() {
            return Err(AnchorError::Signature);
        }
        let path = self.folder.anchor_file();
        let mut last = self.last.lock().unpoisoned();
        let places = match &mut *last {
            Some(places) => places,
            none => none.insert(read(&path)?),
        };
        let (seq, closed, owner) = (head.head.seq, head.kind == HeadKind::Closing, *key.as_bytes());
        if let Some(known) = places.get(&head.tape) {
            if known.owner != owner {
                tracing::error!(tape = %head.tape, seq, key = key.id(), "a head of a tape of another key is refused");
                return Err(AnchorError::Owner(head.tape.clone()));
            }
            if known.seq == seq && known.hash != hash {
                tracing::error!(tape = %head.tape, seq, key = key.id(), "a tape was anchored twice, with different hashes");
                return Err(AnchorError::Conflict { tape: head.tape.clone(), seq });
            }
            if (seq, closed) <= (known.seq, known.closed) {
                return Ok(AnchorOutcome::Known);
            }
        }
        append(&path, &head.to_json().to_string())?;
        places.insert(head.tape.clone(), Last { owner, seq, closed, hash });
        Ok(AnchorOutcome::New)
    }
}

fn read(path: &Path) -> Result<HashMap<String, Last>, AnchorError> {
    let mut places: HashMap<String, Last> = HashMap::new();
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(places),
        opened => opened?,
    };
    for line in BufReader::new(file).split(b'\n') {
        // Skip a line that a crash cut off: its sender never got a reply.
        let Ok(value) = serde_json::from_slice(&line?) else { continue };
        let Ok(head) = SignedHead::from_json(value) else { continue };
        let Some((key, hash)) = head.signer().zip(head.hash()) else { continue };
        let (seq, closed, owner) = (head.head.seq, head.kind == HeadKind::Closing, *key.as_bytes());
        let kept = places.entry(head.tape).or_insert(Last { owner, seq, closed, hash });
        // Earlier versions stored heads of other keys too.
        if kept.owner == owner && (kept.seq, kept.closed) < (seq, closed) {
            *kept = Last { owner, seq, closed, hash };
        }
    }
    Ok(places)
}

fn append(path: &Path, line: &str) -> Result<(), AnchorError> {
    if fs::metadata(path).is_ok_and(|file| file.len() + line.len() as u64 >= MAX_ANCHOR_FILE) {
        return Err(AnchorError::Full);
    }
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    // The newline comes first, so that it ends a line that a crash cut off.
    file.write_all(format!("\n{line}").as_bytes())?;
    Ok(file.sync_data()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal_folder::SealFolderError;
    use signalbox_seal::{Head, HeadContent, SigningKey, TrustedKey};
    use signalbox_tape::seal::Anchors;

    fn head(key: &SigningKey, kind: HeadKind, seq: u64, hash: u8) -> SignedHead {
        let head = Head::sign(kind, "t", HeadContent::of(seq, &[hash; 32], 1), key).unwrap();
        SignedHead { tape: "t".to_owned(), kind, head }
    }

    #[test]
    fn heads_of_trusted_keys_are_kept_once() {
        let data = tempfile::tempdir().unwrap();
        let folder = SealFolder::of(data.path());
        let west = SigningKey::generate().unwrap();
        let trusted = TrustedKey::new(west.verifying_key().clone(), "west", &[KeyRole::Gateway]);
        folder.change_key_set(|keys| keys.add(trusted).map_err(SealFolderError::from)).unwrap();
        let book = AnchorBook::new(folder.clone());
        let interim = |seq, hash| head(&west, HeadKind::Interim, seq, hash);
        assert_eq!(book.keep(&head(&west, HeadKind::Opening, 0, 1)).unwrap(), AnchorOutcome::New);
        assert_eq!(book.keep(&interim(5, 2)).unwrap(), AnchorOutcome::New);
        assert_eq!(book.keep(&interim(5, 2)).unwrap(), AnchorOutcome::Known);
        assert_eq!(book.keep(&interim(3, 2)).unwrap(), AnchorOutcome::Known, "a later one covers it");
        assert!(matches!(book.keep(&interim(5, 3)), Err(AnchorError::Conflict { seq: 5, .. })));
        let mut forged = interim(9, 2);
        forged.head.seq = 8;
        assert!(matches!(book.keep(&forged), Err(AnchorError::Signature)));
        let stranger = SigningKey::generate().unwrap();
        assert!(matches!(book.keep(&head(&stranger, HeadKind::Interim, 9, 2)), Err(AnchorError::Untrusted(_))));
        // After a restart the same is known.
        let book = AnchorBook::new(folder.clone());
        assert_eq!(book.keep(&interim(5, 2)).unwrap(), AnchorOutcome::Known);
        assert_eq!(book.keep(&head(&west, HeadKind::Closing, 5, 2)).unwrap(), AnchorOutcome::New);
        let text = fs::read_to_string(folder.anchor_file()).unwrap();
        assert_eq!(text.trim().lines().count(), 3, "{text}");
        assert!(!Anchors::read(text.as_bytes(), "t").unwrap().is_empty());
    }

    /// A tape belongs to the key of its first head. Another trusted recorder cannot speak for it at any entry, nor keep
    /// later heads of its owner out, in a file of an earlier version either.
    #[test]
    fn a_tape_belongs_to_the_key_of_its_first_head() {
        let data = tempfile::tempdir().unwrap();
        let folder = SealFolder::of(data.path());
        let (east, west) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        for (key, name) in [(&east, "east"), (&west, "west")] {
            let trusted = TrustedKey::new(key.verifying_key().clone(), name, &[KeyRole::Recorder]);
            folder.change_key_set(|keys| keys.add(trusted).map_err(SealFolderError::from)).unwrap();
        }
        let far = head(&west, HeadKind::Interim, 1 << 40, 9);
        let book = AnchorBook::new(folder.clone());
        assert_eq!(book.keep(&head(&east, HeadKind::Opening, 0, 1)).unwrap(), AnchorOutcome::New);
        for foreign in [head(&west, HeadKind::Interim, 15, 9), far.clone(), head(&west, HeadKind::Closing, 0, 1)] {
            assert!(matches!(book.keep(&foreign), Err(AnchorError::Owner(_))), "{foreign:?}");
        }
        assert_eq!(book.keep(&head(&east, HeadKind::Interim, 15, 2)).unwrap(), AnchorOutcome::New);
        append(&folder.anchor_file(), &far.to_json().to_string()).unwrap();
        let book = AnchorBook::new(folder.clone());
        assert!(matches!(book.keep(&far), Err(AnchorError::Owner(_))));
        assert_eq!(book.keep(&head(&east, HeadKind::Interim, 20, 3)).unwrap(), AnchorOutcome::New);
        let text = fs::read(folder.anchor_file()).unwrap();
        let anchors = Anchors::read(&text[..], "t").unwrap();
        assert_eq!(anchors.signers(), std::slice::from_ref(east.verifying_key()));
        assert_eq!(anchors.left_out(), 1);
    }
}
