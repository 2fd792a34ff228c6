//! Values without the characters that a filter reports, where that leaves the meaning of the value.

use super::control_filter::check_control;
use super::finding::FilterKind;
use super::path_filter::check_path;
use super::text_readings::text_readings;
use crate::invisible::is_invisible;
use crate::privacy::{self, PrivacyClass, PrivacyClasses};

/// Returns a value that passes the filter and is as close to the given one as possible, or `None` if there is none: a
/// command does not become harmless by leaving out characters. A value that needs no change is returned as it is, so
/// that the function may be applied twice.
#[must_use]
pub fn sanitise(value: &str, kind: FilterKind) -> Option<String> {
    match kind {
        FilterKind::Control => Some(without_control(value)),
        FilterKind::PathTraversal => within_folder(value),
        FilterKind::Credential => {
            let found = privacy::find(value, PrivacyClasses::NONE.with(PrivacyClass::Credential));
            Some(privacy::redact(value, &found))
        }
        FilterKind::Shell | FilterKind::Sql | FilterKind::Template | FilterKind::Ssrf(_) => None,
    }
}

fn without_control(value: &str) -> String {
    if check_control(value, false).is_none() {
        return value.to_owned();
    }
    value.chars().filter(|char| !is_invisible(*char)).collect()
}

/// Resolves the dots of a path and drops those that climb.
fn within_folder(value: &str) -> Option<String> {
    if check_path(value).is_none() {
        return Some(value.to_owned());
    }
    let readings = text_readings(value);
    let decoded = readings.last()?.replace('\\', "/");
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split('/') {
        let name = segment
            .split(';')
            .next()
            .unwrap_or_default()
            .trim_matches(|char: char| char.is_whitespace() || is_invisible(char));
        match name {
            "" | "." => {}
            name if name.chars().all(|char| matches!(char, '.') || char.is_whitespace() || is_invisible(char)) => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    let start = if decoded.starts_with('/') { "/" } else { "" };
    let path = format!("{start}{}", segments.join("/"));
    // A file with secrets stays one.
    (!path.is_empty() && check_path(&path).is_none()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn traversal_is_collapsed() {
        for (value, expected) in [
            ("a/b", Some("a/b")),
            ("a/../../b", Some("b")),
            ("..%2f..%2fb", Some("b")),
            ("..;/b", Some("b")),
            ("....//....//....//b", Some("b")),
            ("/srv/../b", Some("/b")),
            ("../../../etc/passwd", None),
            ("/etc/shadow", None),
            ("../../../..", None),
        ] {
            assert_eq!(sanitise(value, FilterKind::PathTraversal).as_deref(), expected, "{value}");
        }
        assert_eq!(sanitise("a\0b\u{200b}", FilterKind::Control).as_deref(), Some("ab"));
        assert_eq!(sanitise("x; rm -rf /", FilterKind::Shell), None);
    }

    proptest! {
        #[test]
        fn a_sanitised_value_stays_as_it_is(value in "[a.%2eE/\\\\;c0\u{200b} :~-]{0,24}|.{0,24}") {
            for kind in [FilterKind::Control, FilterKind::PathTraversal] {
                if let Some(once) = sanitise(&value, kind) {
                    prop_assert_eq!(sanitise(&once, kind), Some(once.clone()));
                }
            }
        }
    }
}
