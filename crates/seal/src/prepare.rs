//! Canonical form of messages, as it is signed.
//!
//! A field that is not written here is not signed. `tests/fields.rs` walks the definition of the messages and fails if
//! one is forgotten. Intentionally not signed are the signature itself, the hops (each has its own signature) and the
//! JSON-RPC id.
//!
//! Empty texts, bytes and lists and unspecified enums are omitted, because protobuf does not distinguish them from
//! absent ones. The permissions of a request are always written.

pub(crate) mod fields;
mod request;
mod response;

use crate::domain::Domain;
use crate::hop::{Hop, HopError, follow_hops};
use crate::key_set::KeySet;
use crate::message_error::MessageError;
use crate::profile::{Profile, UnknownProfile};
use crate::proto::mcp_request::Params;
use crate::proto::{McpRequest, McpResponse};
use crate::signature::{BadSignature, Signature, is_supported_algorithm};
use crate::signed_params::{struct_subject, subject};
use crate::verifying_key::VerifyingKey;

/// Returns the bytes of a request to sign: its canonical form without the signature.
///
/// In `mcp-cbor/1`, which is also used if the request names no profile, these are the CBOR alone. A request cannot be
/// mistaken for a response there, because each has fields that the other never has. In `mcp-cbor/2` the CBOR is in the
/// frame of [`Domain::frame`].
///
/// # Errors
/// If a required field is missing, or a part of the request has no canonical form.
pub fn prepare_request_for_signing(request: &McpRequest) -> Result<Vec<u8>, MessageError> {
    request::write(request)
}

/// Returns the bytes of a response to sign: its canonical form without the signature. See
/// [`prepare_request_for_signing`].
///
/// # Errors
/// If the timestamp is missing, or a part of the response has no canonical form.
pub fn prepare_response_for_signing(response: &McpResponse) -> Result<Vec<u8>, MessageError> {
    response::write(response)
}

/// Returns true if a signature over prepared bytes was made with the private key of `public_key`.
///
/// # Errors
/// If the algorithm is not Ed25519 (in any case), or if the key or the signature is malformed. A well-formed signature
/// that does not match is `false`, not an error.
pub fn verify_signature(
    public_key: &[u8],
    prepared: &[u8],
    signature: &[u8],
    algorithm: &str,
) -> Result<bool, MessageError> {
    let signature = check_signature(signature, algorithm)?;
    let key = VerifyingKey::from_bytes(public_key)?;
    Ok(key.verify_prepared(prepared, &signature).is_ok())
}

/// Parses a signature of a supported algorithm.
pub(crate) fn check_signature(signature: &[u8], algorithm: &str) -> Result<Signature, MessageError> {
    if !is_supported_algorithm(algorithm) {
        return Err(MessageError::UnsupportedAlgorithm(algorithm.chars().take(64).collect()));
    }
    Ok(Signature::from_bytes(signature)?)
}

/// Verifies the signature of a request with the public key that the request itself names. It does not check that the
/// receiver trusts that key: see [`validate`](crate::validate).
///
/// # Errors
/// If the signature or the key is missing, the signature does not match, or the name was changed in transit.
pub fn verify_request(request: &McpRequest) -> Result<(), MessageError> {
    let signature = request.signature.as_ref().ok_or(MessageError::MissingField("signature"))?;
    let identity = request.requestor_identity.as_ref().ok_or(MessageError::MissingField("requestor_identity"))?;
    check_signature(&signature.signature, &signature.algorithm)?;
    let prepared = prepare_request_for_signing(request)?;
    fits(verify_signature(&identity.public_key, &prepared, &signature.signature, &signature.algorithm)?)?;
    Ok(follow_names(request, &KeySet::new(), 0)?)
}

/// Verifies that hops of trusted gateways lead from the signed name to the one in the params. `now` is in seconds since
/// 1970. The caller verifies the signature of the request.
pub(crate) fn follow_names(request: &McpRequest, keys: &KeySet, now: i64) -> Result<(), HopError> {
    let name = match &request.params {
        Some(Params::ParamsJson(params)) => subject(&request.method, params),
        Some(Params::ParamsStruct(params)) => struct_subject(&request.method, params).map(Into::into),
        None => None,
    };
    let name = name.unwrap_or_default();
    let signed = if request.signed_name.is_empty() { name.as_ref() } else { &request.signed_name };
    let signature = request.signature.as_ref().map(|signature| signature.signature.as_ref()).unwrap_or_default();
    let hops: Vec<Hop> = request.hops.iter().map(Hop::from).collect();
    follow_hops(&hops, signature, signed, &name, keys, now)
}

/// Verifies the signature of a response with the key of the expected responder.
///
/// # Errors
/// If there is no signature, or it does not match.
pub fn verify_response(response: &McpResponse, key: &VerifyingKey) -> Result<(), MessageError> {
    let signature = response.signature.as_ref().ok_or(MessageError::MissingField("signature"))?;
    check_signature(&signature.signature, &signature.algorithm)?;
    let prepared = prepare_response_for_signing(response)?;
    fits(verify_signature(key.as_bytes(), &prepared, &signature.signature, &signature.algorithm)?)
}

fn fits(fits: bool) -> Result<(), MessageError> {
    if fits { Ok(()) } else { Err(BadSignature::Mismatch.into()) }
}

/// Parses the profile that a message names. A message without one uses `mcp-cbor/1`.
pub(crate) fn profile_of(name: &str) -> Result<Profile, UnknownProfile> {
    if name.is_empty() { Ok(Profile::One) } else { name.parse() }
}

/// Returns the profile that a message names, and the prefix of its CBOR.
fn frame(profile: &str, domain: &str, expected: Domain) -> Result<(Profile, Vec<u8>), MessageError> {
    if !domain.is_empty() && domain != expected.name() {
        let found = domain.chars().take(64).collect();
        return Err(MessageError::WrongDomain { expected: expected.name(), found });
    }
    let profile = profile_of(profile)?;
    let prefix = match profile {
        Profile::One => Vec::new(),
        Profile::Two => expected.prefix(profile).into_bytes(),
    };
    Ok((profile, prefix))
}
