//! How a running process is reached: HTTP on a Unix socket in the data folder, one per process, for its user only.

mod ask;
mod call;
mod server;
mod socket;
mod stream;

pub use ask::{AskError, ask, send, tell};
pub use call::{Api, Call, Lines, Reply};
pub use server::{Action, Doing, Route};
pub use socket::{ControlSocket, SocketError, sockets};
pub use stream::LineStream;

use crate::data_dir::DataDir;
use server::Served;

/// The state of the process, as JSON.
pub const STATUS: &str = "/api/v1/status";
/// Reads the configuration again (POST).
pub const RELOAD: &str = "/api/v1/reload";
/// The version of the program, as JSON.
pub const VERSION: &str = "/api/v1/version";

/// An open socket and what it answers.
pub struct Control {
    socket: ControlSocket,
    served: Served,
}

impl Control {
    /// Opens the socket of this process. Without one everything works but `signalbox status`, so failing to is only logged.
    #[must_use]
    pub fn open(data_dir: &DataDir, route: Route, action: Action, api: Api) -> Option<Self> {
        match ControlSocket::open(data_dir) {
            Ok(socket) => Some(Self { socket, served: Served { route, action, api } }),
            Err(error) => {
                tracing::warn!(%error, "`signalbox status` will not see this process");
                None
            }
        }
    }

    /// Answers, if there is a socket, until dropped.
    pub async fn serve(control: Option<&Self>) {
        match control {
            Some(control) => server::serve(control.socket.listener(), control.served.clone()).await,
            None => std::future::pending().await,
        }
    }
}
