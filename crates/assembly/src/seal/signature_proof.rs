//! Identifies callers by the signatures of their messages.

use super::nonce_files::NonceFiles;
use super::own_key::OwnKey;
use super::stated_limits::{StatedLimits, purpose_claims};
use super::trusted_keys::TrustedKeys;
use arc_swap::ArcSwap;
use bytes::Bytes;
use signalbox_engine::caller::Identity;
use signalbox_engine::message_proof::MessageProof;
use signalbox_engine::standing::Standing;
use signalbox_engine::{Caller, Fault, FaultKind, Principal, Proof};
use signalbox_govern::directory::{Directory, DirectoryClaims};
use signalbox_seal::proto::mcp_message::Message as Carried;
use signalbox_seal::signed_json::{SignatureVerifier, VerifyError};
use signalbox_seal::validate::{SecurityError, ValidationError, ValidationMode, Validator};
use signalbox_seal::{
    META_SIGNATURE, McpMessage, McpRequest, Profile, TimeWindow, hex, message_from_protobuf, message_to_protobuf,
    request_to_json, sign_answer,
};
use signalbox_wire::{Envelope, timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

/// Caller claim that names its key.
pub const KEY_CLAIM: &str = "key";
/// Caller claim that holds its signature, if the message itself does not carry it.
pub const SIGNATURE_CLAIM: &str = "signature";
/// Caller claim that names the key that signed before a gateway changed the message.
pub const FIRST_SIGNER_CLAIM: &str = "first_signer";

/// Hint for a refusal because of a profile that the configuration leaves out.
const HOW_TO_ACCEPT: &str = " (see `seal.profiles`)";

/// Verifies the signatures of messages.
pub struct SignatureProof {
    /// Keys that this gateway trusts.
    pub keys: Arc<TrustedKeys>,
    /// Users and groups that signers may belong to.
    pub directory: Arc<ArcSwap<Directory>>,
    /// Nonces that were seen already.
    pub nonces: NonceFiles,
    /// Tolerated difference between clocks, and maximum age.
    pub window: TimeWindow,
    /// Extent of the validation of protobuf requests.
    pub mode: ValidationMode,
    /// Accepted canonical forms (`seal.profiles`).
    pub profiles: Vec<Profile>,
    /// Set once any message was signed.
    pub seen: Arc<AtomicBool>,
    /// Counters for the limits that signers state in their requests.
    pub stated: StatedLimits,
    /// Key of this gateway, which signs answers.
    pub own: Arc<OwnKey>,
    /// True if answers to unsigned requests are signed too.
    pub sign_answers: bool,
}

impl MessageProof for SignatureProof {
    fn confirm(&self, caller: &Caller, message: &Envelope) -> Result<Option<Caller>, Fault> {
        if message.param_meta(META_SIGNATURE).is_none() {
            return Ok(None);
        }
        self.seen.store(true, Ordering::Relaxed);
        if self.mode == ValidationMode::Full {
            let text = "`seal.validate = \"full\"` asks for purpose and permissions, which only protobuf carries";
            return Err(refuse("validation_needs_protobuf", text));
        }
        let keys = self.keys.now();
        let verifier =
            SignatureVerifier { keys: &keys, window: self.window, nonces: &self.nonces, profiles: &self.profiles };
        let now = timestamp::millis_of(SystemTime::now());
        let verified = verifier.request(message.bytes(), now).map_err(|error| refuse(error.reason(), &told(&error)))?;
        let mut claims = vec![(KEY_CLAIM.into(), verified.key_id.into())];
        claims.extend(verified.first_signer.map(|first| (FIRST_SIGNER_CLAIM.into(), first.key_id.into())));
        self.signer(caller, &verified.principal, claims).map(Some)
    }

    fn confirm_protobuf(&self, caller: &Caller, message: &Bytes) -> Result<Option<Caller>, Fault> {
        let unreadable = |error: signalbox_seal::MessageError| refuse("signature_malformed", &error.to_string());
        let message = message_from_protobuf(message.clone()).map_err(unreadable)?;
        let Some(Carried::Request(request)) = message.message else { return Ok(None) };
        let Some(signature) = &request.signature else { return Ok(None) };
        self.seen.store(true, Ordering::Relaxed);
        if carries_second(&request) {
            return Err(refuse("signature_malformed", "the message is signed both as protobuf and in `_meta`"));
        }
        let keys = self.keys.now();
        let validator = Validator::new(self.mode, &keys, &self.nonces);
        let validator = Validator { window: self.window, profiles: &self.profiles, ..validator };
        let now = i64::try_from(timestamp::nanos_of(SystemTime::now())).unwrap_or(i64::MAX);
        let principal = validator.request(&request, now).map_err(|error| match error {
            ValidationError::Security(SecurityError::ProfileNotAccepted(_)) => {
                refuse(error.reason(), &format!("{error}{HOW_TO_ACCEPT}"))
            }
            error => refuse(error.reason(), &error.to_string()),
        })?;
        let mut claims = vec![
            (KEY_CLAIM.into(), signature.key_id.as_str().into()),
            (SIGNATURE_CLAIM.into(), hex(&signature.signature).into()),
        ];
        if self.mode == ValidationMode::Full {
            self.stated.take(principal, &request, Instant::now())?;
            claims.extend(purpose_claims(&request));
        }
        self.signer(caller, principal, claims).map(Some)
    }

    fn refresh(&self) {
        self.keys.end_untrusted(timestamp::seconds_of(SystemTime::now()));
    }

    fn sign_protobuf(&self, answer: &Bytes, to_signed: bool) -> Option<Bytes> {
        if !to_signed && !self.sign_answers {
            return None;
        }
        let read = message_from_protobuf(answer.clone()).inspect_err(|error| {
            let bytes = answer.len();
            tracing::warn!(%error, bytes, "an answer as protobuf cannot be signed and goes on without a signature");
        });
        let Carried::Response(mut response) = read.ok()?.message? else { return None };
        let signed = sign_answer(&mut response, self.own.get()?);
        if let Err(error) = signed {
            tracing::warn!(%error, "an answer as protobuf cannot be signed and goes on without a signature");
            return None;
        }
        Some(message_to_protobuf(&McpMessage { message: Some(Carried::Response(response)) }, false).into())
    }
}

/// Returns the text for a refused JSON signature, with the setting that would accept it.
fn told(error: &VerifyError) -> String {
    match error {
        VerifyError::ProfileNotAccepted(_) => format!("{error}{HOW_TO_ACCEPT}"),
        _ => error.to_string(),
    }
}

/// Returns `true` if the request carries another signature in its JSON, which would go unchecked.
fn carries_second(request: &McpRequest) -> bool {
    let message = request_to_json(request).ok().and_then(|message| Envelope::parse(message).ok());
    message.is_some_and(|message| message.param_meta(META_SIGNATURE).is_some())
}

impl SignatureProof {
    /// Returns the caller that a signature proves. The first claim is its key. A connection that proved a caller must
    /// have proved the same one; its standing then counts until the key is no longer trusted.
    fn signer(&self, caller: &Caller, principal: &str, claims: Vec<(Box<str>, Box<str>)>) -> Result<Caller, Fault> {
        let known = caller.identity();
        let proved = known.proof != Proof::Unproved;
        if proved && known.principal.as_str() != principal {
            let text = format!("the connection proves {}, the signature proves {principal}", known.principal);
            return Err(refuse("other_principal", &text));
        }
        let key = claims.first().and_then(|(_, id)| self.keys.credential(id));
        let standing = match &known.standing {
            Some(standing) => Arc::new(Standing {
                credential: match (&standing.credential, key) {
                    (Some(shown), Some(key)) => Some(key.for_request(shown)),
                    (shown, key) => key.or_else(|| shown.clone()),
                },
                ..Standing::clone(standing)
            }),
            None => self.directory.load().standing(principal, DirectoryClaims::default(), key),
        };
        let (principal, proof, standing) = (Principal::named(principal), Proof::Signature, Some(standing));
        Ok(Caller::new(Identity { principal, proof, claims, standing, ..known.clone() }))
    }
}

/// Returns the fault of a refused signature.
pub(super) fn refuse(reason: &'static str, text: &str) -> Fault {
    Fault::new(FaultKind::Signature(reason), format!("the signature is refused: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal_folder::{SealFolder, SealFolderError};
    use signalbox_seal::signed_json::{SignatureTerms, sign_request};
    use signalbox_seal::{KeyRole, SigningKey, TrustedKey};
    use std::time::Duration;

    /// What is said to a call that Ada signed and this caller sent.
    fn said(caller: &Caller, mode: ValidationMode) -> Result<String, Fault> {
        let data = tempfile::tempdir().unwrap();
        let folder = SealFolder::of(data.path());
        let ada = SigningKey::generate().unwrap();
        let trusted = TrustedKey::new(ada.verifying_key().clone(), "local:ada", &[KeyRole::Client]);
        folder.change_key_set(|keys| keys.add(trusted).map_err(SealFolderError::from)).unwrap();
        let proof = SignatureProof {
            keys: Arc::new(TrustedKeys::new(&folder)),
            directory: Arc::default(),
            nonces: NonceFiles::new(folder.nonce_folder(), 10),
            window: TimeWindow::around(Duration::from_secs(300)),
            mode,
            profiles: vec![Profile::Two],
            seen: Arc::default(),
            stated: StatedLimits::default(),
            own: Arc::new(OwnKey::new(&folder)),
            sign_answers: false,
        };
        let now = timestamp::millis_of(SystemTime::now());
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let signed = sign_request(call, &ada, &SignatureTerms::new("nonce-0001", now, now + 1_000)).unwrap();
        let unsigned = Envelope::parse(Bytes::from_static(call)).unwrap();
        assert_eq!(proof.confirm(caller, &unsigned), Ok(None));
        assert!(!proof.seen.load(Ordering::Relaxed));
        let proved = proof.confirm(caller, &Envelope::parse(signed).unwrap());
        assert!(proof.seen.load(Ordering::Relaxed));
        let proved = proved?.unwrap();
        assert_eq!(proved.identity().proof, Proof::Signature);
        assert_eq!(proved.identity().claims, [(KEY_CLAIM.into(), ada.id().into())]);
        Ok(proved.principal().to_string())
    }

    #[test]
    fn connection_and_signature_must_prove_the_same() {
        let light = |caller| said(&caller, ValidationMode::Light);
        assert_eq!(light(Caller::anonymous("http")).unwrap(), "local:ada");
        assert_eq!(light(Caller::local("ada", "stdio")).unwrap(), "local:ada");
        assert_eq!(light(Caller::local("bob", "stdio")).unwrap_err().reason(), "other_principal");
        let certificate = Caller::of(Principal::certificate("ab"), Proof::Certificate, "http");
        assert_eq!(light(certificate).unwrap_err().reason(), "other_principal");
    }

    #[test]
    fn json_carries_no_purpose_that_could_be_validated_in_full() {
        let fault = said(&Caller::anonymous("http"), ValidationMode::Full).unwrap_err();
        assert_eq!(fault.reason(), "validation_needs_protobuf");
    }
}
