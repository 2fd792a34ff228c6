//! All names of a request's subject, so that a pattern matches however the client spelled it.
//!
//! A tool, prompt or resource has its own name at its backend and a qualified one (`backend__tool`, `backend+uri`);
//! the client may have used either. A URI also has a normalised form (RFC 3986, 6.2.2), in which `/a/%2e%2e/private`
//! is `/private`. A pattern that forbids something matches if any of these forms does. One that permits something, or
//! follows a "not", must match all of them, because the backend decides which one it reads.

use crate::catalog::Style;
use signalbox_wire::endpoint::without_dots;
use signalbox_wire::method;
use std::borrow::Cow;

/// The names of one subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubjectNames<'a> {
    written: Form<'a>,
    /// The normalised form, if it differs.
    normalised: Option<Form<'a>>,
}

/// One spelling of the subject.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Form<'a> {
    own: Cow<'a, str>,
    qualified: Option<String>,
    /// True if the own name may also be the qualified name of another entry.
    ambiguous: bool,
}

impl Form<'_> {
    fn fits(&self, fits: &dyn Fn(&str) -> bool, strictly: bool) -> bool {
        let own = !(strictly && self.ambiguous) && fits(&self.own);
        own || self.qualified.as_deref().is_some_and(fits)
    }
}

impl<'a> SubjectNames<'a> {
    /// The names of the subject of a request of this method; `own` is the backend's name for it.
    #[must_use]
    pub fn new(method: &str, own: Cow<'a, str>, backend: Option<&str>) -> Self {
        let style = style_of(method);
        let form = |own: Cow<'a, str>| Form {
            qualified: backend.map(|backend| style.qualify(backend, &own)),
            ambiguous: style == Style::Name && backend.is_some() && own.contains("__"),
            own,
        };
        let normalised = (style == Style::Uri).then(|| normalise(&own)).flatten();
        Self { normalised: normalised.map(|uri| form(uri.into())), written: form(own) }
    }

    /// The names of a subject that the client named by its qualified name.
    #[must_use]
    pub fn divided(method: &str, spelled: &str) -> Option<Self> {
        let (backend, own) = style_of(method).divide(spelled)?;
        Some(Self::new(method, own.into_owned().into(), Some(backend)))
    }

    /// The canonical name of the subject, however the client spelled it.
    #[must_use]
    pub fn canonical(&self) -> &str {
        self.written.qualified.as_deref().unwrap_or(&self.written.own)
    }

    /// True if `fits` holds for the subject. `strictly` must be set if a match permits something.
    pub fn fit(&self, strictly: bool, fits: &dyn Fn(&str) -> bool) -> bool {
        let written = self.written.fits(fits, strictly);
        match &self.normalised {
            Some(form) if written == strictly => form.fits(fits, strictly),
            _ => written,
        }
    }
}

/// How the subjects of a method are named.
fn style_of(name: &str) -> Style {
    match name {
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => Style::Uri,
        _ => Style::Name,
    }
}

/// A URI as RFC 3986 normalises it without knowing its scheme: scheme and host in lower case, unreserved characters
/// not encoded, no dot segments. `None` if that is how it is written already.
#[must_use]
pub fn normalise(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':').unwrap_or(("", uri));
    let (rest, fragment) = split_keeping(rest, '#');
    let (rest, query) = split_keeping(rest, '?');
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            (Some(&rest[..end]), &rest[end..])
        }
        None => (None, rest),
    };
    let mut out = scheme.to_ascii_lowercase();
    if uri.contains(':') {
        out.push(':');
    }
    if let Some(authority) = authority {
        out.push_str("//");
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        if let Some(user) = user {
            out.push_str(user);
            out.push('@');
        }
        out.push_str(&decode_unreserved(host).to_ascii_lowercase());
    }
    let path = decode_unreserved(path);
    out.push_str(&if path.starts_with('/') { without_dots(&path) } else { path });
    out.push_str(&decode_unreserved(query));
    out.push_str(&decode_unreserved(fragment));
    (out != uri).then_some(out)
}

/// Splits before the first `mark`.
fn split_keeping(text: &str, mark: char) -> (&str, &str) {
    text.split_at(text.find(mark).unwrap_or(text.len()))
}

/// Decodes characters that need not be encoded, and writes the other escapes in upper case.
fn decode_unreserved(text: &str) -> String {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(plain) = rest.find('%') else {
            out.push_str(rest);
            break;
        };
        out.push_str(&rest[..plain]);
        at += plain;
        match (hex(at + 1), hex(at + 2)) {
            (Some(high), Some(low)) => {
                let byte = (high * 16 + low) as u8;
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    out.push(char::from(byte));
                } else {
                    out.push_str(&text[at..at + 3].to_ascii_uppercase());
                }
                at += 3;
            }
            _ => {
                out.push('%');
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_normalised_as_rfc_3986_has_it() {
        for (uri, normal) in [
            ("file:///a/../private/x", "file:///private/x"),
            ("file:///a/%2e%2E/private/x", "file:///private/x"),
            ("FILE://LocalHost/%41/./b", "file://localhost/A/b"),
            ("file:///private/..", "file:///"),
            ("file:///../../x", "file:///x"),
            ("db://h/a%2fb", "db://h/a%2Fb"),
            ("x:opaque%2e", "x:opaque."),
            ("http://u@H/a?q=%7e#%41", "http://u@h/a?q=~#A"),
            ("file:///100%/é/../b%", "file:///100%/b%"),
        ] {
            assert_eq!(normalise(uri).as_deref(), Some(normal), "{uri}");
            assert_eq!(normalise(normal), None, "{normal}");
        }
        for same in ["", "file:///a/b", "ui://x", "plain", "/", "a:b:c", "//h/x"] {
            assert_eq!(normalise(same), None, "{same}");
        }
    }

    #[test]
    fn what_forbids_fits_any_form_and_what_permits_all_of_them() {
        let names = SubjectNames::new(method::RESOURCES_READ, "file:///public/../private/a".into(), Some("files"));
        let under = |start: &'static str| move |name: &str| name.starts_with(start);
        assert!(names.fit(false, &under("file:///private/")) && names.fit(false, &under("file:///public/")));
        assert!(names.fit(false, &under("files+file:///private/")));
        assert!(!names.fit(true, &under("file:///public/")) && !names.fit(true, &under("file:///private/")));
        let tool = SubjectNames::new(method::TOOLS_CALL, "files__read".into(), Some("evil"));
        assert!(tool.fit(false, &under("files__")) && tool.fit(true, &under("evil__")));
        assert!(!tool.fit(true, &under("files__")), "another backend's name permits nothing");
    }
}
