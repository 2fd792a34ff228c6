//! The proof that a front found in a message, on the way to its session.

use signalbox_engine::{Caller, Carrier, Fault};

/// Signer of a message, or the reason why its signature is invalid.
pub struct SignerProof(pub Result<Option<Caller>, Fault>);

impl SignerProof {
    /// Returns `true` if the message has not been verified yet.
    pub fn is_unverified(&self) -> bool {
        matches!(self.0, Ok(None))
    }

    /// Returns the signer, if the signature was verified and is valid.
    pub fn caller(&self) -> Option<Caller> {
        self.0.as_ref().ok().and_then(Clone::clone)
    }

    /// Adds the result to what travels with the message.
    pub fn carried<'a>(&'a self, carrier: Carrier<'a>) -> Carrier<'a> {
        match &self.0 {
            Ok(caller) => Carrier { caller: caller.as_ref(), ..carrier },
            Err(fault) => Carrier { refusal: Some(fault), ..carrier },
        }
    }
}
