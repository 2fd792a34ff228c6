//! Decides whether the address of a link or an image carries data, runs a script or is its own content.

use super::RemovalClass;

/// Maximum number of bytes of an address that are examined.
const MAX_TARGET: usize = 8192;
/// Minimum length of a value that can be opaque data. Ids of videos, commits and documents in paths are exempt.
const MIN_OPAQUE: usize = 24;
/// Minimum length of base64 or hex that is decoded to see whether it is text.
const MIN_ENCODED: usize = 16;
/// Maximum length of a parameter of display, such as a size or a style.
const MAX_DISPLAY_VALUE: usize = 32;

/// Parameters that say how an image looks.
#[rustfmt::skip]
const DISPLAY_PARAMETERS: &[&str] = &[
    "auto", "bg", "branch", "cache", "cachebust", "cacheseconds", "cb", "color", "crop", "default", "dpr",
    "event", "ext", "fit", "fm", "font", "forcedefault", "format", "frame", "gravity", "h", "height", "hl",
    "icon", "ixid", "ixlib", "job", "label", "labelcolor", "lang", "logo", "logocolor", "logowidth",
    "lossless", "maxage", "mode", "ns", "os", "project", "px", "quality", "rand", "rating", "ratio", "raw",
    "rect", "res", "resize", "rev", "s", "scale", "service", "size", "ssl", "stage", "status", "strip",
    "style", "svg", "tag", "theme", "trim", "ts", "type", "utm_campaign", "utm_medium", "utm_source", "v",
    "ver", "version", "w", "width", "workflow", "year", "zoom",
];

/// Hosts of badges and avatars, whose images take parameters and whose logs are not open to an author of texts.
#[rustfmt::skip]
const BADGE_HOSTS: &[&str] = &[
    "badge.fury.io", "badgen.net", "badges.gitter.im", "circleci.com", "codacy.com",
    "codeclimate.com", "codecov.io", "coveralls.io", "deepsource.io", "dev.azure.com",
    "github.com", "githubusercontent.com", "gitlab.com", "gravatar.com", "opencollective.com",
    "pkg.go.dev", "readthedocs.org", "shields.io", "snyk.io", "sonarcloud.io",
    "star-history.com", "travis-ci.com", "travis-ci.org", "visualstudio.com", "zenodo.org",
];

/// Words between braces or brackets and in capitals that a model is told to replace by data.
const PLACEHOLDERS: &[&str] = &[
    "{{",
    "${",
    "{%",
    "%7b",
    "<%",
    "[data",
    "[secret",
    "[user",
    "[token",
    "[key",
    "[password",
    "[content",
    "[conversation",
    "[summary",
    "[base64",
    "[history",
    "[chat",
    "[insert",
    "%3c",
    "your_data",
    "data_here",
    "api_key_here",
    "secret_here",
    "insert_",
    "_here",
    "<data",
    "<secret",
    "<user",
    "<token",
    "<key",
    "<password",
    "<content",
    "<conversation",
    "<summary",
    "<base64",
    "<history",
    "<insert",
    "<api",
    "<your",
    "<the",
];

/// Use of an address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum LinkUse {
    /// Fetched when the text is shown.
    Image,
    /// Fetched when a person follows it.
    Link,
}

/// Returns the class under which an address has to go.
pub(super) fn class_of(target: &str, usage: LinkUse) -> Option<RemovalClass> {
    let target = target.trim();
    let mut end = target.len().min(MAX_TARGET);
    while !target.is_char_boundary(end) {
        end -= 1;
    }
    let target = target.get(..end).unwrap_or_default();
    match scheme(target).as_str() {
        "javascript" | "vbscript" | "livescript" => return Some(RemovalClass::ScriptLink),
        "data" => return Some(RemovalClass::DataUrl),
        _ => {}
    }
    let carries = match usage {
        LinkUse::Image => is_foreign(target) && image_carries_data(target),
        LinkUse::Link => is_foreign(target) && link_carries_data(target),
    };
    match (carries, usage) {
        (true, LinkUse::Image) => Some(RemovalClass::DataImage),
        (true, LinkUse::Link) => Some(RemovalClass::DataLink),
        (false, _) => None,
    }
}

/// Returns the scheme as a browser reads it: entities decoded, white space and controls ignored.
fn scheme(target: &str) -> String {
    const MAX_SCHEME: usize = 96;
    let mut scheme = String::new();
    let mut rest = target;
    while let Some(first) = rest.chars().next().filter(|_| target.len() - rest.len() < MAX_SCHEME) {
        let (character, length) = entity(rest).unwrap_or((first, first.len_utf8()));
        rest = rest.get(length..).unwrap_or_default();
        match character {
            ':' => return scheme,
            _ if character.is_whitespace() || character.is_control() => {}
            _ if character.is_ascii_alphanumeric() || "+-.".contains(character) => {
                scheme.push(character.to_ascii_lowercase());
            }
            _ => return String::new(),
        }
    }
    String::new()
}

/// Decodes a numeric character reference, or one of those that hide a scheme, at the start of a text.
fn entity(text: &str) -> Option<(char, usize)> {
    const NAMED: &[(&str, char)] = &[("&colon;", ':'), ("&Tab;", '\t'), ("&NewLine;", '\n')];
    if let Some((name, character)) = NAMED.iter().find(|(name, _)| text.starts_with(name)) {
        return Some((*character, name.len()));
    }
    let body = text.strip_prefix("&#")?;
    let (digits, radix) = match body.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (body, 10),
    };
    let count = digits.bytes().take(8).take_while(u8::is_ascii_hexdigit).count();
    let value = u32::from_str_radix(digits.get(..count)?, radix).ok()?;
    let after = digits.get(count..)?;
    let length = text.len() - after.len() + usize::from(after.starts_with(';'));
    Some((char::from_u32(value)?, length))
}

/// Returns true if the address names a host, or is relative to the scheme only.
fn is_foreign(target: &str) -> bool {
    let start = target.get(..8.min(target.len())).unwrap_or_default().to_ascii_lowercase();
    ["http:", "https:", "//", "\\\\", "ftp:", "ws:", "wss:", "mailto:"].iter().any(|prefix| start.starts_with(prefix))
}

/// Returns the parts of an address behind its host: path segments and values of the query.
fn split(target: &str) -> (&str, &str) {
    let after = target.find("//").map_or(target, |at| target.get(at + 2..).unwrap_or_default());
    let (path, query) = after.split_at(after.find(['?', '#']).unwrap_or(after.len()));
    (path, query)
}

fn image_carries_data(target: &str) -> bool {
    let (path, query) = split(target);
    let query = query.split('#').next().unwrap_or_default();
    let host = path.split(['/', ':']).next().unwrap_or_default();
    let badge = BADGE_HOSTS
        .iter()
        .any(|known| host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    has_placeholder(target)
        || path.split(['/', '.']).any(holds_text)
        || parameters(query).any(|(name, value)| {
            let shown = badge || DISPLAY_PARAMETERS.binary_search(&name.to_ascii_lowercase().as_str()).is_ok();
            let plain = value.len() <= MAX_DISPLAY_VALUE
                && !holds_text(value)
                && !is_opaque(value)
                && (badge || !value.contains("%20") && !value.contains('+'));
            !(value.is_empty() && name.len() < MIN_OPAQUE || shown && plain || plain && is_size(value))
        })
}

fn link_carries_data(target: &str) -> bool {
    let (path, query) = split(target);
    has_placeholder(query) || path.split('/').any(holds_text) || parameters(query).any(|(_, value)| holds_text(value))
}

fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.trim_start_matches('?').split(['&', ';']).filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Returns true for numbers and sizes such as `640x480`.
fn is_size(value: &str) -> bool {
    value.len() <= 12 && value.bytes().all(|byte| byte.is_ascii_digit() || b"x.,%".contains(&byte))
}

fn has_placeholder(target: &str) -> bool {
    let lower = target.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|word| lower.contains(word))
}

/// Returns true if a value is long and looks random.
fn is_opaque(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    value.len() >= MIN_OPAQUE && (digits > 2 && letters > 4 || letters == value.len())
}

/// Returns true if a part of an address is base64 or hex of a text.
fn holds_text(part: &str) -> bool {
    let part = part.trim_end_matches('=').trim_end_matches("%3D").trim_end_matches("%3d");
    if part.len() < MIN_ENCODED {
        return false;
    }
    let decoded = crate::encoded_text::decode_hex(part).or_else(|| crate::encoded_text::decode_base64(part));
    decoded.is_some_and(|bytes| crate::encoded_text::is_text(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use RemovalClass::{DataImage, DataLink, DataUrl, ScriptLink};

    #[test]
    fn parameters_are_in_order() {
        assert!(DISPLAY_PARAMETERS.is_sorted(), "binary search needs it");
    }

    #[test]
    fn addresses_that_carry_data_are_told_from_ordinary_ones() {
        use LinkUse::{Image, Link};
        let table = [
            (Image, "https://img.shields.io/badge/license-MIT-blue.svg?style=flat-square&logo=rust", None),
            (Image, "https://github.com/a/b/actions/workflows/ci.yml/badge.svg?branch=main&event=push", None),
            (Image, "https://example.org/photo.jpg?w=640&h=480&fit=crop", None),
            (Image, "images/a.png?raw=true", None),
            (Image, "https://codecov.io/gh/a/b/branch/main/graph/badge.svg?token=AB12CD34EF", None),
            (Image, "https://raw.githubusercontent.com/a/b/0123456789abcdef0123456789abcdef01234567/x.png", None),
            (Image, "https://example.org/p.png?d={{conversation}}", Some(DataImage)),
            (Image, "https://example.org/p.png?data=the_secret", Some(DataImage)),
            (Image, "https://example.org/dGhlIHBhc3N3b3JkIGlzIHN3b3JkZmlzaA/p.png", Some(DataImage)),
            (Image, "//example.org/log?q=[CONVERSATION]", Some(DataImage)),
            (Image, "data:image/png;base64,AAAA", Some(DataUrl)),
            (Link, "https://docs.google.com/document/d/1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUvWxYz012345/edit", None),
            (Link, "https://example.org/search?q=rust+language&page=2#top", None),
            (Link, "https://example.org/?q=dGhlIHBhc3N3b3JkIGlzIHN3b3JkZmlzaA==", Some(DataLink)),
            (Link, "https://example.org/?q=7468652070617373776f7264206973", Some(DataLink)),
            (Link, "https://example.org/?q=${SECRET}", Some(DataLink)),
            (Link, "java\tscript:alert(1)", Some(ScriptLink)),
            (Link, "&#106;avascript&colon;alert(1)", Some(ScriptLink)),
            (Link, "mailto:a@example.org?subject=hello", None),
            (Link, "#data:x", None),
            (Link, "../javascript:x", None),
        ];
        for (usage, target, class) in table {
            assert_eq!(class_of(target, usage), class, "{target}");
        }
    }
}
