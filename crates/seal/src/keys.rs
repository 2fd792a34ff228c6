//! File formats for keys.
//!
//! A private key is a file of its own: PKCS#8 as PEM or DER, or a seed of 32 bytes, raw or as 64 hexadecimal digits
//! ([`read_signing_key`], [`write_pem`]). Trusted public keys are in one TOML file ([`read_key_set`],
//! [`write_key_set`]):
//!
//! ```toml
//! [[key]]
//! id = "ed25519-39f713d0a644253f04529421b9f51b9b08979d08"
//! name = "ada"
//! public_key = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
//! roles = ["client"]
//! valid_from = "2026-01-01T00:00:00Z"     # optional, as are the following
//! valid_until = "2027-01-01T00:00:00Z"
//! revoked_at = "2026-06-01T00:00:00Z"
//! replaces = "the id of the key before"
//! ```
//!
//! These functions work on texts. [`files`] reads and writes the files themselves.

pub mod files;
mod key_file;
mod key_set_file;
mod public_key_file;

pub use key_file::{KeyFileError, read_signing_key, write_pem};
pub use key_set_file::{KeySetError, read_key_set, write_key_set};
pub use public_key_file::{PublicKeyError, read_verifying_key, write_public_pem};
