//! Private keys for Ed25519 signatures.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::encoding::AsBigEndian as _;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};

use crate::domain::Domain;
use crate::profile::Profile;
use crate::signature::Signature;
use crate::verifying_key::{VerifyingKey, check_key_id};

/// Length of the seed of a private key, in bytes.
pub const SEED_BYTES: usize = 32;

/// Private Ed25519 key with its id. Cheap to clone. Its `Debug` output shows only the id.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<Ed25519KeyPair>,
    public: VerifyingKey,
}

/// Error when a key cannot be created or used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// A public key or a seed has the wrong length.
    #[error("{what} is 32 bytes, not {length}")]
    Length {
        /// Kind of key that has the wrong length.
        what: &'static str,
        /// Number of bytes given.
        length: usize,
    },
    /// The bytes are not an Ed25519 key.
    #[error("that is no Ed25519 key: {0}")]
    Rejected(String),
    /// The public key has small order: any signer could forge signatures that match it.
    #[error("that is a public key of small order, whose signatures prove nothing")]
    SmallOrder,
    /// The id is invalid.
    #[error("the id of a key is 1 to 128 letters, digits, `_`, `.`, `:`, `@` and `-`, unlike {0:?}")]
    Id(String),
    /// The cryptographic library failed.
    #[error("the cryptographic library failed to {0}")]
    Library(&'static str),
}

impl SigningKey {
    /// Generates a random key.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn generate() -> Result<Self, KeyError> {
        Self::of_pair(Ed25519KeyPair::generate().map_err(|_| KeyError::Library("generate a key"))?)
    }

    /// Creates the key of a seed of 32 bytes.
    ///
    /// # Errors
    /// If the seed has another length.
    pub fn from_seed(seed: &[u8]) -> Result<Self, KeyError> {
        if seed.len() != SEED_BYTES {
            return Err(KeyError::Length { what: "the seed of a key", length: seed.len() });
        }
        Self::of_pair(Ed25519KeyPair::from_seed_unchecked(seed).map_err(rejected)?)
    }

    /// Parses a key from PKCS#8 DER, with or without its public key.
    ///
    /// # Errors
    /// If the input is not PKCS#8 of an Ed25519 key, or its public key does not match.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        Self::of_pair(Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(rejected)?)
    }

    fn of_pair(pair: Ed25519KeyPair) -> Result<Self, KeyError> {
        let public = VerifyingKey::from_bytes(pair.public_key().as_ref())?;
        Ok(Self { pair: Arc::new(pair), public })
    }

    /// Replaces the id that is derived from the public key.
    ///
    /// # Errors
    /// If the id is empty, too long or contains an invalid character.
    pub fn named(mut self, id: &str) -> Result<Self, KeyError> {
        check_key_id(id)?;
        self.public = self.public.named(id)?;
        Ok(self)
    }

    /// Returns the id of the key.
    #[must_use]
    pub fn id(&self) -> &str {
        self.public.id()
    }

    /// Returns the public key, under the same id.
    #[must_use]
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.public
    }

    /// Serializes the key as PKCS#8 (version 1) DER, which other programs read.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn to_pkcs8(&self) -> Result<Vec<u8>, KeyError> {
        let document = self.pair.to_pkcs8v1().map_err(|_| KeyError::Library("write a key"))?;
        Ok(document.as_ref().to_vec())
    }

    /// Returns the seed of the key.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn to_seed(&self) -> Result<[u8; SEED_BYTES], KeyError> {
        let failed = |_| KeyError::Library("write a seed");
        let seed = self.pair.seed().and_then(|seed| seed.as_be_bytes()).map_err(failed)?;
        seed.as_ref().try_into().map_err(|_| KeyError::Library("write a seed"))
    }

    /// Signs canonical bytes of a profile for one domain, in the frame of [`Domain::frame`].
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn sign(&self, profile: Profile, domain: Domain, canonical: &[u8]) -> Result<Signature, KeyError> {
        self.sign_prepared(&domain.frame(profile, canonical))
    }

    /// Signs bytes as they are. It is meant for the result of `prepare_request_for_signing` and
    /// `prepare_response_for_signing`, which already contains the domain. Use [`SigningKey::sign`] for anything else.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn sign_prepared(&self, prepared: &[u8]) -> Result<Signature, KeyError> {
        let signature = self.pair.try_sign(prepared).map_err(|_| KeyError::Library("sign"))?;
        Signature::from_bytes(signature.as_ref()).map_err(|_| KeyError::Library("sign"))
    }
}

fn rejected(error: aws_lc_rs::error::KeyRejected) -> KeyError {
    KeyError::Rejected(error.to_string())
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.id()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::hex::unhex;

    /// RFC 8032, section 7.1, test 2.
    const SEED: &str = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
    const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const SIGNATURE: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
        085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

    fn key() -> SigningKey {
        SigningKey::from_seed(&unhex(SEED).unwrap()).unwrap()
    }

    #[test]
    fn a_key_signs_as_the_rfc_says() {
        assert_eq!(crate::hex(key().verifying_key().as_bytes()), PUBLIC);
        assert_eq!(key().sign_prepared(&[0x72]).unwrap().to_hex(), SIGNATURE);
    }

    /// Proves PO-13.
    #[test]
    fn keys_are_generated_and_read_from_pkcs8_and_seeds() {
        let key = SigningKey::generate().unwrap();
        for same in [
            SigningKey::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap(),
            SigningKey::from_seed(&key.to_seed().unwrap()).unwrap(),
        ] {
            assert_eq!(same.verifying_key(), key.verifying_key());
            assert_eq!(same.id(), key.id());
        }
        assert_eq!(SigningKey::from_seed(&[1; 31]).unwrap_err().to_string(), "the seed of a key is 32 bytes, not 31");
        assert!(matches!(SigningKey::from_pkcs8(b"no key"), Err(KeyError::Rejected(_))));
    }

    #[test]
    fn a_key_has_the_id_of_its_public_key_unless_it_is_named() {
        assert_eq!(key().id(), "ed25519-39f713d0a644253f04529421b9f51b9b08979d08");
        assert_eq!(key().named("key-1").unwrap().id(), "key-1");
        for id in ["", "a b", "é", "a\n", &"x".repeat(129)] {
            assert!(matches!(key().named(id), Err(KeyError::Id(_))), "{id:?}");
        }
    }

    #[test]
    fn a_signature_serves_one_profile_and_one_domain() {
        let key = key();
        for domain in Domain::ALL {
            let signature = key.sign(Profile::Two, domain, b"data").unwrap();
            for other in Domain::ALL {
                for profile in [Profile::One, Profile::Two] {
                    let fits = key.verifying_key().verify(profile, other, b"data", &signature).is_ok();
                    assert_eq!(fits, other == domain && profile == Profile::Two, "{domain} as {other} of {profile}");
                }
            }
        }
    }

    #[test]
    fn a_private_key_is_never_shown() {
        let shown = format!("{:?}", key());
        assert!(shown.starts_with("SigningKey(\"ed25519-") && !shown.contains("4ccd"), "{shown}");
    }
}
