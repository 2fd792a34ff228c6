//! Signature as carried by a JSON message.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use signalbox_wire::{Envelope, json, meta};

use super::verify_error::VerifyError;
use crate::hop::Hop;
use crate::signed_params::META_SIGNATURE;
use signalbox_wire::hex::{hex, unhex};

/// Allowed length of a nonce.
pub(super) const NONCE: RangeInclusive<usize> = 8..=128;
/// Maximum size of a signature with all its hops, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Value under [`META_SIGNATURE`]. Times are in milliseconds since 1970; signatures and hashes are hexadecimal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageSignature {
    /// Id of the signing key.
    pub key_id: String,
    /// `Ed25519`, in any case.
    pub algorithm: String,
    /// Canonical profile that is signed.
    pub profile: String,
    /// Domain of the signature: `request` or `response`.
    pub domain: String,
    /// Text that the key has never used before.
    pub nonce: String,
    /// Time at which the message is signed.
    pub signed_at: u64,
    /// Time from which the message is invalid.
    pub expires_at: u64,
    /// Tool, prompt or resource as the signer named it, if the method names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// In a response: SHA-256 of the request as the signer received it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_hash: Option<String>,
    /// Signer of the message before a gateway changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_signer: Option<FirstSigner>,
    /// Renames by gateways since then, first to last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<SignedHop>,
    /// The signature, in hexadecimal.
    pub signature: String,
}

/// Original signer of a message that a gateway changed and signed again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FirstSigner {
    /// Id of the signer's key.
    pub key_id: String,
    /// Signature over the original message.
    pub signature: String,
}

/// A [`Hop`] as carried by a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedHop {
    /// Name as the gateway received it.
    pub from: String,
    /// Name as the gateway sent it.
    pub to: String,
    /// Id of the gateway's key.
    pub key_id: String,
    /// Algorithm of the signature.
    pub algorithm: String,
    /// The signature, in hexadecimal.
    pub signature: String,
}

impl MessageSignature {
    /// Parses the signature that a message carries.
    pub(super) fn of(envelope: &Envelope) -> Result<Option<Self>, VerifyError> {
        let owner = envelope.params().or_else(|| envelope.result()).or_else(|| envelope.error()).unwrap_or_default();
        let Some(place) = json::path(owner, &[meta::META, META_SIGNATURE]) else { return Ok(None) };
        let text = place.of(owner);
        if text.len() > MAX_BYTES {
            return Err(VerifyError::Malformed(format!("it has {} bytes; {MAX_BYTES} are allowed", text.len())));
        }
        let read: Self = serde_json::from_slice(text).map_err(|error| VerifyError::Malformed(error.to_string()))?;
        if !NONCE.contains(&read.nonce.len()) {
            return Err(VerifyError::Malformed("the nonce has 8 to 128 characters".to_owned()));
        }
        Ok(Some(read))
    }

    /// Serializes the signature as JSON.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<Hop> for SignedHop {
    fn from(hop: Hop) -> Self {
        let signature = hex(&hop.signature);
        Self { from: hop.from, to: hop.to, key_id: hop.key_id, algorithm: hop.algorithm, signature }
    }
}

impl From<&SignedHop> for Hop {
    fn from(hop: &SignedHop) -> Self {
        Self {
            from: hop.from.clone(),
            to: hop.to.clone(),
            key_id: hop.key_id.clone(),
            algorithm: hop.algorithm.clone(),
            // Invalid hexadecimal becomes an empty signature, which never verifies.
            signature: unhex(&hop.signature).unwrap_or_default(),
        }
    }
}
