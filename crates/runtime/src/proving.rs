//! Proof of a caller's identity by its message, and refusal of callers that have none where proof is required.

use crate::counters::Counters;
use crate::gateway::{Gateway, MessageProofs};
use bytes::Bytes;
use signalbox_engine::{Caller, Fault, FaultKind, Proof};
use signalbox_wire::Envelope;

impl Gateway {
    /// Returns true if a caller that the connection does not prove must sign its messages.
    #[must_use]
    pub fn demands_signatures(&self) -> bool {
        self.proof.as_ref().is_some_and(|proofs| proofs.demanded) || self.settings().require_proof
    }

    /// Returns the caller according to a proof in the message, or `None` if there is no proof. `caller` is the one that
    /// the connection authenticated.
    ///
    /// # Errors
    /// If the proof is invalid, or a required proof is missing.
    pub fn confirm(&self, caller: &Caller, message: &Envelope) -> Result<Option<Caller>, Fault> {
        let Some(MessageProofs { proof, .. }) = &self.proof else { return self.demand_proof(caller, Ok(None)) };
        self.demand_proof(caller, self.count_proof(proof.confirm(caller, message)))
    }

    /// Does the same as [`Self::confirm`] for a message that arrived as protobuf.
    ///
    /// # Errors
    /// If the proof is invalid, or a required proof is missing.
    pub fn confirm_protobuf(&self, caller: &Caller, message: &Bytes) -> Result<Option<Caller>, Fault> {
        let Some(MessageProofs { proof, .. }) = &self.proof else { return self.demand_proof(caller, Ok(None)) };
        self.demand_proof(caller, self.count_proof(proof.confirm_protobuf(caller, message)))
    }

    /// Signs an answer that leaves as protobuf, if answers are signed.
    #[must_use]
    pub fn sign_protobuf(&self, answer: Bytes, to_signed: bool) -> Bytes {
        let signed = self.proof.as_ref().and_then(|proofs| proofs.proof.sign_protobuf(&answer, to_signed));
        signed.unwrap_or(answer)
    }

    /// Returns true if a proof is required and the caller has given none.
    pub(crate) fn must_still_prove(&self, caller: &Caller) -> bool {
        caller.identity().proof == Proof::Unproved
            && self.settings().require_proof
            && !self.face(caller).is_some_and(|face| face.open)
    }

    /// Refuses a message without a proof of its caller, by the connection or the message, if proof is required.
    fn demand_proof(&self, caller: &Caller, proved: Result<Option<Caller>, Fault>) -> Result<Option<Caller>, Fault> {
        match proved {
            Ok(None) if self.must_still_prove(caller) => {
                Err(Fault::new(FaultKind::Unauthenticated, "the caller did not prove its identity"))
            }
            other => other,
        }
    }

    fn count_proof(&self, proved: Result<Option<Caller>, Fault>) -> Result<Option<Caller>, Fault> {
        match &proved {
            Ok(None) => {}
            Ok(Some(caller)) => {
                Counters::add(&self.counters.signatures_verified);
                self.identified(caller);
            }
            Err(fault) => self.counters.signature_refused(fault.reason()),
        }
        proved
    }
}
