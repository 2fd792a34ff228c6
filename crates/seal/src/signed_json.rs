//! Messages that stay JSON, with a signature in `_meta` under [`META_SIGNATURE`](crate::META_SIGNATURE).
//!
//! The signature covers a map in the canonical profile that it names, in the frame of its domain:
//!
//! | key | of | value |
//! |---|---|---|
//! | `method`, `params` | requests | the method, and the params without the name and what gateways change on the way |
//! | `name` | requests | the tool, prompt or resource as the signer named it |
//! | `result` or `error` | responses | without what gateways change on the way |
//! | `request_hash` | responses | SHA-256 of the request as the signer received it |
//! | `key_id`, `nonce`, `signed_at`, `expires_at` | both | of the signature; moments in milliseconds since 1970 |
//! | `first_signer` | both | who signed before, where a gateway changed the message and signed it anew |
//! | `other_members` | both | members of the message that JSON-RPC does not know |
//!
//! Not signed are the JSON-RPC id, the progress token, trace context, and the `_meta` in which a message of 2026-07-28
//! describes its sender. Errors carry `_meta` inside `error`.
//!
//! ```
//! use signalbox_seal::signed_json::{SignatureTerms, SignatureVerifier, sign_request};
//! use signalbox_seal::{KeyRole, KeySet, NonceBook, Profile, SigningKey, TimeWindow, TrustedKey};
//!
//! let key = SigningKey::generate()?;
//! let call = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#;
//! let signed = sign_request(call, &key, &SignatureTerms::new("9f1c2a77e0b34d58", 1_000_000, 1_060_000))?;
//!
//! let mut keys = KeySet::new();
//! keys.add(TrustedKey::new(key.verifying_key().clone(), "ada", &[KeyRole::Client]))?;
//! let nonces = NonceBook::new(1_000);
//! let (window, profiles) = (TimeWindow::default(), &Profile::ALL);
//! let verifier = SignatureVerifier { keys: &keys, window, nonces: &nonces, profiles };
//! assert_eq!(verifier.request(&signed, 1_000_500)?.principal, "ada");
//! assert_eq!(verifier.request(&signed, 1_000_500).unwrap_err().to_string(), "the message was seen before");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod form;
mod message_signature;
mod verify;
mod verify_error;

use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Kind, Limits, meta};

pub use message_signature::{FirstSigner, MessageSignature, SignedHop};
pub use verify::{SignatureVerifier, VerifiedSignature};
pub use verify_error::VerifyError;

use crate::canonical::EncodeError;
use crate::domain::Domain;
use crate::hop::{Hop, SignHopError};
use crate::profile::Profile;
use crate::signature::ALGORITHM;
use crate::signed_params::{META_SIGNATURE, subject};
use crate::signing_key::{KeyError, SigningKey};

/// Parameters of a signature that the signer chooses. Times are in milliseconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignatureTerms {
    /// Text of 8 to 128 characters that this key has never used before.
    pub nonce: String,
    /// Time at which the message is signed.
    pub signed_at: u64,
    /// Time from which the message is invalid.
    pub expires_at: u64,
    /// Canonical profile to sign.
    pub profile: Profile,
    /// In a response: SHA-256 of the request as it was received.
    pub request_hash: Option<[u8; 32]>,
    /// Signer of the message before it was changed.
    pub first_signer: Option<FirstSigner>,
}

impl SignatureTerms {
    /// Creates terms for `mcp-cbor/2`, without any optional part.
    #[must_use]
    pub fn new(nonce: &str, signed_at: u64, expires_at: u64) -> Self {
        let nonce = nonce.to_owned();
        Self { nonce, signed_at, expires_at, profile: Profile::Two, request_hash: None, first_signer: None }
    }
}

/// Error when a message cannot be signed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The message is not JSON-RPC, or of another kind.
    #[error("not a {expected} of JSON-RPC: {why}")]
    NotAMessage {
        /// Expected kind of message.
        expected: &'static str,
        /// Reason why it is not one.
        why: String,
    },
    /// A part of the message has no canonical form.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The key cannot sign.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The nonce has the wrong length.
    #[error("a nonce has 8 to 128 characters, not {0}")]
    Nonce(usize),
    /// `params` or `_meta` is not an object, so a signature cannot be added.
    #[error("`{0}` is no object, so it cannot carry a signature")]
    NoPlace(&'static str),
    /// The message carries no signature to add a hop to.
    #[error("the message carries no signature")]
    Unsigned,
}

impl From<SignHopError> for SignError {
    fn from(error: SignHopError) -> Self {
        match error {
            SignHopError::Encode(error) => Self::Encode(error),
            SignHopError::Key(error) => Self::Key(error),
        }
    }
}

/// Signs a request or notification, in the `_meta` of its params. Replaces an existing signature.
///
/// # Errors
/// If the message is not a request, or cannot be signed.
pub fn sign_request(message: &[u8], key: &SigningKey, terms: &SignatureTerms) -> Result<Bytes, SignError> {
    let envelope = read(message, "request")?;
    if !matches!(envelope.kind(), Kind::Request | Kind::Notification) {
        return Err(not_a("request", "it is a response"));
    }
    let name = subject(envelope.method().unwrap_or_default(), envelope.params().unwrap_or_default());
    let name = name.map(std::borrow::Cow::into_owned);
    sign(&envelope, Domain::Request, key, terms, name)
}

/// Signs a response, in the `_meta` of its result or error. Replaces an existing signature.
///
/// # Errors
/// If the message is not a response, or cannot be signed.
pub fn sign_response(message: &[u8], key: &SigningKey, terms: &SignatureTerms) -> Result<Bytes, SignError> {
    let envelope = read(message, "response")?;
    if matches!(envelope.kind(), Kind::Request | Kind::Notification) {
        return Err(not_a("response", "it is a request"));
    }
    sign(&envelope, Domain::Response, key, terms, None)
}

/// Parses the signature that a message carries, without verifying it. `None` if it carries none.
///
/// # Errors
/// If the message or the signature is malformed.
pub fn signature_of(message: &[u8]) -> Result<Option<MessageSignature>, VerifyError> {
    let envelope = read(message, "message").map_err(|error| VerifyError::Malformed(error.to_string()))?;
    MessageSignature::of(&envelope)
}

/// Adds a hop to a request: this gateway received it under the name `from` and sends it under `to`. It does not change
/// the name in the params, which is up to the gateway.
///
/// # Errors
/// If the message carries no signature.
pub fn add_hop(message: &[u8], key: &SigningKey, from: &str, to: &str) -> Result<Bytes, SignError> {
    let envelope = read(message, "request")?;
    let mut signature = MessageSignature::of(&envelope).ok().flatten().ok_or(SignError::Unsigned)?;
    let latest = signature.hops.last().map_or(&signature.signature, |hop| &hop.signature);
    let previous = signalbox_wire::hex::unhex(latest).ok_or(SignError::Unsigned)?;
    let hop = Hop::sign(key, &previous, from, to)?;
    signature.hops.push(hop.into());
    carry(&envelope, &signature)
}

fn sign(
    envelope: &Envelope,
    domain: Domain,
    key: &SigningKey,
    terms: &SignatureTerms,
    name: Option<String>,
) -> Result<Bytes, SignError> {
    if !message_signature::NONCE.contains(&terms.nonce.len()) {
        return Err(SignError::Nonce(terms.nonce.len()));
    }
    let mut signature = MessageSignature {
        key_id: key.id().to_owned(),
        algorithm: ALGORITHM.to_owned(),
        profile: terms.profile.name().to_owned(),
        domain: domain.name().to_owned(),
        nonce: terms.nonce.clone(),
        signed_at: terms.signed_at,
        expires_at: terms.expires_at,
        name,
        request_hash: terms.request_hash.map(|hash| signalbox_wire::hex::hex(&hash)),
        first_signer: terms.first_signer.clone(),
        hops: Vec::new(),
        signature: String::new(),
    };
    let canonical = form::write(envelope, terms.profile, &signature)?;
    signature.signature = key.sign(terms.profile, domain, &canonical)?.to_hex();
    carry(envelope, &signature)
}

fn read(message: &[u8], expected: &'static str) -> Result<Envelope, SignError> {
    let message = Bytes::copy_from_slice(message);
    Envelope::read(message, &Limits::default()).map_err(|error| not_a(expected, &error.to_string()))
}

fn not_a(expected: &'static str, why: &str) -> SignError {
    SignError::NotAMessage { expected, why: why.to_owned() }
}

/// Adds the signature to the message.
fn carry(envelope: &Envelope, signature: &MessageSignature) -> Result<Bytes, SignError> {
    let bytes = envelope.bytes();
    let text = signature.to_json();
    let (owner, name) = if envelope.method().is_some() {
        (envelope.params_span(), "params")
    } else {
        (envelope.result_span().or_else(|| envelope.error_span()), "result")
    };
    let mut edits = Edits::new();
    let Some(owner) = owner else {
        let params = format!(r#"{{"{}":{{"{META_SIGNATURE}":{text}}}}}"#, meta::META);
        edits.set_member(bytes, envelope.object_span(), "params", params.as_bytes());
        return Ok(edits.apply(bytes));
    };
    if owner.of(bytes).first() != Some(&b'{') {
        return Err(SignError::NoPlace(name));
    }
    match signalbox_wire::json::member(owner.of(bytes), meta::META).map(|span| span.shift(owner.start)) {
        Some(place) if place.of(bytes).first() == Some(&b'{') => {
            edits.set_member(bytes, place, META_SIGNATURE, text.as_bytes());
        }
        Some(_) => return Err(SignError::NoPlace(meta::META)),
        None => {
            let value = format!(r#"{{"{META_SIGNATURE}":{text}}}"#);
            edits.set_member(bytes, owner, meta::META, value.as_bytes());
        }
    }
    Ok(edits.apply(bytes))
}

#[cfg(test)]
mod tests;
