//! Building blocks of MCP servers inside the process: messages, revisions, sessions and an argument parser.
//!
//! A server implements [`Toolbox`], which describes its tools and runs calls. [`serve`] speaks MCP for it over two
//! bounded channels, one JSON-RPC message per item, in both eras of the protocol: a request with the `_meta` keys of
//! 2026-07-28 is answered statelessly, all others belong to the session that `initialize` opened.
//!
//! ```text
//! bytes ─► message ─► revision ─┬─► answered at once (initialize, ping, discover, list)
//!                               └─► a task per call ─► toolbox ─► reply ─► bytes
//! ```

pub mod arguments;
pub mod message;
mod progress;
mod reply;
pub mod revision;
mod session;
mod toolbox;

pub use arguments::{Arguments, BadArguments};
pub use progress::Progress;
pub use toolbox::{Answer, CallOutcome, RunningCall, ServerDescription, Toolbox, read_only};

use bytes::Bytes;
use session::ServerSession;
use tokio::sync::mpsc::{Receiver, Sender};

/// Serves messages until the peer closes the connection.
///
/// When `incoming` ends, running calls are completed and answered. When `outgoing` is closed or this future is dropped,
/// they are aborted.
pub async fn serve(toolbox: impl Toolbox, mut incoming: Receiver<Bytes>, outgoing: Sender<Bytes>) {
    let mut session = ServerSession::new(toolbox, outgoing.clone());
    let mut open = true;
    while open || session.is_busy() {
        let reply = tokio::select! {
            message = incoming.recv(), if open => match message {
                Some(bytes) => session.receive(&bytes),
                None => {
                    open = false;
                    None
                }
            },
            reply = session.next_finished(), if session.is_busy() => reply,
            () = outgoing.closed() => return,
        };
        if let Some(bytes) = reply
            && outgoing.send(bytes).await.is_err()
        {
            return;
        }
    }
}
