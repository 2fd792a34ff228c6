//! Why a backend cannot be reached with what is configured about it.

use crate::http1::TargetError;
use std::sync::Arc;

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
