//! A signature as a message carries it.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use signalbox_wire::{Envelope, json, meta};

use super::verify_error::VerifyError;
use crate::hop::Hop;
use crate::signed_params::META_SIGNATURE;
use signalbox_wire::hex::{hex, unhex};

/// How long a nonce may be.
pub(super) const NONCE: RangeInclusive<usize> = 8..=128;
/// Largest signature with all its hops, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// The value under [`META_SIGNATURE`]. Moments are milliseconds since 1970; signatures and hashes are hexadecimal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageSignature {
    /// The id of the key.
    pub key_id: String,
    /// `Ed25519`, in whatever case.
    pub algorithm: String,
    /// The canonical form that is signed.
    pub profile: String,
    /// What the signature is for: `request` or `response`.
    pub domain: String,
    /// A text that the key never used before.
    pub nonce: String,
    /// When the message was signed.
    pub signed_at: u64,
    /// When it stops being valid.
    pub expires_at: u64,
    /// The tool, prompt or resource as the signer named it, where the method names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of a response: SHA-256 of the request as the signer received it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_hash: Option<String>,
    /// Who signed the message before a gateway changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_signer: Option<FirstSigner>,
    /// What gateways renamed since, first to last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<SignedHop>,
    /// The signature.
    pub signature: String,
}

/// Who signed a message before a gateway changed it and signed it anew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FirstSigner {
    /// The id of the key.
    pub key_id: String,
    /// The signature, over the message as it was.
    pub signature: String,
}

/// A [`Hop`] as a message carries it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedHop {
    /// The name as the gateway received it.
    pub from: String,
    /// The name as the gateway sent it on.
    pub to: String,
    /// The id of the gateway's key.
    pub key_id: String,
    /// The algorithm of the signature.
    pub algorithm: String,
    /// The signature.
    pub signature: String,
}

impl MessageSignature {
    /// The signature that a message carries.
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

    /// As JSON text.
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
            // What is no hexadecimal text is no signature either, and fits nothing.
            signature: unhex(&hop.signature).unwrap_or_default(),
        }
    }
}
