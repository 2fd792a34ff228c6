//! Signatures of large messages, which are verified on threads of their own: a worker that makes the canonical form of one serves
//! no other connection meanwhile, and no key is needed to ask for it.

use crate::proved::Proved;
use signalbox_engine::{Caller, Fault, FaultKind};
use signalbox_runtime::Gateway;
use signalbox_seal::META_SIGNATURE;
use signalbox_wire::Envelope;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The least size of such a message, in bytes. Smaller ones take less time than it takes to hand them over.
pub(crate) const LARGE: usize = 16 * 1024;
/// Large messages that are verified at once in the process, so that the memory for canonical forms is bounded. Others wait.
const MAX_VERIFIERS: usize = 2;

static VERIFIERS: Semaphore = Semaphore::const_new(MAX_VERIFIERS);

/// Verifies the signature of a large message. `Ok(None)` if the message is small or carries none: its session looks at it.
pub(crate) async fn prove(gateway: &Arc<Gateway>, caller: &Caller, message: &Envelope) -> Proved {
    if !is_needed(message) {
        return Proved(Ok(None));
    }
    let (gateway, caller, message) = (Arc::clone(gateway), caller.clone(), message.clone());
    Proved(Box::pin(off_the_workers(move || gateway.confirm(&caller, &message))).await)
}

/// True for a message whose signature has to be verified before its session gets it.
pub(crate) fn is_needed(message: &Envelope) -> bool {
    message.bytes().len() >= LARGE && message.param_meta(META_SIGNATURE).is_some()
}

/// Does costly work on a thread that serves no connections.
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
