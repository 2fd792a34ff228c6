//! Messages that prove who sent them, and records that nobody can change unseen.
//!
//! A signature is made over bytes. JSON and protobuf both have many spellings of the same data, so this crate has a
//! [canonical] form in CBOR that every language computes alike, in two named [profiles](Profile), and Ed25519
//! [keys](SigningKey) that sign it.
//!
//! ```
//! use signalbox_seal::{Domain, Profile, SigningKey, canonical};
//!
//! let key = SigningKey::generate()?;
//! let signed = canonical::json(br#"{"b": 1, "a": [true, 0.5]}"#)?;
//! assert_eq!(signed, canonical::json(br#"{"a":[true,5e-1],"b":1}"#)?);
//!
//! let signature = key.sign(Profile::Two, Domain::Tape, &signed)?;
//! let public = key.verifying_key();
//! assert!(public.verify(Profile::Two, Domain::Tape, &signed, &signature).is_ok());
//! assert!(public.verify(Profile::Two, Domain::Audit, &signed, &signature).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod canonical;
mod domain;
mod hash;
mod profile;
mod signature;
mod signing_key;
mod verifying_key;

pub use domain::{Domain, UnknownDomain};
pub use hash::{hex, sha256, unhex};
pub use profile::{Profile, UnknownProfile};
pub use signature::{ALGORITHM, BadSignature, SIGNATURE_BYTES, Signature, is_supported_algorithm};
pub use signing_key::{KeyError, SEED_BYTES, SigningKey};
pub use verifying_key::{PUBLIC_KEY_BYTES, VerifyingKey};
