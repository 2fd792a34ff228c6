//! All names of a request's subject, so that a pattern matches every spelling a client may use.
//!
//! A tool, prompt or resource has its own name at its backend and a qualified one (`backend__tool`, `backend+uri`); the
//! client may have used either. Servers read a URI in different ways ([`signalbox_wire::uri_readings`]), so that
//! `/a/%2e%2e/private` is `/private` for some. A pattern that forbids something matches if any of these forms does. One
//! that permits something, or follows a "not", must match all of them, because the backend decides which one it reads.
//! Patterns are read in the same ways, so that one that is written like the URI permits it.

use crate::catalog::NameStyle;
use crate::name_pattern::NamePattern;
use signalbox_wire::method;
use signalbox_wire::uri_readings::{Omission, UriReadings};
use std::borrow::Cow;

/// Names of one subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubjectNames<'a> {
    style: NameStyle,
    written: NameForm<'a>,
    /// Other readings of a URI.
    read: Vec<NameForm<'a>>,
    /// True for a URI whose readings cannot be determined: every pattern forbids it, and only its own permits it.
    unreadable: bool,
}

/// One spelling of the subject.
#[derive(Clone, PartialEq, Eq, Debug)]
struct NameForm<'a> {
    own: Cow<'a, str>,
    qualified: Option<String>,
    /// True if the own name may also be the qualified name of another entry.
    ambiguous: bool,
    omits: Omission,
}

impl NameForm<'_> {
    fn any(&self, fits: &dyn Fn(&str) -> bool) -> bool {
        fits(&self.own) || self.qualified.as_deref().is_some_and(fits)
    }

    fn fits(&self, fits: &dyn Fn(&str) -> bool, strictly: bool) -> bool {
        let own = !(strictly && self.ambiguous) && fits(&self.own);
        own || self.qualified.as_deref().is_some_and(fits)
    }
}

impl<'a> SubjectNames<'a> {
    /// Returns the names of a subject; `own` is the backend's name for it.
    #[must_use]
    pub fn new(style: NameStyle, own: Cow<'a, str>, backend: Option<&str>) -> Self {
        let form = |own: Cow<'a, str>, omits| NameForm {
            qualified: backend.map(|backend| style.qualify(backend, &own)),
            ambiguous: style == NameStyle::Name && backend.is_some() && own.contains("__"),
            own,
            omits,
        };
        let readings = match style {
            NameStyle::Name => UriReadings::Known(Vec::new()),
            NameStyle::Uri => UriReadings::of(&own),
        };
        let (read, unreadable) = match readings {
            UriReadings::Known(all) => {
                (all.into_iter().map(|reading| form(reading.text.into(), reading.omits)).collect(), false)
            }
            UriReadings::Unreadable => (Vec::new(), true),
        };
        Self { style, written: form(own, Omission::default()), read, unreadable }
    }

    /// Returns the names of a subject that the client named by its qualified name.
    #[must_use]
    pub fn divided(style: NameStyle, spelled: &str) -> Option<Self> {
        let (backend, own) = style.divide(spelled)?;
        Some(Self::new(style, own.into_owned().into(), Some(backend)))
    }

    /// Returns the canonical name of the subject, independent of the client's spelling.
    #[must_use]
    pub fn canonical(&self) -> &str {
        self.written.qualified.as_deref().unwrap_or(&self.written.own)
    }

    /// Returns the other readings of a URI. `None` if they cannot be determined.
    #[must_use]
    pub fn readings(&self) -> Option<impl ExactSizeIterator<Item = &str>> {
        (!self.unreadable).then(|| self.read.iter().map(|form| &*form.own))
    }

    /// Returns true if one of the patterns matches the subject. `strictly` must be set if a match permits something.
    #[must_use]
    pub fn meet(&self, strictly: bool, patterns: &[NamePattern]) -> bool {
        let any = |fits: &dyn Fn(&NamePattern) -> bool| patterns.iter().any(fits);
        if self.style == NameStyle::Name {
            return any(&|pattern| self.written.fits(&|name| pattern.fits(name), strictly));
        }
        if any(&|pattern| pattern.is_all() || self.written.any(&|name| name == pattern.text())) {
            return true;
        }
        if self.unreadable {
            return !strictly && !patterns.is_empty();
        }
        if strictly {
            return any(&|pattern| self.written.any(&|name| pattern.fits(name)))
                && self
                    .read
                    .iter()
                    .all(|form| any(&|pattern| form.any(&|name| pattern.fits_reading(name, form.omits))));
        }
        // Some servers remove a trailing slash.
        let touches = |pattern: &NamePattern, name: &str| {
            pattern.fits_read(name) || name.strip_suffix('/').is_some_and(|name| pattern.fits_read(name))
        };
        let mut forms = std::iter::once(&self.written).chain(&self.read);
        forms.any(|form| any(&|pattern| form.any(&|name| touches(pattern, name))))
    }
}

/// Returns the naming style of a method's subjects. Those of completions have either style.
#[must_use]
pub fn style_of(name: &str) -> NameStyle {
    match name {
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => NameStyle::Uri,
        _ => NameStyle::Name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meets(uri: &str, strictly: bool, pattern: &str) -> bool {
        let names = SubjectNames::new(NameStyle::Uri, uri.into(), Some("files"));
        names.meet(strictly, &[NamePattern::new(pattern)])
    }

    #[test]
    fn what_forbids_fits_any_reading_and_what_permits_all_of_them() {
        for odd in [
            "file:///public/../private/x",
            "file:///public/..\\private/x",
            "file:///public/.\t./private/x",
            "file:///public/.\n./private/x",
            "file:///public/..%2fprivate/x",
            "file:///public/..%252fprivate/x",
            "file:///public/%2e%2E/private/x",
            "file:///private%2fx",
            "file:///public//../private/x",
            "file:///public/..//private/x",
            "file:///private//x",
            "file://localhost/private/x",
            "file:/private/x",
            "file:private/x",
            "file:////private/x",
            "file://public/../private/x",
            "file:///public?/../private/x",
            "file:///public;a/..;b/private/x",
            "FILE:///private/x",
            " file:///private/x",
            "file:///private/x\u{a0}",
            "/private/x",
            "file%3a///private/x",
            "file:///private/x%00",
        ] {
            assert!(meets(odd, false, "file:///private/*"), "{odd:?} is read as private");
            assert!(meets(odd, false, "files+file:///private/*"), "{odd:?} is read as private");
            assert!(!meets(odd, true, "file:///public*"), "{odd:?} is not public for all");
            assert!(meets(odd, true, odd) && meets(odd, true, "*"), "{odd:?} is permitted by itself");
        }
        for (uri, exact) in [
            ("file:///private/x?y", "file:///private/x"),
            ("file:///private/x#y", "file:///private/x"),
            ("file:///private/x/", "file:///private/x"),
            ("http://h/x;y", "http://h/x"),
            ("http://u@h:80/x", "http://h/x"),
            ("http://H./x", "http://h/x"),
            ("http:/h/x", "http://h/x"),
            ("http://127.1/x", "http://127.0.0.1/x"),
            ("http://\u{ff48}/x", "http://h/x"),
            ("note://a/../b", "note://b"),
            ("file:///C|/x", "file:///C:/x"),
            ("C:\\x", "file:///C:/x"),
        ] {
            assert!(meets(uri, false, exact) && !meets(uri, true, exact), "{uri} may be read as {exact}");
        }
    }

    #[test]
    fn a_pattern_is_read_like_the_uris_that_it_permits() {
        for (uri, pattern) in [
            ("file:///srv/a%20b/c", "file:///srv/a%20b/*"),
            ("file:///srv/docs/", "file:///srv/docs/*"),
            ("db://h/t?limit=1", "db://h/t?limit=*"),
            ("db://H/t/a%2Fb", "db://H/t/*"),
            ("note:///a/b", "note:///a/*"),
            ("urn:isbn:1", "urn:isbn:*"),
            ("private/x", "private/*"),
            ("https://u@h:443/x#y", "files+https://u@h:443/*"),
            ("ui://Page/%41", "ui://files+Page/*"),
            ("note://x/100%", "note://x/*"),
            ("note://x/a*b", "note://x/a?b"),
        ] {
            assert!(meets(uri, true, pattern), "{pattern} permits {uri}");
        }
        for (uri, pattern) in [
            ("db://h/t", "db://h/t?limit=*"),
            ("file:///srv/secret.key?.txt", "file:///srv/*.txt"),
            ("file:///srv/secret#.txt", "file:///srv/secret?.txt"),
            ("file:///srv/abc", "file:///srv/a%2a"),
            ("file:///public/%2e%2e/x", "file:///public/*"),
        ] {
            assert!(!meets(uri, true, pattern), "{pattern} does not permit {uri}");
        }
        assert!(!meets("file:///notes", false, "note*") && !meets("db://h/t", false, "db://h/t?limit=*"));
    }

    #[test]
    fn a_name_has_no_readings() {
        let tool = SubjectNames::new(NameStyle::Name, "files__read".into(), Some("evil"));
        let meets = |strictly, pattern| tool.meet(strictly, &[NamePattern::new(pattern)]);
        assert!(meets(false, "files__*") && meets(true, "evil__*"));
        assert!(!meets(true, "files__*"), "another backend's name permits nothing");
    }
}
