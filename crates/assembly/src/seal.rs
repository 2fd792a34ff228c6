//! Signatures at the gateway: identifies signers, demands signatures, and signs answers and forwarded requests.

mod group_flush;
mod nonce_files;
mod own_key;
mod sealed_calls;
mod sealed_forwards;
mod signature_proof;
mod stated_limits;
mod trusted_keys;

use crate::seal_folder::SealFolder;
use arc_swap::ArcSwap;
use own_key::OwnKey;
pub use sealed_calls::SealedCalls;
use sealed_forwards::SealedForwards;
use signalbox_config::Config;
use signalbox_govern::directory::Directory;
use signalbox_runtime::{Gateway, MessageProofs};
use signalbox_seal::TimeWindow;
use signalbox_seal::validate::ValidationMode;
use signature_proof::SignatureProof;
use stated_limits::StatedLimits;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use trusted_keys::TrustedKeys;

/// Verifies and makes signatures. Nothing is read or written until the first one.
pub struct Signatures {
    /// Interceptor nearest to clients, which demands signatures and signs answers.
    pub calls: Arc<SealedCalls>,
    /// Interceptor nearest to backends, which signs requests to other gateways.
    pub forwards: Arc<SealedForwards>,
    proof: Arc<SignatureProof>,
}

impl Signatures {
    /// Sets up signatures as configured. `directory` holds the roles, groups and trust of signers.
    #[must_use]
    pub fn new(config: &Config, directory: &Arc<ArcSwap<Directory>>) -> Self {
        let folder = SealFolder::of(&config.data_dir);
        let (key, keys) = (Arc::new(OwnKey::new(&folder)), Arc::new(TrustedKeys::new(&folder)));
        let (seal, seen) = (&config.seal, Arc::new(AtomicBool::new(false)));
        let calls = SealedCalls::new(Arc::clone(&key), &seal.require, seal.sign_answers, Arc::clone(&seen));
        let gateways = config.backends.iter().filter(|backend| backend.seal).map(|backend| backend.name.to_string());
        let own = Arc::clone(&key);
        let forwards = SealedForwards { key, keys: Arc::clone(&keys), backends: gateways.collect() };
        let proof = SignatureProof {
            keys,
            directory: Arc::clone(directory),
            nonces: nonce_files::NonceFiles::new(folder.nonce_folder(), seal.nonces_per_key),
            window: TimeWindow { behind: seal.max_age, ahead: seal.time_window },
            mode: if seal.validate_fully { ValidationMode::Full } else { ValidationMode::Light },
            profiles: seal.profiles.iter().filter_map(|name| name.parse().ok()).collect(),
            seen,
            stated: StatedLimits::default(),
            own,
            sign_answers: seal.sign_answers,
        };
        Self { calls: Arc::new(calls), forwards: Arc::new(forwards), proof: Arc::new(proof) }
    }

    /// Returns the proofs that the gateway checks.
    pub fn proofs(&self) -> MessageProofs {
        MessageProofs { proof: Arc::clone(&self.proof) as _, demanded: self.calls.demands_all() }
    }

    /// Sets the gateway that counts refused signatures.
    pub fn attach(&self, gateway: &Arc<Gateway>) {
        self.calls.attach(gateway);
    }
}
