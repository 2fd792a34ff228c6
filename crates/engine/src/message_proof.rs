//! Proofs of identity inside messages. This is the second stage of authentication: it checks messages that passed the
//! strict scan, on every transport.

use crate::caller::Caller;
use crate::fault::Fault;
use bytes::Bytes;
use signalbox_wire::Envelope;

/// Checks the proofs that messages carry.
pub trait MessageProof: Send + Sync {
    /// Returns the caller proved by this message; `None` if it carries no proof. `caller` is the one that the
    /// connection proved. Called once for every message of a client, so it must be cheap without a proof.
    ///
    /// # Errors
    /// Returns a fault if the message carries a proof that is not valid, or proves another identity than the connection
    /// does.
    fn confirm(&self, caller: &Caller, message: &Envelope) -> Result<Option<Caller>, Fault>;

    /// Checks the proof of a message that arrived as protobuf, like [`MessageProof::confirm`], from its bytes.
    ///
    /// # Errors
    /// Same as [`MessageProof::confirm`].
    fn confirm_protobuf(&self, caller: &Caller, message: &Bytes) -> Result<Option<Caller>, Fault>;

    /// Ends the credentials of callers whose proof is no longer valid. Called about twice a second while there are any.
    fn refresh(&self);

    /// Signs an answer that leaves as protobuf, given its bytes; `None` if it leaves unsigned. `to_signed` is true if
    /// its request was signed.
    fn sign_protobuf(&self, answer: &Bytes, to_signed: bool) -> Option<Bytes>;
}
