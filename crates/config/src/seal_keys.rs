//! The configuration keys of sealing: tapes that prove themselves.

use crate::key_parts::{count, key, seconds};
use crate::keys::{ConfigKey, KeyKind};

/// Every key of `seal`, in the order of the reference.
pub(crate) const SEAL_KEYS: &[ConfigKey] = &[
    key(
        "seal.tapes",
        KeyKind::Flag(true),
        "Seal recorded tapes: a chain of hashes over all entries, signed with the key in the data folder; see docs/seal.md.",
    ),
    key(
        "seal.commit",
        KeyKind::Texts,
        "Members of messages below which every value is sealed by itself, so that `tape redact` can remove it and the rest still proves itself. By default `params.arguments` and `result`.",
    ),
    key("seal.head_every", count(1_000, 1, 1_000_000), "The seal of a tape is signed after this many entries."),
    key(
        "seal.head_interval",
        seconds(10.0, 24.0 * 3600.0),
        "The seal of a tape is signed at least this often while entries come.",
    ),
];
