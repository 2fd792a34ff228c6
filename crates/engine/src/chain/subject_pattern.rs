//! Which subjects an interceptor means.

use super::Case;
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
}
