//! How a running process is reached: HTTP on a Unix socket in the data folder, one per process, for its user only.

mod ask;
mod server;
mod socket;

pub use ask::{AskError, ask, tell};
pub use server::{Action, Doing, Route};
pub use socket::{ControlSocket, SocketError, sockets};

use crate::data_dir::DataDir;
use std::sync::Arc;

/// The state of the process, as JSON.
pub const STATUS: &str = "/api/v1/status";
/// Reads the configuration again (POST).
pub const RELOAD: &str = "/api/v1/reload";
/// The version of the program, as JSON.
pub const VERSION: &str = "/api/v1/version";

/// An open socket and what it answers.
pub struct Control {
    socket: ControlSocket,
    route: Route,
    action: Action,
}

impl Control {
    /// Opens the socket of this process. Without one everything works but `signalbox status`, so failing to is only logged.
    #[must_use]
    pub fn open(data_dir: &DataDir, route: Route, action: Action) -> Option<Self> {
        match ControlSocket::open(data_dir) {
            Ok(socket) => Some(Self { socket, route, action }),
            Err(error) => {
                tracing::warn!(%error, "`signalbox status` will not see this process");
                None
            }
        }
    }

    /// Answers, if there is a socket, until dropped.
    pub async fn serve(control: Option<&Self>) {
        match control {
            Some(control) => {
                let (route, action) = (Arc::clone(&control.route), Arc::clone(&control.action));
                server::serve(control.socket.listener(), route, action).await;
            }
            None => std::future::pending().await,
        }
    }
}
