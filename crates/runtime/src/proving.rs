//! What a message proves about its caller, beside what its connection proved, and what is refused where neither does.

use crate::counters::Counters;
use crate::gateway::Gateway;
use bytes::Bytes;
use signalbox_engine::message_proof::MessageProof;
use signalbox_engine::{Caller, Fault, FaultKind, Proof};
use signalbox_wire::Envelope;
use std::sync::Arc;

/// Proofs that messages carry.
pub struct MessageProofs {
    /// Checks them.
    pub proof: Arc<dyn MessageProof>,
    /// True if a caller whom the connection does not prove must sign. Interceptors refuse messages without a signature; fronts
    /// read less of messages that are not proved yet.
    pub demanded: bool,
}

impl Gateway {
    /// True if whoever is not proved by the connection has to sign.
    #[must_use]
    pub fn demands_signatures(&self) -> bool {
        self.proof.as_ref().is_some_and(|proofs| proofs.demanded) || self.settings().require_proof
    }

    /// The caller by a proof that the message carries; `None` if it carries none. `caller` is the one
    /// that the connection proved.
    ///
    /// # Errors
    /// If the proof does not hold.
    pub fn confirm(&self, caller: &Caller, message: &Envelope) -> Result<Option<Caller>, Fault> {
        let Some(MessageProofs { proof, .. }) = &self.proof else { return self.demand_proof(caller, Ok(None)) };
        self.demand_proof(caller, self.count_proof(proof.confirm(caller, message)))
    }

    /// The same about a message that came as protobuf.
    ///
    /// # Errors
    /// If the proof does not hold.
    pub fn confirm_protobuf(&self, caller: &Caller, message: &Bytes) -> Result<Option<Caller>, Fault> {
        let Some(MessageProofs { proof, .. }) = &self.proof else { return self.demand_proof(caller, Ok(None)) };
        self.demand_proof(caller, self.count_proof(proof.confirm_protobuf(caller, message)))
    }

    /// Signs an answer that leaves as protobuf, where answers are signed.
    #[must_use]
    pub fn sign_protobuf(&self, answer: Bytes, to_signed: bool) -> Bytes {
        let signed = self.proof.as_ref().and_then(|proofs| proofs.proof.sign_protobuf(&answer, to_signed));
        signed.unwrap_or(answer)
    }

    /// True if the caller has proved nothing, where that is required.
    pub(crate) fn must_still_prove(&self, caller: &Caller) -> bool {
        caller.identity().proof == Proof::Unproved
            && self.settings().require_proof
            && !self.face(caller).is_some_and(|face| face.open)
    }

    /// Refuses a message whose caller is proved neither by its connection nor by itself, if proof is required.
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
