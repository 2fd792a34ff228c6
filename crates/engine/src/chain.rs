//! The ordered list of interceptors, and the phases in which each of them is asked.
//!
//! ```text
//! client ─► request ─► (dispatch) ─► backend ─► response ─► client
//!              │ notification (either way, no answer)           │
//!              └───────────────── finished ─────────────────────┘
//! ```
//! An interceptor is synchronous: its verdict is a function of what it is handed, so that a chain can be run again over
//! old exchanges and give the same verdicts.

use crate::exchange::Exchange;
use crate::fact::Finished;
use crate::fault::Fault;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope};
use std::sync::Arc;
use std::time::Instant;

/// What an interceptor decides about a message.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Go on.
    Pass,
    /// Go on with these edits.
    Modify(Edits),
    /// Answer with this result instead of asking the backend.
    Reply(Bytes),
    /// Refuse.
    Refuse(Fault),
}

/// One concern that looks at every exchange. All phases do nothing unless they are written.
pub trait Interceptor: Send + Sync {
    /// Its name in logs and in the list of interceptors.
    fn name(&self) -> &'static str;

    /// A request, before it goes to a backend.
    fn request(&self, _exchange: &Exchange, _message: &Envelope, _now: Instant) -> Verdict {
        Verdict::Pass
    }

    /// An answer, before it goes to the client.
    fn response(&self, _exchange: &Exchange, _message: &Envelope, _now: Instant) -> Verdict {
        Verdict::Pass
    }

    /// A notification in either direction. `Reply` counts as `Pass`; `Refuse` drops it.
    fn notification(&self, _message: &Envelope, _now: Instant) -> Verdict {
        Verdict::Pass
    }

    /// The exchange is over.
    fn finished(&self, _finished: &Finished) {}
}

/// The interceptors in their one order.
#[derive(Clone, Default)]
pub struct Chain(Arc<[Arc<dyn Interceptor>]>);

impl Chain {
    /// A chain of these, asked in this order for requests and in reverse for answers.
    #[must_use]
    pub fn new(list: Vec<Arc<dyn Interceptor>>) -> Self {
        Self(list.into())
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|one| one.name()).collect()
    }

    /// Asks about a request; edits of all interceptors are gathered, the first reply or refusal ends the walk.
    pub fn request(&self, exchange: &Exchange, message: &Envelope, edits: &mut Edits, now: Instant) -> Verdict {
        walk(self.0.iter(), edits, |one| one.request(exchange, message, now))
    }

    /// Asks about an answer, in reverse order.
    pub fn response(&self, exchange: &Exchange, message: &Envelope, edits: &mut Edits, now: Instant) -> Verdict {
        walk(self.0.iter().rev(), edits, |one| one.response(exchange, message, now))
    }

    /// Asks about a notification.
    pub fn notification(&self, message: &Envelope, edits: &mut Edits, now: Instant) -> Verdict {
        walk(self.0.iter(), edits, |one| one.notification(message, now))
    }

    /// Tells every interceptor that an exchange is over.
    pub fn finished(&self, finished: &Finished) {
        for one in self.0.iter() {
            one.finished(finished);
        }
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

fn walk<'a>(
    list: impl Iterator<Item = &'a Arc<dyn Interceptor>>,
    edits: &mut Edits,
    ask: impl Fn(&dyn Interceptor) -> Verdict,
) -> Verdict {
    for one in list {
        match ask(one.as_ref()) {
            Verdict::Pass => {}
            Verdict::Modify(more) => edits.append(&more),
            end => return end,
        }
    }
    Verdict::Pass
}
