//! The demo backend: a small MCP server inside the gateway's own process.
//!
//! It exists only while no backend is configured, so that a fresh install has something to call. It offers three
//! tools that cannot do harm: `directory_list` looks at file names below one root folder, `echo` returns its input,
//! and `countdown` is slow on purpose so that progress and cancellation can be watched.

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

/// Why the demo backend cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DemoError {
    /// The root folder is missing, is not a folder, or may not be read.
    #[error("the demo folder {} cannot be opened: {kind}", .path.display())]
    RootUnusable {
        /// The folder as it was given.
        path: PathBuf,
        /// What the operating system said.
        kind: io::ErrorKind,
    },
}

/// The demo backend, ready to serve one peer; a clone serves another one from the same folder.
#[derive(Debug, Clone)]
pub struct DemoServer {
    toolbox: Arc<Toolbox>,
}

impl DemoServer {
    /// Opens `root`, the only folder that `directory_list` will ever show.
    ///
    /// The folder is held open from here on: if it is renamed or replaced later, the tools keep looking at the one
    /// that was chosen. This reads a few paths and is meant for start-up, not for the hot path.
    pub fn new(root: PathBuf) -> Result<DemoServer, DemoError> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let opened = Root::open(&root, home.as_deref())
            .map_err(|error| DemoError::RootUnusable { path: root, kind: error.kind() })?;
        Ok(DemoServer { toolbox: Arc::new(Toolbox::new(opened)) })
    }

    /// Answers messages until the peer hangs up.
    ///
    /// When `incoming` ends, calls that are still running are finished and answered. When `outgoing` is closed, or
    /// this future is dropped, they are stopped.
    pub async fn serve(self, incoming: Receiver<Bytes>, outgoing: Sender<Bytes>) {
        signalbox_embedded::serve(Connection::new(self.toolbox), incoming, outgoing).await;
    }
}
