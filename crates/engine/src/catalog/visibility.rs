use super::ListKind;
use crate::caller::Caller;
use std::cell::OnceCell;
use std::sync::Arc;

/// Group of callers who see the same entries. Rendered lists are cached by it, so it must cover everything that
/// [`Visibility::lists`] depends on, including the version of the policy.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Audience(pub Arc<str>);

/// A tool, prompt, resource or template of a backend.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EntryRef<'a> {
    /// List that has the entry.
    pub kind: ListKind,
    /// Configured name of the backend.
    pub backend: &'a str,
    /// The backend's own name or URI for the entry.
    pub name: &'a str,
    /// The entry as its backend lists it, if it does.
    pub definition: Option<&'a [u8]>,
}

/// Decides which entries callers see. Lists, `initialize`, `server/discover`, completion and calls all use it, so that
/// they agree.
pub trait Visibility: Send + Sync {
    /// Returns true while every caller sees every entry, so that the other methods need not be called. Called for every
    /// message.
    fn is_open(&self) -> bool {
        false
    }

    /// Returns the audience that this caller belongs to.
    fn audience(&self, caller: &Caller) -> Audience;

    /// Returns the single backend that the caller is limited to, if any. The caller uses that backend's own tool names.
    fn sole_backend(&self, _: &Caller) -> Option<&str> {
        None
    }

    /// Returns true if the caller sees any part of this backend.
    fn shows_backend(&self, caller: &Caller, backend: &str) -> bool;

    /// Returns true if the caller finds this entry in lists.
    fn lists(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        self.shows_backend(caller, entry.backend)
    }

    /// Returns true if the caller may learn that this entry exists when it uses it: listed entries, and those that are
    /// reported as switched off or denied. Others are answered like an unknown name.
    fn reveals(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        self.lists(caller, entry)
    }

    /// Returns true if the caller may continue what it began with this entry, such as following its changes or asking
    /// about its tasks. That holds for listed entries, and for those that can be used without being listed.
    fn keeps(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        self.lists(caller, entry)
    }

    /// Returns true if a switch has turned the entry or the caller off.
    fn is_off(&self, _: &Caller, _: &EntryRef<'_>) -> bool {
        false
    }
}

/// Visibility that shows every entry to every caller.
#[derive(Copy, Clone, Debug)]
pub struct OpenToAll;

impl Visibility for OpenToAll {
    fn is_open(&self) -> bool {
        true
    }

    fn audience(&self, _: &Caller) -> Audience {
        Audience::default()
    }

    fn shows_backend(&self, _: &Caller, _: &str) -> bool {
        true
    }
}

/// Entries that one caller sees.
#[derive(Clone)]
pub struct CallerView<'a> {
    visibility: &'a dyn Visibility,
    caller: &'a Caller,
    audience: OnceCell<Audience>,
}

impl<'a> CallerView<'a> {
    /// Returns the sight of this caller.
    #[must_use]
    pub fn of(visibility: &'a dyn Visibility, caller: &'a Caller) -> Self {
        Self { visibility, caller, audience: OnceCell::new() }
    }

    /// Returns the audience that the caller belongs to.
    #[must_use]
    pub fn audience(&self) -> &Audience {
        self.audience.get_or_init(|| self.visibility.audience(self.caller))
    }

    /// Returns the single backend that the caller is limited to, if any.
    #[must_use]
    pub fn sole(&self) -> Option<&str> {
        self.visibility.sole_backend(self.caller)
    }

    /// Returns true if any part of this backend is visible.
    #[must_use]
    pub fn backend(&self, backend: &str) -> bool {
        self.visibility.shows_backend(self.caller, backend)
    }

    /// Returns true if this entry appears in lists.
    #[must_use]
    pub fn lists(&self, entry: &EntryRef<'_>) -> bool {
        self.visibility.lists(self.caller, entry)
    }

    /// Returns true if the caller may continue what it began with this entry.
    #[must_use]
    pub fn keeps(&self, entry: &EntryRef<'_>) -> bool {
        self.visibility.keeps(self.caller, entry)
    }

    /// Returns true if a switch has turned this entry or the caller off.
    #[must_use]
    pub fn is_off(&self, entry: &EntryRef<'_>) -> bool {
        self.visibility.is_off(self.caller, entry)
    }

    /// Returns true if using this entry is not answered like an unknown name.
    #[must_use]
    pub fn reveals(&self, entry: &EntryRef<'_>) -> bool {
        self.visibility.reveals(self.caller, entry)
    }
}

impl std::fmt::Debug for CallerView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sight").field(self.audience()).finish()
    }
}
