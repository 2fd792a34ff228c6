//! Signatures at the gateway: who signed a request, where that is demanded, and what the gateway signs itself.

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
use signalbox_seal::validate::Mode;
use signature_proof::SignatureProof;
use stated_limits::StatedLimits;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use trusted_keys::TrustedKeys;

/// What a gateway needs to check and make signatures. Nothing is read or written before the first of them.
pub struct Signatures {
    /// Demands signatures and signs answers; the interceptor nearest to clients.
    pub calls: Arc<SealedCalls>,
    /// Signs what goes to other gateways; the interceptor nearest to backends.
    pub forwards: Arc<SealedForwards>,
    proof: Arc<SignatureProof>,
}

impl Signatures {
    /// As it is configured, for signers of whom this directory says what they are.
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
            mode: if seal.validate_fully { Mode::Full } else { Mode::Light },
            profiles: seal.profiles.iter().filter_map(|name| name.parse().ok()).collect(),
            seen,
            stated: StatedLimits::default(),
            own,
            sign_answers: seal.sign_answers,
        };
        Self { calls: Arc::new(calls), forwards: Arc::new(forwards), proof: Arc::new(proof) }
    }

    /// The proofs that the gateway checks.
    pub fn proofs(&self) -> MessageProofs {
        MessageProofs { proof: Arc::clone(&self.proof) as _, demanded: self.calls.demands_all() }
    }

    /// Gives the signer the gateway whose answers it signs.
    pub fn attach(&self, gateway: &Arc<Gateway>) {
        self.calls.attach(gateway);
    }
}
