//! Decides whether the keys that signed a tape are trusted to sign it.

use super::config;
use crate::cli::Global;
use crate::failure::Failure;
use signalbox_assembly::seal_folder::SealFolder;
use signalbox_control::table::harmless;
use signalbox_seal::{KeyRole, KeySet, VerifyingKey};

/// Reason to trust a key. Later variants are stronger.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Trust {
    /// The key is in no set of trusted keys.
    Unknown,
    /// The key is in the set of trusted keys beside the tape.
    Beside,
    /// The key signed anchors that were stored elsewhere, and the tape still agrees with them.
    Anchored,
    /// The key was pinned on the command line.
    Pinned,
}

impl Trust {
    /// Returns the word for it in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Beside => "trusted",
            Self::Anchored => "anchored",
            Self::Pinned => "pinned",
        }
    }

    /// Returns a caveat for the user, if there is one.
    pub(super) fn note(self) -> Option<&'static str> {
        match self {
            Self::Pinned | Self::Anchored => None,
            Self::Beside => Some(
                "the key is kept beside the tapes: a person who can change them can sign, too; note the key elsewhere and \
                 pin it with --pin, or keep signed heads elsewhere (`seal.anchor`) and give them with --anchor",
            ),
            Self::Unknown => Some(
                "that key is not known here, or is not the one that was pinned or anchored: anybody could have made this",
            ),
        }
    }
}

/// Keys that may sign: the pinned ones, or else those of the data folder.
pub(super) struct TrustedSigners {
    pins: Vec<Pin>,
    keys: KeySet,
    /// Keys that signed the anchors; `None` if no anchors were given.
    anchored: Option<Vec<VerifyingKey>>,
}

/// A key pinned by its id or public key.
enum Pin {
    Id(String),
    Key(VerifyingKey),
}

impl TrustedSigners {
    /// Reads the keys of the data folder, with these pins: ids, or public keys as hexadecimal digits.
    pub(super) fn read(global: &Global, pins: &[String]) -> Result<Self, Failure> {
        let pins = pins.iter().map(|pin| Pin::read(pin)).collect::<Result<_, _>>()?;
        let keys = SealFolder::of(&config(global)?.data_dir).key_set();
        Ok(Self { pins, keys: keys.map_err(|error| Failure::Usage(error.to_string()))?, anchored: None })
    }

    /// Restricts the keys to those that signed the anchors.
    pub(super) fn anchored_by(self, signers: &[VerifyingKey]) -> Self {
        Self { anchored: Some(signers.to_vec()), ..self }
    }

    /// Returns `true` if heads of this key count as anchors. All do, unless keys are pinned.
    pub(super) fn may_anchor(&self, key: &VerifyingKey) -> bool {
        self.pins.is_empty() || self.pins.iter().any(|pin| pin.is(key))
    }

    /// Returns the lowest trust among the signers. Each comes with its own claim of the signing time, in nanoseconds.
    pub(super) fn worst<'s>(&self, signers: impl Iterator<Item = (&'s VerifyingKey, u64)>) -> Trust {
        signers.map(|(key, at)| self.of(key, at)).min().unwrap_or(Trust::Pinned)
    }

    fn of(&self, key: &VerifyingKey, at: u64) -> Trust {
        if self.pins.iter().any(|pin| pin.is(key)) {
            return Trust::Pinned;
        }
        if let (Some(anchored), true) = (&self.anchored, self.pins.is_empty()) {
            let is_there = anchored.iter().any(|known| known.as_bytes() == key.as_bytes());
            return if is_there { Trust::Anchored } else { Trust::Unknown };
        }
        let at = i64::try_from(at / 1_000_000_000).unwrap_or(i64::MAX);
        let known = self.keys.trusted(key.id(), &[KeyRole::Recorder], at);
        let known = known.is_ok_and(|known| known.key.as_bytes() == key.as_bytes());
        if self.pins.is_empty() && known { Trust::Beside } else { Trust::Unknown }
    }
}

impl Pin {
    fn read(text: &str) -> Result<Self, Failure> {
        if text.starts_with("ed25519-") {
            return Ok(Self::Id(text.to_owned()));
        }
        VerifyingKey::from_hex(text).map(Self::Key).map_err(|_| {
            let why = "is neither the id of a key (ed25519-…) nor a public key of 64 hexadecimal digits";
            Failure::Usage(format!("`{}` {why}", harmless(text)))
        })
    }

    /// Compares the pin with the key. The id is derived from the key, because a tape may give its key any name.
    fn is(&self, key: &VerifyingKey) -> bool {
        match self {
            Self::Key(pinned) => pinned.as_bytes() == key.as_bytes(),
            Self::Id(id) => VerifyingKey::from_bytes(key.as_bytes()).is_ok_and(|derived| derived.id() == id),
        }
    }
}
