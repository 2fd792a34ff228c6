//! Which subjects an interceptor means.

use super::Case;
use crate::catalog::{EntryRef, Style};
use crate::subject_names::SubjectNames;
use signalbox_wire::glob::{Wildcards, fits};
use signalbox_wire::method;

/// A pattern `BACKEND` or `BACKEND/NAME`, both with `*` and `?`, for the tools, prompts and resources of backends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubjectPattern {
    backend: Box<str>,
    name: Box<str>,
}

impl SubjectPattern {
    /// Reads a pattern. A backend alone means all that it has.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (backend, name) = text.split_once('/').unwrap_or((text, "*"));
        Self { backend: backend.into(), name: name.into() }
    }

    /// True if it means everything.
    #[must_use]
    pub fn is_all(&self) -> bool {
        (&*self.backend, &*self.name) == ("*", "*")
    }

    /// True if it means the subject of this message. A request to a backend that names no subject is meant by the backend alone.
    #[must_use]
    pub fn fits(&self, case: &Case<'_>) -> bool {
        let fits = |pattern: &str, text: &str| fits(pattern, text, Wildcards::StarAndQuestion);
        let names = case.exchange.and_then(|exchange| exchange.subject_names());
        case.backend.is_some_and(|backend| fits(&self.backend, backend))
            && names.is_none_or(|names| names.fit(false, &|text| fits(&self.name, text)))
    }

    /// True if it means the tool that this backend calls so.
    #[must_use]
    pub fn fits_tool(&self, backend: &str, name: &str) -> bool {
        let fits = |pattern: &str, text: &str| fits(pattern, text, Wildcards::StarAndQuestion);
        let names = SubjectNames::new(method::TOOLS_CALL, name.into(), Some(backend));
        fits(&self.backend, backend) && names.fit(false, &|text| fits(&self.name, text))
    }

    /// True if it means everything that its backend has.
    #[must_use]
    pub fn is_whole_backend(&self) -> bool {
        &*self.name == "*"
    }

    /// True if it means anything of this backend.
    #[must_use]
    pub fn fits_backend(&self, backend: &str) -> bool {
        fits(&self.backend, backend, Wildcards::StarAndQuestion)
    }

    /// True if any way to write the entry's own name fits: for patterns that forbid. Unlike [`Self::fits`] it needs no message, so
    /// that lists and calls are decided alike.
    #[must_use]
    pub fn touches(&self, entry: &EntryRef<'_>) -> bool {
        self.fits_own_name(entry, false)
    }

    /// True if every way to write the entry's own name fits: for patterns that permit.
    #[must_use]
    pub fn covers(&self, entry: &EntryRef<'_>) -> bool {
        self.fits_own_name(entry, true)
    }

    fn fits_own_name(&self, entry: &EntryRef<'_>, strictly: bool) -> bool {
        let fits = |text: &str| fits(&self.name, text, Wildcards::StarAndQuestion);
        self.fits_backend(entry.backend)
            && match entry.kind.style() {
                Style::Name => fits(entry.name),
                Style::Uri if self.is_whole_backend() => true,
                Style::Uri => SubjectNames::new(method::RESOURCES_READ, entry.name.into(), None).fit(strictly, &fits),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ListKind;

    fn entry<'a>(kind: ListKind, backend: &'a str, name: &'a str) -> EntryRef<'a> {
        EntryRef { kind, backend, name, definition: None }
    }

    #[test]
    fn what_forbids_a_uri_touches_any_way_to_write_it_and_what_permits_covers_all() {
        let entry = entry(ListKind::Resources, "files", "file:///public/../private/a");
        let (public, private) =
            (SubjectPattern::new("files/file:///public/*"), SubjectPattern::new("f*/file:///private/*"));
        assert!(public.touches(&entry) && private.touches(&entry));
        assert!(!public.covers(&entry) && !private.covers(&entry));
        assert!(SubjectPattern::new("files").covers(&entry) && !SubjectPattern::new("db").covers(&entry));
    }

    #[test]
    fn a_tool_is_meant_by_its_own_name() {
        let entry = entry(ListKind::Tools, "evil", "files__read");
        assert!(!SubjectPattern::new("files/*").touches(&entry) && SubjectPattern::new("evil/files__*").covers(&entry));
    }
}
