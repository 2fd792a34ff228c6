//! Verifies signatures of large messages on separate threads. A worker that canonicalises a large message serves no
//! other connection meanwhile, and a client needs no key to cause that.

use crate::signer_proof::SignerProof;
use signalbox_engine::{Caller, Fault, FaultKind};
use signalbox_runtime::Gateway;
use signalbox_seal::META_SIGNATURE;
use signalbox_wire::Envelope;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Minimum size of a large message, in bytes. Smaller ones take less time than the handover.
pub(crate) const LARGE: usize = 16 * 1024;
/// Maximum number of large messages verified concurrently in the process, which bounds the memory for canonical forms.
const MAX_VERIFIERS: usize = 2;

static VERIFIERS: Semaphore = Semaphore::const_new(MAX_VERIFIERS);

/// Verifies the signature of a large message. A small or unsigned message stays unverified, because its session handles
/// it.
pub(crate) async fn prove(gateway: &Arc<Gateway>, caller: &Caller, message: &Envelope) -> SignerProof {
    if !is_needed(message) {
        return SignerProof(Ok(None));
    }
    let (gateway, caller, message) = (Arc::clone(gateway), caller.clone(), message.clone());
    SignerProof(Box::pin(off_the_workers(move || gateway.confirm(&caller, &message))).await)
}

/// Returns `true` if the signature must be verified before the session receives the message.
pub(crate) fn is_needed(message: &Envelope) -> bool {
    message.bytes().len() >= LARGE && message.param_meta(META_SIGNATURE).is_some()
}

/// Runs expensive work on a thread that serves no connections.
pub(crate) async fn off_the_workers<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let failed = |_| Fault::new(FaultKind::Internal, "the message could not be verified");
    // The semaphore is never closed.
    let Ok(permit) = VERIFIERS.acquire().await else { return Err(failed(())) };
    let verifying = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    verifying.await.unwrap_or_else(|_| Err(failed(())))
}
