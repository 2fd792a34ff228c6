//! Backends that are part of this program, such as the demo server: a task instead of a process, two channels instead
//! of pipes.

use crate::send_queue::closed;
use bytes::Bytes;
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind, Principal};
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// Maximum number of queued messages in each direction.
const QUEUE: usize = 64;
/// Maximum time for a server to end after it dropped its sender.
const END_WAIT: Duration = Duration::from_millis(250);

/// Arguments of a server task.
#[derive(Debug)]
pub struct ServerChannels {
    /// Messages for the server.
    pub incoming: mpsc::Receiver<Bytes>,
    /// Sender for the server's messages.
    pub outgoing: mpsc::Sender<Bytes>,
    /// Principal whose calls use this link, if known.
    pub principal: Option<Principal>,
}

/// Starts a server task for every link by calling the function. The link ends with the task.
pub struct InProcessConnector<F> {
    name: Arc<str>,
    server: Arc<F>,
}

impl<F> InProcessConnector<F>
where
    F: Fn(ServerChannels) -> BoxFuture<()> + Send + Sync + 'static,
{
    /// Creates a connector for the backend with this name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, server: F) -> Self {
        Self { name: name.into(), server: Arc::new(server) }
    }
}

impl<F> fmt::Debug for InProcessConnector<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessConnector").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<F> Connector for InProcessConnector<F>
where
    F: Fn(ServerChannels) -> BoxFuture<()> + Send + Sync + 'static,
{
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let (name, server) = (Arc::clone(&self.name), Arc::clone(&self.server));
        Box::pin(async move {
            let (queue, incoming) = mpsc::channel(QUEUE);
            let (outgoing, from) = mpsc::channel(QUEUE);
            let (close, closing) = watch::channel(false);
            let server = tokio::spawn(server(ServerChannels {
                incoming,
                outgoing,
                principal: events.user().map(|user| user.principal().clone()),
            }));
            tokio::spawn(pump(from, server, closing, events));
            Ok(Arc::new(InProcessLink { name, queue, closing: close }) as Arc<dyn Link>)
        })
    }

    fn carries_headers(&self) -> bool {
        false
    }

    fn is_process(&self) -> bool {
        false
    }

    fn kind(&self) -> &'static str {
        "built-in"
    }
}

/// The runtime's end of a server task. Dropping it closes the link.
struct InProcessLink {
    name: Arc<str>,
    queue: mpsc::Sender<Bytes>,
    closing: watch::Sender<bool>,
}

impl Link for InProcessLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let sent = self.queue.try_send(message.bytes().clone());
        sent.map_err(|error| {
            let (kind, why) = match error {
                TrySendError::Full(_) => (FaultKind::Overloaded, "has too many messages waiting"),
                TrySendError::Closed(_) => (FaultKind::BackendDown, "has ended"),
            };
            let text = format!("built-in backend `{}` {why}", self.name);
            Fault::new(kind, text).with_str("backend", &self.name)
        })
    }

    fn close(&self) {
        self.closing.send_replace(true);
    }
}

/// Forwards the server's messages until it ends or the link is closed. Reports the end once.
async fn pump(
    mut from: mpsc::Receiver<Bytes>,
    mut server: JoinHandle<()>,
    mut closing: watch::Receiver<bool>,
    events: Arc<dyn LinkEvents>,
) {
    let why = loop {
        tokio::select! {
            biased;
            () = closed(&mut closing) => break "was closed by the gateway",
            message = from.recv() => match message {
                Some(bytes) => {
                    if let Some(room) = events.room() {
                        room.await;
                    }
                    events.received(bytes, None, None);
                }
                None => break ending(timeout(END_WAIT, &mut server).await),
            },
            ended = &mut server => {
                // A task that the server spawned may still hold the sender.
                while let Ok(bytes) = from.try_recv() {
                    events.received(bytes, None, None);
                }
                break ending(Ok(ended));
            }
        }
    };
    server.abort();
    events.lost(why.to_owned());
}

fn ending(ended: Result<Result<(), JoinError>, Elapsed>) -> &'static str {
    match ended {
        Ok(Ok(())) => "has ended",
        Ok(Err(_)) => "has failed by a mistake of its own",
        Err(_) => "speaks no more",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::recorder::{outbound, recorder};

    fn echo(mut visitor: ServerChannels) -> BoxFuture<()> {
        Box::pin(async move {
            while let Some(bytes) = visitor.incoming.recv().await {
                assert_ne!(bytes, "panic");
                if bytes == "end" || visitor.outgoing.send(bytes).await.is_err() {
                    return;
                }
            }
        })
    }

    #[tokio::test]
    async fn messages_go_to_the_server_and_come_back() {
        let connector = InProcessConnector::new("demo", echo);
        assert_eq!((connector.kind(), connector.is_process()), ("built-in", false));
        let (events, mut recorded) = recorder();
        let link = connector.open(events).await.unwrap();
        assert_eq!(link.pid(), None);
        for text in ["{\"a\":1}", "{\n}"] {
            link.send(outbound(text, None)).unwrap();
            assert_eq!(recorded.message().await, text);
        }
        link.close();
        assert_eq!(recorded.lost().await, "was closed by the gateway");
        recorded.silence().await;
        link.send(outbound("{}", None)).unwrap_err();
    }

    #[tokio::test]
    async fn the_end_of_the_server_is_told_once() {
        let connector = InProcessConnector::new("demo", echo);
        let (events, mut recorded) = recorder();
        let link = connector.open(events).await.unwrap();
        link.send(outbound("{}", None)).unwrap();
        link.send(outbound("end", None)).unwrap();
        assert_eq!(recorded.message().await, "{}");
        assert_eq!(recorded.lost().await, "has ended");
        let fault = link.send(outbound("{}", None)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::BackendDown);
        link.close();
        recorded.silence().await;
    }

    #[tokio::test]
    async fn a_dropped_link_ends_the_server_and_a_panic_ends_the_link() {
        let connector = InProcessConnector::new("demo", echo);
        let (events, mut recorded) = recorder();
        drop(connector.open(events).await.unwrap());
        assert_eq!(recorded.lost().await, "was closed by the gateway");

        let (events, mut recorded) = recorder();
        let link = connector.open(events).await.unwrap();
        link.send(outbound("panic", None)).unwrap();
        assert_eq!(recorded.lost().await, "has failed by a mistake of its own");
    }

    #[tokio::test]
    async fn a_full_queue_is_refused() {
        let stuck = |visitor: ServerChannels| -> BoxFuture<()> {
            Box::pin(async move {
                let _held = visitor;
                std::future::pending::<()>().await;
            })
        };
        let connector = InProcessConnector::new("demo", stuck);
        let (events, mut recorded) = recorder();
        let link = connector.open(events).await.unwrap();
        let sent = (0..1000).take_while(|_| link.send(outbound("{}", None)).is_ok()).count();
        assert_eq!(sent, QUEUE);
        let fault = link.send(outbound("{}", None)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Overloaded);
        link.close();
        recorded.lost().await;
    }
}
