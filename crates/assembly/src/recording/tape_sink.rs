//! The recorder as the gateway sees it.

use signalbox_engine::{Fact, FactSink};
use signalbox_tape::recorder::Recorder;
use std::pin::Pin;
use std::sync::Arc;

/// Hands facts to the recorder, and knows whether answers wait for it.
pub struct TapeSink {
    recorder: Arc<Recorder>,
    strict: bool,
}

impl TapeSink {
    /// A sink; with `strict` an answer leaves only after it is on disk.
    pub fn new(recorder: Arc<Recorder>, strict: bool) -> Self {
        Self { recorder, strict }
    }
}

impl FactSink for TapeSink {
    fn wants_messages(&self) -> bool {
        true
    }

    fn is_durable(&self) -> bool {
        self.strict
    }

    fn written(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let barrier = self.recorder.barrier();
        Box::pin(async move { barrier.await.is_ok() })
    }

    fn room(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let (room, within) = self.recorder.room()?;
        Some(Box::pin(async move {
            let _ = tokio::time::timeout(within, room).await;
        }))
    }

    fn fact(&self, fact: &Fact) {
        self.recorder.fact(fact);
    }

    fn facts(&self, facts: &[Fact]) {
        self.recorder.facts(facts);
    }
}
