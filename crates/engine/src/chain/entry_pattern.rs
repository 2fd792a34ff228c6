//! Patterns for the subjects that an interceptor applies to.

use super::Case;
use crate::catalog::{EntryRef, NameStyle};
use crate::name_pattern::NamePattern;
use crate::subject_names::SubjectNames;
use signalbox_wire::glob::{Wildcards, fits};
use std::slice::from_ref;

/// Pattern `BACKEND` or `BACKEND/NAME`, both with `*` and `?`, for the tools, prompts and resources of backends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryPattern {
    backend: Box<str>,
    name: NamePattern,
}

/// An entry with the readings of its URI, if it has one. Built once and matched against all patterns.
#[derive(Clone, Debug)]
pub struct EntryNames<'a> {
    backend: &'a str,
    name: &'a str,
    /// Readings of the URI; `None` for an entry without one.
    uri: Option<SubjectNames<'a>>,
}

impl<'a> EntryNames<'a> {
    /// Reads the names of an entry.
    #[must_use]
    pub fn of(entry: &EntryRef<'a>) -> Self {
        let read = || SubjectNames::new(NameStyle::Uri, entry.name.into(), None);
        Self { backend: entry.backend, name: entry.name, uri: (entry.kind.style() == NameStyle::Uri).then(read) }
    }
}

impl EntryPattern {
    /// Parses a pattern. A backend alone matches all of its entries.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (backend, name) = text.split_once('/').unwrap_or((text, "*"));
        Self { backend: backend.into(), name: NamePattern::new(name) }
    }

    /// Returns true if the pattern matches everything.
    #[must_use]
    pub fn is_all(&self) -> bool {
        &*self.backend == "*" && self.is_whole_backend()
    }

    /// Returns true if the pattern matches the subject of this message, given its names. A request to a backend without
    /// a subject is matched by the backend alone.
    #[must_use]
    pub fn fits(&self, case: &Case<'_>, names: Option<&SubjectNames<'_>>) -> bool {
        case.backend.is_some_and(|backend| self.fits_backend(backend))
            && names.is_none_or(|names| names.meet(false, from_ref(&self.name)))
    }

    /// Returns true if the pattern matches the tool with this name on this backend.
    #[must_use]
    pub fn fits_tool(&self, backend: &str, name: &str) -> bool {
        let names = SubjectNames::new(NameStyle::Name, name.into(), Some(backend));
        self.fits_backend(backend) && names.meet(false, from_ref(&self.name))
    }

    /// Returns true if the pattern matches all entries of its backend.
    #[must_use]
    pub fn is_whole_backend(&self) -> bool {
        self.name.text() == "*"
    }

    /// Returns true if the pattern matches any entry of this backend.
    #[must_use]
    pub fn fits_backend(&self, backend: &str) -> bool {
        fits(&self.backend, backend, Wildcards::StarAndQuestion)
    }

    /// Returns true if any reading of the entry's own name fits: for patterns that forbid. Unlike [`Self::fits`] it
    /// needs no message, so that lists and calls are decided alike.
    #[must_use]
    pub fn touches(&self, entry: &EntryNames<'_>) -> bool {
        self.fits_own_name(entry, false)
    }

    /// Returns true if every reading of the entry's own name fits: for patterns that permit.
    #[must_use]
    pub fn covers(&self, entry: &EntryNames<'_>) -> bool {
        self.fits_own_name(entry, true)
    }

    fn fits_own_name(&self, entry: &EntryNames<'_>, strictly: bool) -> bool {
        self.fits_backend(entry.backend)
            && match &entry.uri {
                None => self.name.fits(entry.name),
                Some(_) if self.is_whole_backend() => true,
                Some(names) => names.meet(strictly, from_ref(&self.name)),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ListKind;

    fn entry<'a>(kind: ListKind, backend: &'a str, name: &'a str) -> EntryNames<'a> {
        EntryNames::of(&EntryRef { kind, backend, name, definition: None })
    }

    #[test]
    fn what_forbids_a_uri_touches_any_way_to_write_it_and_what_permits_covers_all() {
        let entry = entry(ListKind::Resources, "files", "file:///public/../private/a");
        let (public, private) =
            (EntryPattern::new("files/file:///public/*"), EntryPattern::new("f*/file:///private/*"));
        assert!(public.touches(&entry) && private.touches(&entry));
        assert!(!public.covers(&entry) && !private.covers(&entry));
        assert!(EntryPattern::new("files").covers(&entry) && !EntryPattern::new("db").covers(&entry));
    }

    #[test]
    fn a_tool_is_meant_by_its_own_name() {
        let entry = entry(ListKind::Tools, "evil", "files__read");
        assert!(!EntryPattern::new("files/*").touches(&entry) && EntryPattern::new("evil/files__*").covers(&entry));
    }
}
