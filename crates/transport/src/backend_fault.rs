//! What is wrong with a backend, in the same words whichever transport finds out: faults while it runs, and its configuration.

use crate::http1::{ConnectError, HttpTarget, TargetError};
use crate::tls;
use rustix::io::Errno;
use signalbox_engine::{Fault, FaultKind};
use std::fmt::Display;
use std::sync::Arc;

/// A fault of this backend. `text` goes on after its name.
pub(crate) fn fault(name: &str, kind: FaultKind, text: impl Display) -> Fault {
    Fault::new(kind, format!("backend `{name}` {text}")).with_str("backend", name)
}

/// A connection with it could not be opened. That the gateway has no open file left says nothing about the backend.
pub(crate) fn unreachable(name: &str, target: &HttpTarget, error: &ConnectError) -> Fault {
    let kind = if is_out_of_files(error) { FaultKind::Overloaded } else { FaultKind::BackendDown };
    fault(name, kind, format_args!("cannot be reached at {target}: {error}"))
}

fn is_out_of_files(error: &ConnectError) -> bool {
    let ConnectError::Io(error) = error else { return false };
    [Errno::MFILE, Errno::NFILE].iter().any(|one| error.raw_os_error() == Some(one.raw_os_error()))
}

/// What a backend did that ended the TLS connection with this error. A server of TLS 1.3 looks at our certificate after the
/// handshake is over for us.
pub(crate) fn ended_tls(error: &rustls::Error) -> String {
    format!("ended the TLS connection: {}", tls::words(error))
}

/// What is wrong with the configured address, TLS or headers of a backend.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// The address, or the TLS that it asks for, cannot be used.
    #[error("backend `{backend}`: {error}")]
    Target {
        /// The backend.
        backend: Arc<str>,
        /// What is wrong.
        error: TargetError,
    },
    /// A header that the transport sets itself.
    #[error("backend `{backend}`: header {header} is set by the gateway and cannot be configured")]
    ReservedHeader {
        /// The backend.
        backend: Arc<str>,
        /// The header.
        header: String,
    },
}
