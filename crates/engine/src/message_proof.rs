//! Proofs of who calls that the message itself carries. This is the second stage of authentication: it looks at
//! messages that passed the strict scan, whatever transport they came by.

use crate::caller::Caller;
use crate::fault::Fault;
use bytes::Bytes;
use signalbox_wire::Envelope;

/// Looks at the proofs that messages carry.
pub trait MessageProof: Send + Sync {
    /// The caller by a proof in this message; `None` if it carries none. `caller` is the one that the connection
    /// proved. Asked once about every message of a client, so it must be cheap where there is no proof.
    ///
    /// # Errors
    /// If it carries a proof that is not valid, or proves somebody else than the connection does.
    fn confirm(&self, caller: &Caller, message: &Envelope) -> Result<Option<Caller>, Fault>;

    /// The same about a message that came as protobuf, as its bytes.
    ///
    /// # Errors
    /// As [`MessageProof::confirm`].
    fn confirm_protobuf(&self, caller: &Caller, message: &Bytes) -> Result<Option<Caller>, Fault>;

    /// Ends the credentials of callers that can no longer prove themselves with what they proved themselves with.
    /// Called about twice a second while there are any.
    fn refresh(&self);

    /// Signs an answer that leaves as protobuf, as its bytes; `None` where it leaves as it is. `to_signed` says that
    /// its request was signed.
    fn sign_protobuf(&self, answer: &Bytes, to_signed: bool) -> Option<Bytes>;
}
