//! Signs requests to backends that are gateways themselves.
//!
//! This interceptor is nearest to the backend, so that it sees requests as the other interceptors left them. A request
//! whose signature still fits gets a hop if it is renamed. A request that was changed, or was not signed in JSON, is
//! signed by this gateway, and the signature names the first signer.

use super::own_key::OwnKey;
use super::sealed_calls::{UnsignedReason, read, replaced, terms};
use super::signature_proof::{KEY_CLAIM, SIGNATURE_CLAIM};
use super::trusted_keys::TrustedKeys;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase};
use signalbox_seal::signed_json::{FirstSigner, SignatureVerifier, add_hop, sign_request, signature_of};
use signalbox_seal::{META_SIGNATURE, NonceBook, Profile, TimeWindow, subject};
use signalbox_wire::Envelope;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Interceptor that signs toward other gateways.
pub struct SealedForwards {
    pub key: Arc<OwnKey>,
    /// Keys that this gateway trusts.
    pub keys: Arc<TrustedKeys>,
    /// Names of the backends that are gateways.
    pub backends: BTreeSet<String>,
}

impl SealedForwards {
    fn sealed(&self, case: &Case<'_>) -> Result<Option<Envelope>, UnsignedReason> {
        let message = case.message;
        let from = subject(message.method().unwrap_or_default(), message.params().unwrap_or_default());
        let to = case.exchange.and_then(|exchange| exchange.own_name.as_deref());
        let renamed = from.as_deref().zip(to).filter(|(from, to)| from != to);
        let mut bytes = message.bytes().clone();
        let key = self.key.get().ok_or(UnsignedReason::NoKey)?;
        let anew = !self.still_fits(message, case.unix_ms);
        if anew {
            let mut terms = terms(case.unix_ms).ok_or(UnsignedReason::NoRandomness)?;
            terms.first_signer = first_signer(case);
            bytes = sign_request(&bytes, key, &terms)?;
        }
        if let Some((from, to)) = renamed {
            bytes = add_hop(&bytes, key, from, to)?;
        }
        if anew || renamed.is_some() { read(bytes).map(Some) } else { Ok(None) }
    }

    /// Returns `true` if the message's own signature still fits it.
    fn still_fits(&self, message: &Envelope, now: u64) -> bool {
        if message.param_meta(META_SIGNATURE).is_none() {
            return false;
        }
        // The nonce was checked at arrival. Here it matters only whether the message was changed since.
        let (keys, nonces) = (self.keys.now(), NonceBook::new(1));
        let (window, profiles) = (TimeWindow::default(), &Profile::ALL);
        let verifier = SignatureVerifier { keys: &keys, window, nonces: &nonces, profiles };
        verifier.request(message.bytes(), now).is_ok()
    }
}

/// Returns the signer of a request before this gateway, from its JSON or from the protobuf that it arrived in.
fn first_signer(case: &Case<'_>) -> Option<FirstSigner> {
    if let Ok(Some(signature)) = signature_of(case.message.bytes()) {
        return Some(FirstSigner { key_id: signature.key_id, signature: signature.signature });
    }
    let claims = &case.caller.identity().claims;
    let claim = |name: &str| claims.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.to_string());
    Some(FirstSigner { key_id: claim(KEY_CLAIM)?, signature: claim(SIGNATURE_CLAIM)? })
}

impl Interceptor for SealedForwards {
    fn name(&self) -> &'static str {
        "seal_forward"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let ours = case.phase == Phase::Request && case.backend.is_some_and(|name| self.backends.contains(name));
        let sealed = if ours { self.sealed(case).transpose() } else { None };
        sealed.map_or_else(Judgement::pass, replaced)
    }

    fn is_idle(&self) -> bool {
        self.backends.is_empty()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request && !self.is_idle()
    }
}
