//! How a running process is reached: HTTP on a Unix socket in the data folder, one per process, for its user only.

mod ask;
mod socket;
mod stream;

pub use ask::{AskError, ask, ask_for_long, send, tell};
pub use socket::{ControlSocket, SocketError, sockets};
pub use stream::LineStream;

use signalbox_assembly::data_dir::DataDir;
use signalbox_runtime::Gateway;
use signalbox_transport::control_front;
use signalbox_transport::router::Router;
use std::sync::Arc;

/// An open socket and what it answers.
pub struct Control {
    socket: ControlSocket,
    gateway: Arc<Gateway>,
    router: Arc<Router>,
}

impl Control {
    /// Opens the socket of this process. Without one everything works but `signalbox status`, so failing to is only logged.
    #[must_use]
    pub fn open(data_dir: &DataDir, gateway: &Arc<Gateway>, router: &Arc<Router>) -> Option<Self> {
        match ControlSocket::open(data_dir) {
            Ok(socket) => Some(Self { socket, gateway: Arc::clone(gateway), router: Arc::clone(router) }),
            Err(error) => {
                tracing::warn!(%error, "`signalbox status` will not see this process");
                None
            }
        }
    }

    /// Does the work, and answers meanwhile if there is a socket.
    pub async fn beside<T>(control: Option<&Self>, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            done = &mut work => done,
            () = Self::serve(control) => work.await,
        }
    }

    /// Answers, if there is a socket, until dropped.
    pub async fn serve(control: Option<&Self>) {
        match control {
            Some(Self { socket, gateway, router }) => {
                control_front::serve(socket.listener(), Arc::clone(gateway), Arc::clone(router)).await;
            }
            None => std::future::pending().await,
        }
    }
}
