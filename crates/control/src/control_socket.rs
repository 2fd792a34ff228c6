//! Control socket of a process: HTTP on a Unix socket in the data folder, one per process, accessible to its user only.

mod ask;
mod process_address;
mod stream;

pub use ask::{AskError, ask, ask_for_long, send, tell};
pub use process_address::ProcessAddress;
pub use stream::LineStream;

use signalbox_assembly::data_dir::{DataDir, DataDirError};
use signalbox_runtime::Gateway;
use signalbox_transport::control_front;
use signalbox_transport::router::Router;
use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::UnixListener;

/// An open control socket and the router that it serves.
pub struct Control {
    socket: ControlSocket,
    gateway: Arc<Gateway>,
    router: Arc<Router>,
}

impl Control {
    /// Opens the socket of this process. A failure is only logged, because just `signalbox status` needs the socket.
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

    /// Runs `work` and serves the socket meanwhile, if there is one.
    pub async fn beside<T>(control: Option<&Self>, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            done = &mut work => done,
            () = Self::serve(control) => work.await,
        }
    }

    /// Serves the socket, if there is one. Never completes.
    pub async fn serve(control: Option<&Self>) {
        match control {
            Some(Self { socket, gateway, router }) => {
                control_front::serve(socket.listener(), Arc::clone(gateway), Arc::clone(router)).await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Maximum number of file names tried: process ids repeat where containers share a data folder.
const NAMES: u32 = 16;

/// Reason why the control socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The folder cannot be created.
    #[error(transparent)]
    Folder(#[from] DataDirError),
    /// The socket cannot be created.
    #[error("the control socket {} cannot be opened: {error}", path.display())]
    Bind {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
}

/// Listener on the control socket. Dropping it removes the file.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Opens the socket. Needs a Tokio runtime.
    ///
    /// # Errors
    /// If the folder or the socket cannot be created. The limit of the system for the path is about 100 bytes.
    pub fn open(data_dir: &DataDir) -> Result<Self, SocketError> {
        let folder = data_dir.run()?;
        let mut number = 1;
        loop {
            let path = folder.join(name(number));
            match bind(&path) {
                Ok(listener) => return Ok(Self { listener, path }),
                Err(error) if error.kind() == ErrorKind::AddrInUse && number < NAMES => number += 1,
                Err(error) => return Err(SocketError::Bind { path, error }),
            }
        }
    }

    /// Returns the bound listener, to accept connections on.
    #[must_use]
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn name(number: u32) -> String {
    let pid = std::process::id();
    if number == 1 { format!("{pid}.sock") } else { format!("{pid}-{number}.sock") }
}

/// Binds the socket. Its folder is closed to other users, so none can connect before the mode is set.
fn bind(path: &Path) -> io::Result<UnixListener> {
    remove_stale(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Removes a socket without a listener. Returns true if there is a listener.
fn remove_stale(path: &Path) -> bool {
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            let _ = std::fs::remove_file(path);
            false
        }
        Err(error) => error.kind() != ErrorKind::NotFound,
        Ok(_) => true,
    }
}

/// Returns the sockets of running processes in this folder, ordered by name. Removes stale ones.
///
/// # Errors
/// If the folder exists but cannot be read.
pub fn sockets(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .filter(|path| remove_stale(path))
        .collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_private_goes_with_its_process_and_stale_ones_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let data_dir = DataDir::prepare(root.path()).unwrap();
        let folder = data_dir.run().unwrap();
        let stale = folder.join("1.sock");
        drop(UnixListener::bind(&stale).unwrap());
        assert!(stale.exists());

        let first = ControlSocket::open(&data_dir).unwrap();
        let second = ControlSocket::open(&data_dir).unwrap();
        assert_eq!(first.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let mut expected = [first.path().to_owned(), second.path().to_owned()];
        expected.sort();
        assert_eq!(sockets(&folder).unwrap(), expected);
        assert!(!stale.exists());

        drop((first, second));
        assert!(sockets(&folder).unwrap().is_empty());
        assert!(sockets(&root.path().join("none")).unwrap().is_empty());
    }
}
