//! The runtime's end of a WebSocket.

use crate::send_queue::{NotQueued, SendQueue};
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::Link;
use std::sync::Arc;

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub(super) struct WsLink {
    pub(super) name: Arc<str>,
    pub(super) queue: SendQueue,
}

impl Link for WsLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let name = &self.name;
        self.queue.send(message).map_err(|refused| {
            let (kind, text) = match refused {
                NotQueued::Full => {
                    let text =
                        format!("backend `{name}` does not read fast enough: too many messages already wait for it");
                    (FaultKind::Overloaded, text)
                }
                // Down rather than died: this message has surely not reached the backend.
                NotQueued::Ended => {
                    let why = self.queue.why().unwrap_or("is being closed");
                    (FaultKind::BackendDown, format!("backend `{name}` is not connected: it {why}"))
                }
            };
            Fault::new(kind, text).with_str("backend", name)
        })
    }

    fn close(&self) {
        self.queue.close();
    }
}
