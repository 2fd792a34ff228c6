//! Address of a running process: its control socket, or its listener with a key.

use super::ask::AskError;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Request, request};
use signalbox_transport::tls::BackTlsSpec;
use signalbox_transport::web_client::{self, AnyStream};
use std::fmt;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

/// Address of a process.
#[derive(Clone)]
pub enum ProcessAddress {
    /// Control socket in its data folder, which only its owner can open.
    Socket(PathBuf),
    /// Listener, on this machine or another one.
    Web {
        /// Address of the listener. The path is ignored.
        url: String,
        /// API key of a caller with the role `admin`.
        key: Option<String>,
    },
}

impl From<&Path> for ProcessAddress {
    fn from(socket: &Path) -> Self {
        Self::Socket(socket.to_owned())
    }
}

impl From<&PathBuf> for ProcessAddress {
    fn from(socket: &PathBuf) -> Self {
        Self::Socket(socket.clone())
    }
}

impl From<&Self> for ProcessAddress {
    fn from(address: &Self) -> Self {
        address.clone()
    }
}

impl fmt::Display for ProcessAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Web { url, .. } => f.write_str(url),
        }
    }
}

impl fmt::Debug for ProcessAddress {
    /// Prints the address without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessAddress({self})")
    }
}

impl ProcessAddress {
    /// Connects. Returns the stream and a request builder with the headers for this address.
    pub(super) async fn open(&self) -> Result<(Box<dyn AnyStream>, request::Builder), AskError> {
        match self {
            Self::Socket(path) => {
                let stream = UnixStream::connect(path).await?;
                Ok((Box::new(stream), Request::builder().header(HOST, "signalbox")))
            }
            Self::Web { url, key } => {
                let (stream, authority) = web_client::open(url, &BackTlsSpec::default(), key.is_some()).await?;
                let mut request = Request::builder().header(HOST, authority);
                if let Some(key) = key {
                    let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| AskError::Key)?;
                    value.set_sensitive(true);
                    request = request.header(AUTHORIZATION, value);
                }
                Ok((stream, request))
            }
        }
    }
}
