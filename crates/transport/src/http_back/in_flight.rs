//! The messages of one link that are in flight, for Streamable HTTP and HTTP+SSE. Each is a POST in its own task.
//!
//! A link keeps its [`InFlight`] behind the lock of its other state. It admits a message, spawns the task that posts
//! it, and registers that task before it releases the lock, so that the task cannot end before it is registered. The
//! task owns a [`Running`], which removes the message when it is dropped, however the task ends.

use super::backend::Backend;
use signalbox_engine::back::ToBackend;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::method;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

/// Maximum number of messages in flight per link.
const MAX_RUNNING: usize = 10_000;

/// State that a link shares with the tasks of its messages.
pub(crate) trait LinkState {
    /// Text of the fault once the link is closed.
    const NOT_OPEN: &'static str;

    fn backend(&self) -> &Backend;

    /// Removes the message of a task that has ended.
    fn remove_message(&self, slot: MessageSlot);
}

/// Identifies one message of a link. A request may be sent again before the task of its first attempt has ended; the
/// serial number tells the two apart.
#[derive(Copy, Clone)]
pub(crate) struct MessageSlot {
    key: Option<u64>,
    serial: u64,
}

/// Tasks of one link: requests by key, and messages without an answer by serial number.
#[derive(Default)]
pub(crate) struct InFlight {
    closed: bool,
    serial: u64,
    requests: KeyMap<u64, (u64, AbortHandle)>,
    notes: KeyMap<u64, AbortHandle>,
    pub gate: Gate,
}

impl InFlight {
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Admits a message.
    ///
    /// # Errors
    /// Returns a fault if the link is closed or too many messages are in flight.
    pub(crate) fn begin<S: LinkState>(&mut self, shared: &Arc<S>, message: &ToBackend) -> Result<Running<S>, Fault> {
        if self.closed {
            return Err(shared.backend().fault(FaultKind::BackendDown, S::NOT_OPEN));
        }
        if self.requests.len() + self.notes.len() >= MAX_RUNNING {
            let text = format!("already has {MAX_RUNNING} messages on their way");
            return Err(shared.backend().fault(FaultKind::Overloaded, text));
        }
        let slot = MessageSlot { key: message.key(), serial: self.serial };
        self.serial += 1;
        let behind = self.gate.closed();
        let opens = message.key().is_none() && message.method() == method::INITIALIZED;
        let holds = opens.then(|| self.gate.close());
        Ok(Running { shared: Arc::clone(shared), slot, behind, _holds: holds, begun: false })
    }

    /// Registers the task of a message.
    ///
    /// # Errors
    /// Returns a fault if a runtime that is shutting down has dropped the task.
    pub(crate) fn register(
        &mut self,
        backend: &Backend,
        slot: MessageSlot,
        task: &JoinHandle<()>,
    ) -> Result<(), Fault> {
        if task.is_finished() {
            return Err(backend.fault(FaultKind::BackendDown, "is not called any more: the gateway is shutting down"));
        }
        match slot.key {
            Some(key) => drop(self.requests.insert(key, (slot.serial, task.abort_handle()))),
            None => drop(self.notes.insert(slot.serial, task.abort_handle())),
        }
        Ok(())
    }

    /// Removes a request. Returns its task, to be aborted outside the lock.
    pub(crate) fn remove(&mut self, key: u64) -> Option<AbortHandle> {
        self.requests.remove(&key).map(|(_, task)| task)
    }

    /// Refuses further messages. Those in flight can be aborted with [`InFlight::take_all`].
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Removes all messages. Returns their tasks, to be aborted outside the lock.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = AbortHandle> + use<> {
        let requests = std::mem::take(&mut self.requests).into_values().map(|(_, task)| task);
        requests.chain(std::mem::take(&mut self.notes).into_values())
    }

    /// Removes a message, unless the same request was sent again since.
    pub(crate) fn end(&mut self, slot: MessageSlot) {
        match slot.key {
            Some(key) => {
                if let Entry::Occupied(found) = self.requests.entry(key)
                    && found.get().0 == slot.serial
                {
                    found.remove();
                }
            }
            None => drop(self.notes.remove(&slot.serial)),
        }
    }
}

/// A message in flight. Dropping it removes the message from its link, however its task ends.
pub(crate) struct Running<S: LinkState> {
    pub shared: Arc<S>,
    slot: MessageSlot,
    /// Gate that must open before this message is sent.
    behind: Option<GateWait>,
    /// Set if later messages must wait for this one.
    _holds: Option<GateHold>,
    /// Set once the task runs. A task dropped before that, by a runtime that shuts down, may be dropped while the
    /// sender holds the link's lock.
    begun: bool,
}

impl<S: LinkState> Running<S> {
    pub(crate) fn slot(&self) -> MessageSlot {
        self.slot
    }

    /// Waits until the message may be sent, as the first step of the task.
    pub(crate) async fn begin(&mut self) {
        self.begun = true;
        if let Some(closed) = self.behind.take() {
            wait(closed).await;
        }
    }
}

impl<S: LinkState> Drop for Running<S> {
    fn drop(&mut self) {
        if self.begun {
            self.shared.remove_message(self.slot);
        }
    }
}

/// Spawns a task in the current runtime, so that a call stays on one thread. Outside a runtime it uses the one that the
/// link was opened on.
pub(crate) fn spawn(opened_on: &Handle, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    match Handle::try_current() {
        Ok(here) => here.spawn(task),
        Err(_) => opened_on.spawn(task),
    }
}

/// Holds messages back while `notifications/initialized` is in flight, because POSTs overtake each other and some
/// servers refuse a request that arrives before it. It also holds them back while the general stream opens, because
/// some servers send requests there during a call, and what they send before the stream is open is lost.
#[derive(Default)]
pub(crate) struct Gate(Option<GateWait>);

/// Waits for a gate.
pub(crate) type GateWait = watch::Receiver<()>;

/// Keeps a gate closed. Dropping it opens the gate.
pub(crate) type GateHold = watch::Sender<()>;

impl Gate {
    /// Closes the gate for messages sent from now on.
    pub(crate) fn close(&mut self) -> GateHold {
        let (hold, closed) = watch::channel(());
        self.0 = Some(closed);
        hold
    }

    /// Returns the gate that a message sent now must wait for; `None` if it is open.
    pub(crate) fn closed(&mut self) -> Option<GateWait> {
        self.0.take_if(|closed| closed.has_changed().is_err());
        self.0.clone()
    }
}

/// Waits until the gate opens.
pub(crate) async fn wait(mut closed: GateWait) {
    while closed.changed().await.is_ok() {}
}
