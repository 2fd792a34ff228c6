//! The messages of one link that are on their way, for Streamable HTTP and for HTTP+SSE: each is a POST in a task of its own.
//!
//! A link keeps its [`InFlight`] behind the lock of its other state. It lets a message in, spawns the task that posts it, and
//! registers that task before it gives the lock away, so that the task cannot end before it is known. The task owns a
//! [`Running`], which takes the message off the books when it is dropped, however the task ends.

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

/// Most messages of one link that are on their way at once.
const MAX_RUNNING: usize = 10_000;

/// What a link shares with the tasks of its messages.
pub(crate) trait LinkShared {
    /// What a link says of its backend once it is closed.
    const NOT_OPEN: &'static str;

    fn backend(&self) -> &Backend;

    /// Takes the message of a task that has ended off the books.
    fn ended(&self, slot: MessageSlot);
}

/// One message among those of its link. A request may be sent again before the task of its first try has ended; the serial
/// number tells the two apart.
#[derive(Copy, Clone)]
pub(crate) struct MessageSlot {
    key: Option<u64>,
    serial: u64,
}

/// The tasks of one link by request, and those of what gets no answer by serial number.
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

    /// Lets a message in.
    ///
    /// # Errors
    /// When the link is closed or too many messages are on their way.
    pub(crate) fn begin<S: LinkShared>(&mut self, shared: &Arc<S>, message: &ToBackend) -> Result<Running<S>, Fault> {
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

    /// Remembers the task of a message.
    ///
    /// # Errors
    /// When a runtime that shuts down has dropped the task instead of taking it.
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

    /// Forgets a request, and gives its task back to be aborted outside the lock.
    pub(crate) fn remove(&mut self, key: u64) -> Option<AbortHandle> {
        self.requests.remove(&key).map(|(_, task)| task)
    }

    /// Lets nothing in any more. Whoever does not want what is on its way aborts it with [`InFlight::take_all`].
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Forgets all messages, and gives their tasks back to be aborted outside the lock.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = AbortHandle> + use<> {
        let requests = std::mem::take(&mut self.requests).into_values().map(|(_, task)| task);
        requests.chain(std::mem::take(&mut self.notes).into_values())
    }

    /// Takes a message off the books, unless the same request was sent again since.
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

/// A message on its way. Dropping it takes the message off the link's books, however its task ends.
pub(crate) struct Running<S: LinkShared> {
    pub shared: Arc<S>,
    slot: MessageSlot,
    /// What has to be accepted before this message is sent.
    behind: Option<GateWait>,
    /// Set if others have to wait for this message.
    _holds: Option<GateHold>,
    /// Set once the task runs. One that is dropped before, by a runtime that shuts down, may be so while the link that sends
    /// holds its lock.
    begun: bool,
}

impl<S: LinkShared> Running<S> {
    pub(crate) fn slot(&self) -> MessageSlot {
        self.slot
    }

    /// The task runs: waits until the message may be sent.
    pub(crate) async fn begin(&mut self) {
        self.begun = true;
        if let Some(closed) = self.behind.take() {
            wait(closed).await;
        }
    }
}

impl<S: LinkShared> Drop for Running<S> {
    fn drop(&mut self) {
        if self.begun {
            self.shared.ended(self.slot);
        }
    }
}

/// Runs a task where the message came from, so that a call stays on one thread; where that is no runtime's, on the one that
/// the link was opened on.
pub(crate) fn spawn(opened_on: &Handle, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    match Handle::try_current() {
        Ok(here) => here.spawn(task),
        Err(_) => opened_on.spawn(task),
    }
}

/// Closed while `notifications/initialized` is on its way, since POSTs overtake each other and some servers refuse a request
/// that comes before it; and while the stream for what belongs to no request opens, since some servers ask there in the middle
/// of a call, and what they say before somebody listens is lost.
#[derive(Default)]
pub(crate) struct Gate(Option<GateWait>);

/// What a message waits for.
pub(crate) type GateWait = watch::Receiver<()>;

/// Dropping it opens the gate.
pub(crate) type GateHold = watch::Sender<()>;

impl Gate {
    /// Closes the gate for messages that are sent from now on.
    pub(crate) fn close(&mut self) -> GateHold {
        let (hold, closed) = watch::channel(());
        self.0 = Some(closed);
        hold
    }

    /// What a message that is sent now has to wait for; none where the gate is open.
    pub(crate) fn closed(&mut self) -> Option<GateWait> {
        self.0.take_if(|closed| closed.has_changed().is_err());
        self.0.clone()
    }
}

/// Waits until the gate opens.
pub(crate) async fn wait(mut closed: GateWait) {
    while closed.changed().await.is_ok() {}
}
