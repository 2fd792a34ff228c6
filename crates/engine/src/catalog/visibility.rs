use super::ListKind;
use crate::caller::Caller;
use std::cell::OnceCell;
use std::sync::Arc;

/// A group of callers who see the same entries. Rendered lists are cached by it, so it must cover everything that
/// [`Visibility::lists`] depends on, the version of the policy included.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Audience(pub Arc<str>);

/// A tool, prompt, resource or template of a backend.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EntryRef<'a> {
    /// Which list it is in.
    pub kind: ListKind,
    /// The backend.
    pub backend: &'a str,
    /// The backend's own name or URI for it.
    pub name: &'a str,
    /// What the backend lists it as, if it does.
    pub definition: Option<&'a [u8]>,
}

/// Decides which entries callers see. Lists, `initialize`, `server/discover`, completion and calls all ask it, so
/// they agree.
pub trait Visibility: Send + Sync {
    /// True while everybody sees everything, so that nobody need be asked about. Called for every message.
    fn is_open(&self) -> bool {
        false
    }

    /// The audience that this caller belongs to.
    fn audience(&self, caller: &Caller) -> Audience;

    /// The one backend that the caller sees, where it is given no choice: it calls its tools by their own names.
    fn sole_backend(&self, _: &Caller) -> Option<&str> {
        None
    }

    /// True if the caller sees anything of this backend.
    fn shows_backend(&self, caller: &Caller, backend: &str) -> bool;

    /// True if the caller finds this entry in lists.
    fn lists(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        self.shows_backend(caller, entry.backend)
    }

    /// True if the caller may learn that this entry exists when it uses it: whatever is listed, and what is told to be
    /// switched off or denied. Anything else is answered like an unknown name.
    fn reveals(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        self.lists(caller, entry)
    }

    /// True if the caller may go on with what it began with this entry: hear of its changes, ask about its tasks. That is whatever is
    /// listed, and what can be used without being listed.
    fn keeps(&self, caller: &Caller, entry: &EntryRef<'_>) -> bool {
        self.lists(caller, entry)
    }

    /// True if a switch has turned the entry or the caller off.
    fn is_off(&self, _: &Caller, _: &EntryRef<'_>) -> bool {
        false
    }
}

/// Everybody sees everything.
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

/// The entries that one caller sees.
#[derive(Clone)]
pub struct Sight<'a> {
    visibility: &'a dyn Visibility,
    caller: &'a Caller,
    audience: OnceCell<Audience>,
}

impl<'a> Sight<'a> {
    /// The sight of this caller.
    #[must_use]
    pub fn of(visibility: &'a dyn Visibility, caller: &'a Caller) -> Self {
        Self { visibility, caller, audience: OnceCell::new() }
    }

    /// The audience that the caller belongs to.
    #[must_use]
    pub fn audience(&self) -> &Audience {
        self.audience.get_or_init(|| self.visibility.audience(self.caller))
    }

    /// The one backend that is seen, where there is no choice.
    #[must_use]
    pub fn sole(&self) -> Option<&str> {
        self.visibility.sole_backend(self.caller)
    }

    /// True if anything of this backend is seen.
    #[must_use]
    pub fn backend(&self, backend: &str) -> bool {
        self.visibility.shows_backend(self.caller, backend)
    }

    /// True if this entry is found in lists.
    #[must_use]
    pub fn lists(&self, entry: &EntryRef<'_>) -> bool {
        self.visibility.lists(self.caller, entry)
    }

    /// True if what was begun with this entry may go on.
    #[must_use]
    pub fn keeps(&self, entry: &EntryRef<'_>) -> bool {
        self.visibility.keeps(self.caller, entry)
    }

    /// True if a switch has turned this entry or the caller off.
    #[must_use]
    pub fn is_off(&self, entry: &EntryRef<'_>) -> bool {
        self.visibility.is_off(self.caller, entry)
    }

    /// True if this entry is not answered like an unknown one when it is used.
    #[must_use]
    pub fn reveals(&self, entry: &EntryRef<'_>) -> bool {
        self.visibility.reveals(self.caller, entry)
    }
}

impl std::fmt::Debug for Sight<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sight").field(self.audience()).finish()
    }
}
