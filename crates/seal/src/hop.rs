//! Hops: signed renames that gateways make between the signer and the verifier.
//!
//! A signer signs the name that it sees. Each gateway that renames adds a hop: the name as received, the name as sent,
//! and a signature over both and over the previous signature, so that a hop cannot be moved to another request or
//! omitted.

use crate::canonical::{EncodeError, Encoder};
use crate::domain::Domain;
use crate::key_set::{KeyRole, KeySet, TrustError};
use crate::profile::Profile;
use crate::proto;
use crate::signature::{ALGORITHM, Signature, is_supported_algorithm};
use crate::signing_key::{KeyError, SigningKey};

/// Maximum number of hops in a request.
pub const MAX_HOPS: usize = 16;

/// A rename by a gateway, with its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Name as the gateway received it.
    pub from: String,
    /// Name as the gateway sent it.
    pub to: String,
    /// Id of the gateway's key.
    pub key_id: String,
    /// Algorithm of the signature.
    pub algorithm: String,
    /// Signature bytes, over both names and the previous signature.
    pub signature: Vec<u8>,
}

/// Reason why hops do not lead from the signed name to the received name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HopError {
    /// A hop starts from another name than its predecessor ends with.
    #[error("hop {at} starts from {found:?}, but the name before it is {expected:?}")]
    Gap {
        /// Index of the hop, from 1.
        at: usize,
        /// Name that the predecessor ends with.
        expected: String,
        /// Name that the hop starts from.
        found: String,
    },
    /// The received name is not the one that the last hop, or the signer, wrote.
    #[error("the request names {found:?}; what was signed leads to {expected:?}")]
    Renamed {
        /// Name that the signatures lead to.
        expected: String,
        /// Name in the request.
        found: String,
    },
    /// The key of a hop is not trusted as a gateway key.
    #[error("hop {at}: {why}")]
    Untrusted {
        /// Index of the hop, from 1.
        at: usize,
        /// Reason why the key is not trusted.
        why: TrustError,
    },
    /// The algorithm of a hop is not supported.
    #[error("hop {at} is signed by {algorithm:?}, which is not supported")]
    UnsupportedAlgorithm {
        /// Index of the hop, from 1.
        at: usize,
        /// Name of the algorithm.
        algorithm: String,
    },
    /// The signature of a hop is wrong.
    #[error("hop {0} was changed after it was signed, or belongs to another request")]
    Tampered(usize),
    /// There are more than [`MAX_HOPS`] hops.
    #[error("there are {0} hops; {MAX_HOPS} are followed at most")]
    TooMany(usize),
}

/// Error when a hop cannot be signed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SignHopError {
    /// The names have no canonical form.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The key cannot sign.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Hop {
    /// Signs a rename by this gateway. `previous` is the signature of the previous hop, or of the request.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn sign(key: &SigningKey, previous: &[u8], from: &str, to: &str) -> Result<Self, SignHopError> {
        let signed = canonical(previous, from, to, key.id())?;
        let signature = key.sign(Profile::Two, Domain::Hop, &signed)?;
        Ok(Self {
            from: from.to_owned(),
            to: to.to_owned(),
            key_id: key.id().to_owned(),
            algorithm: ALGORITHM.to_owned(),
            signature: signature.as_bytes().to_vec(),
        })
    }

    fn check(&self, at: usize, previous: &[u8], keys: &KeySet, now: i64) -> Result<(), HopError> {
        if !is_supported_algorithm(&self.algorithm) {
            let algorithm = self.algorithm.chars().take(64).collect();
            return Err(HopError::UnsupportedAlgorithm { at, algorithm });
        }
        let trusted = keys.trusted(&self.key_id, &[KeyRole::Gateway], now);
        let trusted = trusted.map_err(|why| HopError::Untrusted { at, why })?;
        let signature = Signature::from_bytes(&self.signature).map_err(|_| HopError::Tampered(at))?;
        let signed = canonical(previous, &self.from, &self.to, &self.key_id).map_err(|_| HopError::Tampered(at))?;
        trusted.key.verify(Profile::Two, Domain::Hop, &signed, &signature).map_err(|_| HopError::Tampered(at))
    }
}

/// Verifies that hops of trusted gateways lead from the signed name to the received name. `signature` is that of the
/// request, `now` is in seconds since 1970.
///
/// # Errors
/// The first hop that is wrong.
pub fn follow_hops(
    hops: &[Hop],
    signature: &[u8],
    signed_name: &str,
    name: &str,
    keys: &KeySet,
    now: i64,
) -> Result<(), HopError> {
    if hops.len() > MAX_HOPS {
        return Err(HopError::TooMany(hops.len()));
    }
    let (mut here, mut previous) = (signed_name, signature);
    for (hop, at) in hops.iter().zip(1..) {
        if hop.from != here {
            let (expected, found) = (here.to_owned(), hop.from.clone());
            return Err(HopError::Gap { at, expected, found });
        }
        hop.check(at, previous, keys, now)?;
        (here, previous) = (&hop.to, &hop.signature);
    }
    if here != name {
        return Err(HopError::Renamed { expected: here.to_owned(), found: name.to_owned() });
    }
    Ok(())
}

fn canonical(previous: &[u8], from: &str, to: &str, key_id: &str) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::new(Profile::Two);
    encoder.value().map(|map| {
        map.entry("to").text(to);
        map.entry("from").text(from);
        map.entry("key_id").text(key_id);
        map.entry("previous").bytes(previous);
        Ok(())
    })?;
    encoder.finish()
}

impl From<&proto::Hop> for Hop {
    fn from(hop: &proto::Hop) -> Self {
        let signature = hop.signature.clone().unwrap_or_default();
        Self {
            from: hop.from.clone(),
            to: hop.to.clone(),
            key_id: signature.key_id,
            algorithm: signature.algorithm,
            signature: signature.signature.to_vec(),
        }
    }
}

impl From<Hop> for proto::Hop {
    fn from(hop: Hop) -> Self {
        let signature =
            proto::CryptoSignature { key_id: hop.key_id, algorithm: hop.algorithm, signature: hop.signature.into() };
        Self { from: hop.from, to: hop.to, signature: Some(signature) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_set::TrustedKey;

    fn gateway(seed: u8, id: &str) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap().named(id).unwrap()
    }

    #[test]
    fn only_unbroken_hops_of_trusted_gateways_are_followed() {
        let (west, east, eve) = (gateway(1, "west"), gateway(2, "east"), gateway(3, "eve"));
        let mut keys = KeySet::new();
        keys.add(TrustedKey::new(west.verifying_key().clone(), "west", &[KeyRole::Gateway])).unwrap();
        keys.add(TrustedKey::new(east.verifying_key().clone(), "east", &[KeyRole::Gateway])).unwrap();
        keys.add(TrustedKey::new(eve.verifying_key().clone(), "eve", &[KeyRole::Client])).unwrap();
        let first = Hop::sign(&west, b"request", "east__web__search", "web__search").unwrap();
        let second = Hop::sign(&east, &first.signature, "web__search", "search").unwrap();
        let follow = |hops: &[Hop], name| follow_hops(hops, b"request", "east__web__search", name, &keys, 0);

        let both = [first.clone(), second.clone()];
        assert_eq!(follow(&both, "search"), Ok(()));
        assert_eq!(follow(&[], "east__web__search"), Ok(()));
        assert!(matches!(follow(&both, "delete"), Err(HopError::Renamed { .. })));
        assert!(matches!(follow(&[], "search"), Err(HopError::Renamed { .. })));
        assert!(matches!(follow(std::slice::from_ref(&second), "search"), Err(HopError::Gap { at: 1, .. })));
        let other = follow_hops(&both, b"another request", "east__web__search", "search", &keys, 0);
        assert_eq!(other, Err(HopError::Tampered(1)));
        let changed = Hop { to: "delete".to_owned(), ..second.clone() };
        assert_eq!(follow(&[first.clone(), changed], "delete"), Err(HopError::Tampered(2)));
        let by_eve = Hop::sign(&eve, &first.signature, "web__search", "delete").unwrap();
        assert!(matches!(follow(&[first.clone(), by_eve], "delete"), Err(HopError::Untrusted { at: 2, .. })));
        let algorithm = Hop { algorithm: "RSA".to_owned(), ..first.clone() };
        assert!(matches!(follow(&[algorithm], "web__search"), Err(HopError::UnsupportedAlgorithm { at: 1, .. })));
        assert_eq!(follow(&vec![first; 17], "search"), Err(HopError::TooMany(17)));
    }
}
