//! What a session is doing, for whoever looks.

use super::Session;
use signalbox_engine::ExchangeId;
use signalbox_engine::exchange::{Exchange, MethodName};
use std::sync::Arc;
use std::time::Instant;

/// A request that waits for an answer.
#[derive(Clone, Debug)]
pub struct CallInFlight {
    /// Its number within the session.
    pub exchange: ExchangeId,
    /// The method.
    pub method: MethodName,
    /// The tool, prompt or URI, as the client knows it.
    pub subject: Option<Box<str>>,
    /// The backend, where it is known.
    pub backend: Option<Arc<str>>,
    /// When it came.
    pub since: Instant,
}

impl Session {
    /// The requests that wait for an answer, the oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<CallInFlight> {
        let inner = self.lock();
        let call = |exchange: &Exchange| CallInFlight {
            exchange: exchange.id,
            method: exchange.method.clone(),
            subject: exchange.subject.clone(),
            backend: exchange.backend.clone(),
            since: exchange.started,
        };
        inner.machine.exchanges().into_iter().map(call).collect()
    }
}
