//! Credentials that backends know callers by: that of the gateway, or those of each principal or token.

use super::{BackendEntry, Catalog, Snapshot};

impl Catalog {
    /// Sets whether a backend may show each principal something else.
    pub fn set_private(&mut self, backend: &str, private: bool) {
        self.change(backend, |entry| entry.private = private);
    }

    /// Sets whether a private backend may show each token of a principal something else.
    pub fn set_per_token(&mut self, backend: &str, per_token: bool) {
        self.change(backend, |entry| entry.per_token = per_token);
    }

    /// Sets whether each principal has a credential at a backend that no other principal uses.
    pub fn set_own_credentials(&mut self, backend: &str, own_credentials: bool) {
        self.change(backend, |entry| entry.own_credentials = own_credentials);
    }

    fn change(&mut self, backend: &str, change: impl FnOnce(&mut BackendEntry)) {
        if let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) {
            change(entry);
        }
    }
}

impl Snapshot {
    /// Returns true if each principal has a credential at this backend that no other principal uses, so that the
    /// backend tells their tasks apart.
    #[must_use]
    pub fn has_own_credentials(&self, backend: &str) -> bool {
        self.backends().iter().any(|entry| entry.own_credentials && *entry.name == *backend)
    }
}
