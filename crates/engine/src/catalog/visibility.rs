use super::ListKind;
use crate::caller::Caller;
use std::sync::Arc;

/// A group of callers who see the same entries. Rendered lists are cached by it, so it must cover everything that
/// [`Visibility::shows`] depends on.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Audience(pub Arc<str>);

/// Decides which entries callers see. Lists, `initialize`, `server/discover`, completion and calls all ask it, so
/// they agree.
pub trait Visibility: Send + Sync {
    /// The audience that this caller belongs to.
    fn audience(&self, caller: &Caller) -> Audience;

    /// True if the audience sees anything of this backend.
    fn shows_backend(&self, audience: &Audience, backend: &str) -> bool;

    /// True if the audience sees this entry, named as its backend names it.
    fn shows(&self, audience: &Audience, _kind: ListKind, backend: &str, _name: &str) -> bool {
        self.shows_backend(audience, backend)
    }
}

/// The entries that one caller sees.
#[derive(Clone)]
pub struct Sight<'a> {
    visibility: &'a dyn Visibility,
    audience: Audience,
}

impl<'a> Sight<'a> {
    /// The sight of this caller.
    #[must_use]
    pub fn of(visibility: &'a dyn Visibility, caller: &Caller) -> Self {
        Self { visibility, audience: visibility.audience(caller) }
    }

    /// The audience it stands for.
    #[must_use]
    pub fn audience(&self) -> &Audience {
        &self.audience
    }

    /// True if anything of this backend is seen.
    #[must_use]
    pub fn backend(&self, backend: &str) -> bool {
        self.visibility.shows_backend(&self.audience, backend)
    }

    /// True if this entry is seen.
    #[must_use]
    pub fn entry(&self, kind: ListKind, backend: &str, name: &str) -> bool {
        self.visibility.shows(&self.audience, kind, backend, name)
    }
}

impl std::fmt::Debug for Sight<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sight").field(&self.audience).finish()
    }
}
