//! Faults of backends, in the same words for every transport: errors at runtime and errors in the configuration.

use crate::http1::{ConnectError, HttpTarget, TargetError};
use crate::tls;
use rustix::io::Errno;
use signalbox_engine::{Fault, FaultKind};
use std::fmt::Display;
use std::sync::Arc;

/// Creates a fault of this backend. `text` continues after its name.
pub(crate) fn fault(name: &str, kind: FaultKind, text: impl Display) -> Fault {
    Fault::new(kind, format!("backend `{name}` {text}")).with_str("backend", name)
}

/// Creates the fault for a failed connection. A lack of file descriptors in the gateway does not count against the
/// backend.
pub(crate) fn unreachable(name: &str, target: &HttpTarget, error: &ConnectError) -> Fault {
    let kind = if is_out_of_files(error) { FaultKind::Overloaded } else { FaultKind::BackendDown };
    fault(name, kind, format_args!("cannot be reached at {target}: {error}"))
}

fn is_out_of_files(error: &ConnectError) -> bool {
    let ConnectError::Io(error) = error else { return false };
    [Errno::MFILE, Errno::NFILE].iter().any(|one| error.raw_os_error() == Some(one.raw_os_error()))
}

/// Describes a TLS error by which the backend ended the connection. A TLS 1.3 server checks our certificate after the
/// handshake has completed on our side.
pub(crate) fn ended_tls(error: &rustls::Error) -> String {
    format!("ended the TLS connection: {}", tls::words(error))
}

/// Error in the configured address, TLS or headers of a backend.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// The address, or its TLS configuration, cannot be used.
    #[error("backend `{backend}`: {error}")]
    Target {
        /// Name of the backend.
        backend: Arc<str>,
        /// Error in the address or TLS configuration.
        error: TargetError,
    },
    /// A configured header is one that the transport sets itself.
    #[error("backend `{backend}`: header {header} is set by the gateway and cannot be configured")]
    ReservedHeader {
        /// Name of the backend.
        backend: Arc<str>,
        /// Name of the header.
        header: String,
    },
}
