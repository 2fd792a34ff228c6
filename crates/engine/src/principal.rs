//! The identity on whose behalf calls run.

use std::sync::Arc;

/// The identity on whose behalf a call runs. There is no default: every constructor names one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A loopback caller of the HTTP front while authentication is not required.
    #[must_use]
    pub fn anonymous() -> Self {
        Self(Arc::from("anonymous"))
    }

    /// The person who started `signalbox stdio`: whoever owns the pipe.
    #[must_use]
    pub fn local(user: &str) -> Self {
        Self(Arc::from(format!("local:{user}")))
    }

    /// Whoever holds the key of a client certificate that a trusted authority has signed, by the certificate's SHA-256.
    #[must_use]
    pub fn certificate(fingerprint: &str) -> Self {
        Self(Arc::from(format!("cert:{fingerprint}")))
    }

    /// The principal of this name, as [`Principal::as_str`] returned it.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// True for the owner of a pipe.
    #[must_use]
    pub fn owns_pipe(&self) -> bool {
        self.0.starts_with("local:")
    }

    /// The name, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The name as it appears in logs, facts and keys.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Principal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
