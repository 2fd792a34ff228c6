//! Demo backend: a small MCP server inside the gateway's process.
//!
//! It runs only while no backend is configured, so that a fresh installation has tools to call. Its three tools cannot
//! do harm: `directory_list` lists file names below one root folder, `echo` returns its input, and `countdown` is
//! deliberately slow, to demonstrate progress and cancellation.

mod accounts;
mod bucket;
mod catalog;
mod connection;
mod countdown;
mod directory;
mod echo;
mod entry;
mod fault;
mod root;
mod toolbox;
mod walk;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender};

use connection::Connection;
use root::Root;
use toolbox::Toolbox;

/// Error at the start of the demo backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DemoError {
    /// The root folder is missing, is not a folder, or is not readable.
    #[error("the demo folder {} cannot be opened: {kind}", .path.display())]
    RootUnusable {
        /// Folder as given in the configuration.
        path: PathBuf,
        /// Error kind reported by the operating system.
        kind: io::ErrorKind,
    },
}

/// Demo backend for one peer. Clones share the folder.
#[derive(Debug, Clone)]
pub struct DemoServer {
    toolbox: Arc<Toolbox>,
}

impl DemoServer {
    /// Opens `root`, the only folder that `directory_list` can show.
    ///
    /// The folder stays open. If it is renamed or replaced, the tools still use the original one. Reads a few paths, so
    /// call this at startup and not on the hot path.
    pub fn new(root: PathBuf) -> Result<DemoServer, DemoError> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let opened = Root::open(&root, home.as_deref())
            .map_err(|error| DemoError::RootUnusable { path: root, kind: error.kind() })?;
        Ok(DemoServer { toolbox: Arc::new(Toolbox::new(opened)) })
    }

    /// Serves messages until the peer closes the connection.
    ///
    /// When `incoming` ends, running calls are completed and answered. When `outgoing` is closed or this future is
    /// dropped, they are aborted.
    pub async fn serve(self, incoming: Receiver<Bytes>, outgoing: Sender<Bytes>) {
        signalbox_embedded::serve(Connection::new(self.toolbox), incoming, outgoing).await;
    }
}
