//! Which callers may use which backends (`backends.NAME.callers`).

use signalbox_engine::Caller;
use signalbox_engine::catalog::{Audience, Visibility};
use signalbox_wire::glob::{self, Wildcards};
use std::sync::Arc;

/// The backends that only some callers may use, each with patterns for their principals. Everybody may use the others.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BackendCallers(Arc<[(Box<str>, Vec<String>)]>);

impl BackendCallers {
    /// Restricts these backends to the principals that fit the patterns.
    pub fn new(backends: impl IntoIterator<Item = (Box<str>, Vec<String>)>) -> Self {
        Self(backends.into_iter().collect())
    }

    /// True if no backend is restricted.
    #[must_use]
    pub fn is_everybody(&self) -> bool {
        self.0.is_empty()
    }
}

/// An audience is the list of restricted backends that it may use, so its meaning survives a reload.
impl Visibility for BackendCallers {
    fn audience(&self, caller: &Caller) -> Audience {
        let principal = caller.principal().as_str();
        let open = self.0.iter().filter(|(_, patterns)| {
            patterns.iter().any(|pattern| glob::fits(pattern, principal, Wildcards::StarAndQuestion))
        });
        Audience(open.map(|(backend, _)| &**backend).collect::<Vec<_>>().join(" ").into())
    }

    fn shows_backend(&self, audience: &Audience, backend: &str) -> bool {
        let closed = self.0.iter().any(|(name, _)| **name == *backend);
        !closed || audience.0.split(' ').any(|open| open == backend)
    }
}
