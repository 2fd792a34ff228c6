//! Tools, prompts, resources and templates of backends, and patterns of them.

use signalbox_engine::catalog::{EntryRef, ListKind, Style};
use signalbox_engine::subject_names::SubjectNames;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::glob::{Wildcards, fits};
use signalbox_wire::method;

/// The answer to somebody who may not know of an entry: the same as for a name that nothing has.
#[must_use]
pub fn unknown(kind: ListKind, asked: &str) -> Fault {
    let short: String = asked.chars().take(200).collect();
    match kind {
        ListKind::Tools => Fault::new(FaultKind::UnknownTool, format!("Unknown tool: {short}")),
        ListKind::Prompts => Fault::new(FaultKind::UnknownPrompt, format!("Unknown prompt: {short}")),
        ListKind::Resources | ListKind::Templates => {
            Fault::new(FaultKind::ResourceNotFound, format!("Resource not found: {short}")).with_str("uri", asked)
        }
    }
}

/// A pattern `BACKEND` or `BACKEND/NAME`, both with `*` and `?`.
///
/// Unlike patterns of rules it knows an entry by its own name alone, and is asked without a message, so that lists and calls
/// are decided alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryPattern {
    backend: Box<str>,
    name: Box<str>,
}

impl EntryPattern {
    /// Reads a pattern. A backend alone means all that it has.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (backend, name) = text.split_once('/').unwrap_or((text, "*"));
        Self { backend: backend.into(), name: name.into() }
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

    /// True if any way to write the entry's name fits: for patterns that forbid.
    #[must_use]
    pub fn touches(&self, entry: &EntryRef<'_>) -> bool {
        self.fits(entry, false)
    }

    /// True if every way to write the entry's name fits: for patterns that permit.
    #[must_use]
    pub fn covers(&self, entry: &EntryRef<'_>) -> bool {
        self.fits(entry, true)
    }

    fn fits(&self, entry: &EntryRef<'_>, strictly: bool) -> bool {
        let fits = |text: &str| fits(&self.name, text, Wildcards::StarAndQuestion);
        self.fits_backend(entry.backend)
            && match entry.kind.style() {
                Style::Name => fits(entry.name),
                Style::Uri if &*self.name == "*" => true,
                Style::Uri => SubjectNames::new(method::RESOURCES_READ, entry.name.into(), None).fit(strictly, &fits),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(kind: ListKind, backend: &'a str, name: &'a str) -> EntryRef<'a> {
        EntryRef { kind, backend, name, definition: None }
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
