use super::counts::ChildCounts;
use crate::send_queue::{NotQueued, SendQueue};
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::Link;
use std::sync::Arc;

/// An open child. Dropping it closes it.
#[derive(Debug)]
pub(super) struct ChildLink {
    pub(super) name: Arc<str>,
    pub(super) pid: u32,
    pub(super) queue: SendQueue,
    pub(super) counts: Arc<ChildCounts>,
}

impl Link for ChildLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let name = &self.name;
        self.queue.send(message).map_err(|refused| {
            let (kind, text) = match refused {
                NotQueued::Full => {
                    ChildCounts::add(&self.counts.refused);
                    let text = "does not read its input fast enough: too many messages already wait for it";
                    (FaultKind::Overloaded, format!("backend `{name}` {text}"))
                }
                // Down rather than died: this message has surely not reached the child.
                NotQueued::Ended => {
                    let why = self.queue.why().unwrap_or("is ending");
                    (FaultKind::BackendDown, format!("backend `{name}` is not running: it {why}"))
                }
            };
            Fault::new(kind, text).with_str("backend", name)
        })
    }

    fn close(&self) {
        self.queue.close();
    }

    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }
}
