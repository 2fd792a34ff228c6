//! Demands signatures of requests, and signs the gateway's answers.
//!
//! This interceptor is nearest to the client, so that it sees requests as they arrived and answers as they leave.

use super::own_key::OwnKey;
use super::signature_proof::refuse;
use signalbox_engine::chain::{Case, EntryPattern, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict};
use signalbox_engine::fact::FinishedFact;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{ExchangeId, Proof};
use signalbox_runtime::Gateway;
use signalbox_seal::signed_json::{FirstSigner, SignError, SignatureTerms, sign_response, signature_of};
use signalbox_seal::{hex, sha256};
use signalbox_wire::{Envelope, Limits, Refusal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Validity of the gateway's signatures in milliseconds.
pub(super) const VALID: u64 = 5 * 60 * 1000;
const NONCE_BYTES: usize = 16;

/// Interceptor that demands and makes signatures toward clients.
pub struct SealedCalls {
    key: Arc<OwnKey>,
    /// Patterns of subjects that require a signature.
    demands: Vec<EntryPattern>,
    sign_answers: bool,
    seen: Arc<AtomicBool>,
    /// Hashes of requests whose answers will be signed.
    hashes: Mutex<HashMap<ExchangeId, [u8; 32]>>,
    /// Gateway whose counters count refusals.
    gateway: OnceLock<Weak<Gateway>>,
}

impl SealedCalls {
    /// Demands signatures for subjects that match a pattern `BACKEND` or `BACKEND/NAME`. `seen` is set once any message
    /// was signed.
    pub fn new(key: Arc<OwnKey>, demands: &[String], sign_answers: bool, seen: Arc<AtomicBool>) -> Self {
        let demands = demands.iter().map(|text| EntryPattern::new(text)).collect();
        let hashes = Mutex::default();
        Self { key, demands, sign_answers, seen, hashes, gateway: OnceLock::new() }
    }

    /// Sets the gateway that counts refusals.
    pub fn attach(&self, gateway: &Arc<Gateway>) {
        let _ = self.gateway.set(Arc::downgrade(gateway));
    }

    /// Returns `true` if every call requires a signature.
    pub fn demands_all(&self) -> bool {
        self.demands.iter().any(EntryPattern::is_all)
    }

    fn signs(&self) -> bool {
        self.sign_answers || self.seen.load(Ordering::Relaxed)
    }

    fn request(&self, case: &Case<'_>) -> Judgement {
        let signed = case.caller.identity().proof == Proof::Signature;
        if !signed && self.is_demanded(case) {
            let fault = refuse("signature_missing", "this backend takes signed requests only");
            if let Some(gateway) = self.gateway.get().and_then(Weak::upgrade) {
                gateway.counters.signature_refused(fault.reason());
            }
            let ruling = Ruling::of("refuse", fault.message.clone());
            return Judgement { verdict: Verdict::Refuse(fault), rulings: ruling.into(), effects: Vec::new() };
        }
        if let Some(exchange) = case.exchange.filter(|_| signed || self.sign_answers) {
            self.hashes.lock().unpoisoned().insert(exchange.id, sha256(case.message.bytes()));
        }
        Judgement::pass()
    }

    fn is_demanded(&self, case: &Case<'_>) -> bool {
        let names = case.exchange.filter(|_| !self.demands.is_empty()).and_then(|exchange| exchange.subject_names());
        self.demands.iter().any(|pattern| pattern.fits(case, names.as_ref()))
    }

    fn answer(&self, case: &Case<'_>) -> Judgement {
        let hash = case.exchange.and_then(|exchange| self.hashes.lock().unpoisoned().get(&exchange.id).copied());
        let Some(hash) = hash else { return Judgement::pass() };
        let Some((key, mut terms)) = self.key.get().zip(terms(case.unix_ms)) else { return Judgement::pass() };
        terms.request_hash = Some(hash);
        let before = signature_of(case.message.bytes()).ok().flatten();
        terms.first_signer =
            before.map(|signature| FirstSigner { key_id: signature.key_id, signature: signature.signature });
        let signed = sign_response(case.message.bytes(), key, &terms).map_err(UnsignedReason::from);
        replaced(signed.and_then(read))
    }
}

impl Interceptor for SealedCalls {
    fn name(&self) -> &'static str {
        "seal"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        match case.phase {
            Phase::Request | Phase::ToGateway => self.request(case),
            Phase::Response | Phase::FromGateway => self.answer(case),
            _ => Judgement::pass(),
        }
    }

    fn is_idle(&self) -> bool {
        self.demands.is_empty() && !self.signs()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        match phase {
            Phase::Request | Phase::ToGateway => !self.is_idle(),
            Phase::Response | Phase::FromGateway => self.signs(),
            _ => false,
        }
    }

    fn finished(&self, finished: &FinishedFact) {
        if self.signs() {
            self.hashes.lock().unpoisoned().remove(&finished.exchange);
        }
    }
}

/// Returns the terms of a signature that is made now.
pub(super) fn terms(unix_ms: u64) -> Option<SignatureTerms> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).ok()?;
    Some(SignatureTerms::new(&hex(&nonce), unix_ms, unix_ms.saturating_add(VALID)))
}

/// Reason why a message leaves without the gateway's signature.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnsignedReason {
    #[error("this gateway has no signing key")]
    NoKey,
    #[error("the system gives no randomness")]
    NoRandomness,
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error(transparent)]
    Read(#[from] Refusal),
}

pub(super) fn read(bytes: bytes::Bytes) -> Result<Envelope, UnsignedReason> {
    Ok(Envelope::read(bytes, &Limits { message: usize::MAX, ..Limits::default() })?)
}

/// Replaces the message by the signed one. A message that cannot be signed goes on unchanged.
pub(super) fn replaced(signed: Result<Envelope, UnsignedReason>) -> Judgement {
    match signed {
        Ok(message) => {
            let ruling = Ruling::of("sign", String::new());
            Judgement { verdict: Verdict::Modify(message), rulings: ruling.into(), effects: Vec::new() }
        }
        Err(error) => {
            tracing::warn!(%error, "a message cannot be signed and goes on without a signature");
            let ruling = Ruling::of("unsigned", error.to_string());
            Judgement { verdict: Verdict::Pass, rulings: ruling.into(), effects: Vec::new() }
        }
    }
}
