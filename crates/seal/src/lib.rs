//! Signed messages and tamper-evident records.
//!
//! A signature covers bytes. JSON and protobuf both have many encodings of the same data, so this crate defines a
//! [canonical] form in CBOR that every language computes alike, in two named [profiles](Profile), and Ed25519
//! [keys](SigningKey) that sign it.
//!
//! - [`McpRequest`] and [`McpResponse`] carry any MCP message as protobuf: [`serialize_request`],
//!   [`deserialize_request`].
//! - [`prepare_request_for_signing`] returns the bytes to sign, [`verify_signature`] verifies them, and [`validate`]
//!   checks everything else: time, trust, replay, purpose, permissions.
//! - [`message_from_json`] and [`message_to_json`] convert JSON-RPC, byte for byte.
//! - [`signed_json`] does the same for messages that stay JSON.
//! - [`canonical`] is for everything else that is hashed or signed: tapes, audit logs.
//! - [`AeadKey`] encrypts data that must come back unmodified.
//! - [`Head`] signs a position in the hash chain of a growing record.
//! - [`keys`] reads and writes key files.
//!
//! This crate has no clock and no state: times are arguments, and nonces are stored in a [`NonceMemory`]. Only
//! [`keys::files`] accesses files, and only [`SigningKey::generate`] and [`AeadKey`] need randomness.
//!
//! # A signed request
//!
//! ```
//! use bytes::Bytes;
//! use signalbox_seal::{
//!     CryptoSignature, McpRequest, PurposeDna, RequestorIdentity, SigningKey, Timestamp, deserialize_request,
//!     prepare_request_for_signing, serialize_request, verify_signature,
//! };
//!
//! let key_pair = SigningKey::generate()?;
//! let public_key = key_pair.verifying_key().as_bytes();
//!
//! // Original request, without a signature
//! let mut request = McpRequest {
//!     request_id: "request-1".to_string(),
//!     mcp_version: "2025-11-25".to_string(),
//!     timestamp: Some(Timestamp { seconds: 1_790_000_000, nanos: 0 }),
//!     requestor_identity: Some(RequestorIdentity {
//!         pseudonym_id: "ada".to_string(),
//!         public_key: Bytes::copy_from_slice(public_key),
//!         ..Default::default()
//!     }),
//!     purpose_dna: Some(PurposeDna::default()),
//!     ..Default::default()
//! };
//!
//! // Prepare for signing (this creates a canonical byte representation)
//! let canonical_bytes = prepare_request_for_signing(&request)?;
//!
//! // Sign the canonical bytes
//! let signature = key_pair.sign_prepared(&canonical_bytes)?;
//!
//! // Add signature to request
//! request.signature = Some(CryptoSignature {
//!     key_id: "key-1".to_string(),
//!     algorithm: "Ed25519".to_string(),
//!     signature: Bytes::copy_from_slice(signature.as_ref()),
//! });
//!
//! // Over the wire
//! let bytes = serialize_request(&request)?;
//! let signed_request = deserialize_request(&bytes)?;
//!
//! // Later, for verification:
//! let verification_bytes = prepare_request_for_signing(&signed_request)?;
//! let is_valid = verify_signature(public_key, &verification_bytes, signature.as_ref(), "Ed25519")?;
//! assert!(is_valid);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Anything else
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

#![warn(missing_docs)]

mod aead;
pub mod canonical;
mod domain;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod hash;
mod hop;
mod key_set;
pub mod keys;
mod message;
mod message_error;
mod nonces;
mod prepare;
mod profile;
pub mod proto;
mod signature;
pub mod signed_json;
mod signed_params;
mod signing_key;
mod struct_json;
mod tape_seal;
mod time_window;
mod transcode;
pub mod validate;
mod verifying_key;

pub use aead::{AEAD_KEY_BYTES, AEAD_OVERHEAD, AeadKey};
pub use domain::{Domain, UnknownDomain};
pub use hash::{sha256, sha256_of};
pub use hop::{Hop, HopError, MAX_HOPS, SignHopError, follow_hops};
pub use key_set::{KeyConflict, KeyRole, KeySet, RotateError, TrustError, TrustedKey, UnknownRole};
pub use message::{MessageLimits, deserialize_request, deserialize_response, serialize_request, serialize_response};
pub use message_error::MessageError;
pub use nonces::{NonceBook, NonceMemory, NonceVerdict};
pub use prepare::{
    prepare_request_for_signing, prepare_response_for_signing, verify_request, verify_response, verify_signature,
};
pub use profile::{Profile, UnknownProfile};
pub use prost_types::{Struct, Timestamp};
pub use proto::{
    CryptoSignature, McpMessage, McpRequest, McpResponse, Permission, PermissionStatus, PurposeDna, RequestorIdentity,
};
pub use signalbox_wire::hex::{hex, unhex};
pub use signature::{ALGORITHM, BadSignature, SIGNATURE_BYTES, Signature, is_supported_algorithm};
pub use signed_params::{META_SIGNATURE, subject};
pub use signing_key::{KeyError, SEED_BYTES, SigningKey};
pub use struct_json::{struct_from_json, struct_to_json};
pub use tape_seal::{
    CHAIN_VERSION, ChainHash, EntrySeal, HASH_BYTES, Head, HeadContent, HeadKind, SealDetails, SignHeadError, TapeSeal,
};
pub use time_window::{TimeWindow, WrongTime};
pub use transcode::{
    AnswerDetails, message_from_json, message_from_protobuf, message_to_json, message_to_protobuf, request_to_json,
    response_to_json, sign_answer,
};
pub use verifying_key::{PUBLIC_KEY_BYTES, VerifyingKey};
