//! Salts of one tape. They are secret until disclosed, and each can be disclosed without the others.

use aws_lc_rs::cipher::{AES_256, EncryptingKey, UnboundCipherKey};

/// Length of a salt, in bytes.
pub(super) const SALT_BYTES: usize = 16;
/// Length of the seed, in bytes.
pub const SEED_BYTES: usize = 32;

pub(super) type Salt = [u8; SALT_BYTES];

/// Derives salts: number `i` of entry `n` is AES-256 of `n` and `i`, both as 8 big-endian bytes, under the seed.
pub(super) struct Salts(EncryptingKey);

impl Salts {
    /// Creates the salts of a seed. Returns `None` if the seed is invalid.
    pub(super) fn new(seed: &[u8]) -> Option<Self> {
        UnboundCipherKey::new(&AES_256, seed).and_then(EncryptingKey::ecb).ok().map(Self)
    }

    /// Writes the first `count` salts of an entry: that of its body, then those of its leaves. Returns `None` if the
    /// cryptographic library fails.
    pub(super) fn of(&self, entry: u64, count: usize, out: &mut Vec<Salt>) -> Option<()> {
        out.clear();
        out.extend((0..count as u64).map(|number| {
            let mut block = [0; SALT_BYTES];
            let (first, second) = block.split_at_mut(8);
            first.copy_from_slice(&entry.to_be_bytes());
            second.copy_from_slice(&number.to_be_bytes());
            block
        }));
        self.0.encrypt(out.as_flattened_mut()).ok().map(drop)
    }
}

impl std::fmt::Debug for Salts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salts")
    }
}
