//! Verification of signatures in JSON messages.

use bytes::Bytes;
use signalbox_wire::{Envelope, Kind, Limits};

use super::form;
use super::message_signature::{FirstSigner, MessageSignature};
use super::verify_error::VerifyError;
use crate::domain::Domain;
use crate::hop::{Hop, HopError, follow_hops};
use crate::key_set::{KeyRole, KeySet, TrustedKey};
use crate::nonces::{NonceMemory, NonceVerdict};
use crate::profile::Profile;
use crate::signature::{Signature, is_supported_algorithm};
use crate::signed_params::subject;
use crate::time_window::TimeWindow;
use signalbox_wire::hex::hex;

const NANOS_PER_MILLI: u64 = 1_000_000;
const MILLIS_PER_SECOND: u64 = 1_000;

/// Verifier of signatures: trusted keys, tolerated time difference, and nonces.
#[derive(Copy, Clone)]
pub struct SignatureVerifier<'a> {
    /// Keys that the verifier trusts.
    pub keys: &'a KeySet,
    /// Tolerated age of a message, and how far it may be ahead.
    pub window: TimeWindow,
    /// Nonces of messages that were accepted.
    pub nonces: &'a dyn NonceMemory,
    /// Canonical profiles that are accepted.
    pub profiles: &'a [Profile],
}

/// Facts that a verified signature proves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedSignature {
    /// Principal of the signer.
    pub principal: String,
    /// Id of the signing key.
    pub key_id: String,
    /// Tool, prompt or resource as the signer named it.
    pub signed_name: Option<String>,
    /// Original signer before a gateway changed the message. The gateway asserts it; that signature is not verified
    /// again.
    pub first_signer: Option<FirstSigner>,
    /// Time of signing, in milliseconds since 1970.
    pub signed_at: u64,
    /// End of validity, in milliseconds since 1970.
    pub expires_at: u64,
    /// Nonce of the signature.
    pub nonce: String,
}

impl SignatureVerifier<'_> {
    /// Verifies a request or a notification, and stores its nonce. `now` is in milliseconds since 1970.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn request(&self, message: &[u8], now: u64) -> Result<VerifiedSignature, VerifyError> {
        let envelope = read(message)?;
        if !matches!(envelope.kind(), Kind::Request | Kind::Notification) {
            return Err(VerifyError::Malformed("the message is no request".to_owned()));
        }
        let signature = MessageSignature::of(&envelope)?.ok_or(VerifyError::Missing)?;
        let (key, bytes) = self.check(&envelope, &signature, Domain::Request, now)?;
        let name = subject(envelope.method().unwrap_or_default(), envelope.params().unwrap_or_default());
        let hops: Vec<Hop> = signature.hops.iter().map(Hop::from).collect();
        match (&signature.name, name) {
            (Some(signed), Some(name)) => {
                follow_hops(&hops, bytes.as_ref(), signed, &name, self.keys, seconds(now))?;
            }
            (None, None) if hops.is_empty() => {}
            (signed, name) => {
                let expected = signed.clone().unwrap_or_default();
                let found = name.unwrap_or_default().into_owned();
                return Err(HopError::Renamed { expected, found }.into());
            }
        }
        self.remember(&signature, now)?;
        Ok(verified(key, signature))
    }

    /// Verifies a response, and stores its nonce. `request_hash` is the SHA-256 of the request as it was sent, if the
    /// verifier knows it. `now` is in milliseconds since 1970.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn response(
        &self,
        message: &[u8],
        request_hash: Option<&[u8; 32]>,
        now: u64,
    ) -> Result<VerifiedSignature, VerifyError> {
        let envelope = read(message)?;
        if matches!(envelope.kind(), Kind::Request | Kind::Notification) {
            return Err(VerifyError::Malformed("the message is no response".to_owned()));
        }
        let signature = MessageSignature::of(&envelope)?.ok_or(VerifyError::Missing)?;
        let (key, _) = self.check(&envelope, &signature, Domain::Response, now)?;
        if request_hash.is_some_and(|hash| signature.request_hash.as_ref() != Some(&hex(hash))) {
            return Err(VerifyError::OtherRequest);
        }
        self.remember(&signature, now)?;
        Ok(verified(key, signature))
    }

    /// Runs the checks that requests and responses share: all but names, hashes and nonces.
    fn check(
        &self,
        envelope: &Envelope,
        signature: &MessageSignature,
        domain: Domain,
        now: u64,
    ) -> Result<(&TrustedKey, Signature), VerifyError> {
        let short = |text: &str| text.chars().take(64).collect::<String>();
        if !is_supported_algorithm(&signature.algorithm) {
            return Err(VerifyError::UnsupportedAlgorithm(short(&signature.algorithm)));
        }
        if signature.domain != domain.name() {
            return Err(VerifyError::WrongDomain { expected: domain.name(), found: short(&signature.domain) });
        }
        let profile: Profile =
            signature.profile.parse().map_err(|_| VerifyError::UnsupportedProfile(short(&signature.profile)))?;
        if !self.profiles.contains(&profile) {
            return Err(VerifyError::ProfileNotAccepted(profile));
        }
        let roles = [if domain == Domain::Request { KeyRole::Client } else { KeyRole::Server }, KeyRole::Gateway];
        let key = self.keys.trusted(&signature.key_id, &roles, seconds(now))?;
        self.window.check(nanos(signature.signed_at)?, Some(nanos(signature.expires_at)?), nanos(now)?)?;
        let bytes = Signature::from_hex(&signature.signature)
            .ok_or_else(|| VerifyError::Malformed("`signature` is 128 hexadecimal digits".to_owned()))?;
        // All checks above are cheap. The canonical form is not, and any sender can trigger it.
        if self.nonces.is_remembered(&signature.key_id, &signature.nonce, now) {
            return Err(VerifyError::Replayed);
        }
        let canonical = form::write(envelope, profile, signature)?;
        key.key.verify(profile, domain, &canonical, &bytes).map_err(|_| VerifyError::Tampered)?;
        Ok((key, bytes))
    }

    fn remember(&self, signature: &MessageSignature, now: u64) -> Result<(), VerifyError> {
        let behind = u64::try_from(self.window.behind.as_millis()).unwrap_or(u64::MAX);
        let until = signature.expires_at.min(signature.signed_at.saturating_add(behind));
        match self.nonces.remember(&signature.key_id, &signature.nonce, now, until) {
            NonceVerdict::New => Ok(()),
            NonceVerdict::Replayed => Err(VerifyError::Replayed),
            NonceVerdict::Full => Err(VerifyError::TooManyNonces(signature.key_id.clone())),
        }
    }
}

fn verified(key: &TrustedKey, signature: MessageSignature) -> VerifiedSignature {
    VerifiedSignature {
        principal: key.name.clone(),
        key_id: signature.key_id,
        signed_name: signature.name,
        first_signer: signature.first_signer,
        signed_at: signature.signed_at,
        expires_at: signature.expires_at,
        nonce: signature.nonce,
    }
}

fn read(message: &[u8]) -> Result<Envelope, VerifyError> {
    let message = Bytes::copy_from_slice(message);
    Envelope::read(message, &Limits::default()).map_err(|error| VerifyError::Malformed(error.to_string()))
}

fn seconds(millis: u64) -> i64 {
    i64::try_from(millis / MILLIS_PER_SECOND).unwrap_or(i64::MAX)
}

fn nanos(millis: u64) -> Result<i64, VerifyError> {
    let nanos = millis.checked_mul(NANOS_PER_MILLI).and_then(|nanos| i64::try_from(nanos).ok());
    nanos.ok_or_else(|| VerifyError::Malformed("a moment is beyond the year 2262".to_owned()))
}
