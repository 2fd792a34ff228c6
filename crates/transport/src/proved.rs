//! What a front found a message to prove, on the way to its session.

use signalbox_engine::{Caller, Carrier, Fault};

/// Who signed a message, or why its signature does not hold.
pub struct Proved(pub Result<Option<Caller>, Fault>);

impl Proved {
    /// True where nothing is known yet.
    pub fn is_open(&self) -> bool {
        matches!(self.0, Ok(None))
    }

    /// Whoever signed it.
    pub fn caller(&self) -> Option<Caller> {
        self.0.as_ref().ok().and_then(Clone::clone)
    }

    /// What goes along with the message.
    pub fn carried<'a>(&'a self, carrier: Carrier<'a>) -> Carrier<'a> {
        match &self.0 {
            Ok(caller) => Carrier { caller: caller.as_ref(), ..carrier },
            Err(fault) => Carrier { refusal: Some(fault), ..carrier },
        }
    }
}
