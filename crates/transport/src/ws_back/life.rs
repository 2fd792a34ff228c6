//! The task that drives a connection after its handshake, and the runtime's handle to it.

use crate::send_queue::closed;
use crate::send_queue::{QUEUE, QueueError, SendQueue};
use crate::tls::MaybeTlsStream;
use crate::websocket::{CloseCode, Duplex, SocketEvent, Utf8Bytes};
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{Link, LinkEvents};
use std::future::{Future as _, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::sync::{mpsc, watch};

/// Reason of an end that the gateway requested.
const CLOSED: &str = "was closed by the gateway";

/// Starts the task and returns the link to it.
pub(super) fn begin(name: &Arc<str>, duplex: Duplex<MaybeTlsStream>, events: Arc<dyn LinkEvents>) -> WsLink {
    let (queue, queued) = mpsc::channel(QUEUE);
    let (closing, told) = watch::channel(false);
    let waiting = Arc::<AtomicUsize>::default();
    let ended = Arc::<OnceLock<String>>::default();
    let life = Life {
        name: Arc::clone(name),
        queue: queued,
        waiting: Arc::clone(&waiting),
        ended: Arc::clone(&ended),
        events,
    };
    tokio::spawn(life.run(duplex, told));
    WsLink { name: Arc::clone(name), queue: SendQueue { closing, queue, waiting, ended } }
}

struct Life {
    name: Arc<str>,
    queue: mpsc::Receiver<ToBackend>,
    waiting: Arc<AtomicUsize>,
    ended: Arc<OnceLock<String>>,
    events: Arc<dyn LinkEvents>,
}

impl Life {
    async fn run(mut self, mut duplex: Duplex<MaybeTlsStream>, mut told: watch::Receiver<bool>) {
        let ending = {
            let mut closing = std::pin::pin!(closed(&mut told));
            let mut closes = false;
            loop {
                let step = poll_fn(|cx| {
                    if !closes && closing.as_mut().poll(cx).is_ready() {
                        // Messages queued before are still sent.
                        closes = true;
                        self.queue.close();
                    }
                    duplex.poll_step(cx, true, |cx| self.poll_text(cx))
                });
                match step.await {
                    SocketEvent::Message(bytes) => {
                        if let Some(room) = self.events.room() {
                            room.await;
                        }
                        self.events.received(bytes, None, None);
                    }
                    SocketEvent::Written => {}
                    SocketEvent::Finished => break None,
                    SocketEvent::Ended(ending) => break Some(ending),
                }
            }
        };
        let why = ending.as_ref().map_or_else(|| CLOSED.to_owned(), ToString::to_string);
        let _ = self.ended.set(why.clone());
        // Report the end first: calls must not wait for the peer's close frame.
        self.events.lost(why);
        drop(self);
        match ending.as_ref().map(|ending| ending.code()) {
            None => duplex.close(CloseCode::Normal, "").await,
            Some(Some(code)) => duplex.close(code, "").await,
            Some(None) => duplex.closed().await,
        }
    }

    /// Polls the next message for the backend.
    fn poll_text(&mut self, cx: &mut Context<'_>) -> Poll<Option<Utf8Bytes>> {
        loop {
            let Some(message) = std::task::ready!(self.queue.poll_recv(cx)) else { return Poll::Ready(None) };
            self.waiting.fetch_sub(message.bytes().len(), Ordering::AcqRel);
            match Utf8Bytes::try_from(message.bytes().clone()) {
                Ok(text) => return Poll::Ready(Some(text)),
                Err(error) => self.unsendable(message.key(), &error),
            }
        }
    }

    fn unsendable(&self, key: Option<u64>, error: &dyn std::fmt::Display) {
        tracing::warn!(backend = %self.name, %error, "a message is not UTF-8 and was not sent");
        if let Some(key) = key {
            let text = format!("the message cannot be sent to backend `{}`: {error}", self.name);
            self.events.failed(key, Fault::new(FaultKind::InvalidRequest, text).with_str("backend", &self.name));
        }
    }
}

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub(super) struct WsLink {
    name: Arc<str>,
    queue: SendQueue,
}

impl Link for WsLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let name = &self.name;
        self.queue.send(message).map_err(|refused| {
            let (kind, text) = match refused {
                QueueError::Full => {
                    let text =
                        format!("backend `{name}` does not read fast enough: too many messages already wait for it");
                    (FaultKind::Overloaded, text)
                }
                // Down rather than died: this message has certainly not reached the backend.
                QueueError::Ended => {
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
