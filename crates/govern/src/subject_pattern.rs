//! Patterns for certificate subjects, compared name by name (RFC 4514).
//!
//! `CN=ada, O=Example` matches the subject with exactly these two names in this order. `*` and `?` in a value stay
//! within that value; `*` as a whole name stands for one or more names of any kind. A comma, plus sign or equals sign
//! in a value is escaped with a backslash.

use signalbox_engine::distinguished_name::{DistinguishedName, NameAttribute};
use signalbox_wire::glob::{Wildcards, fits};

/// Error for a text that is not a subject pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SubjectPatternError {
    /// A name without its type.
    #[error("each name is `TYPE=VALUE`, or `*` for one or more names of any kind")]
    NoType,
    /// A backslash that escapes nothing, or half of a byte.
    #[error("a backslash stands before a character or two hexadecimal digits")]
    Escape,
}

/// Pattern for a whole subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubjectPattern(Vec<NamePattern>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum NamePattern {
    /// One or more names of any kind.
    Any,
    /// One relative name with exactly these attributes.
    Attributes(Vec<AttributePattern>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct AttributePattern {
    kind: String,
    value: String,
}

impl SubjectPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// If a part is not a name.
    pub fn parse(text: &str) -> Result<Self, SubjectPatternError> {
        parts(text, ',').map(name).collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if the whole subject matches.
    #[must_use]
    pub fn is_met(&self, subject: &DistinguishedName) -> bool {
        names_fit(&self.0, &subject.0)
    }
}

/// Matches names by backtracking. Patterns are short and each `*` takes at least one name, so trying every split is
/// cheap.
fn names_fit(patterns: &[NamePattern], names: &[Vec<NameAttribute>]) -> bool {
    match (patterns.split_first(), names.split_first()) {
        (None, None) => true,
        (None, Some(_)) | (Some(_), None) => false,
        (Some((NamePattern::Any, rest)), Some((_, others))) => names_fit(rest, others) || names_fit(patterns, others),
        (Some((NamePattern::Attributes(wanted), rest)), Some((name, others))) => {
            attributes_fit(wanted, name) && names_fit(rest, others)
        }
    }
}

/// Matches the attributes of one relative name, in any order.
fn attributes_fit(wanted: &[AttributePattern], name: &[NameAttribute]) -> bool {
    let mut open: Vec<&NameAttribute> = name.iter().collect();
    let found = wanted.iter().all(|pattern| {
        let at = open.iter().position(|attribute| {
            let value = attribute.value.as_deref();
            attribute.kind.eq_ignore_ascii_case(&pattern.kind)
                && value.is_some_and(|value| fits(&pattern.value, value, Wildcards::StarAndQuestion))
        });
        at.map(|at| open.swap_remove(at)).is_some()
    });
    found && open.is_empty()
}

fn name(text: &str) -> Result<NamePattern, SubjectPatternError> {
    if text.trim() == "*" {
        return Ok(NamePattern::Any);
    }
    parts(text, '+').map(attribute).collect::<Result<_, _>>().map(NamePattern::Attributes)
}

fn attribute(text: &str) -> Result<AttributePattern, SubjectPatternError> {
    let (kind, value) = text.split_once('=').ok_or(SubjectPatternError::NoType)?;
    let kind = kind.trim();
    if kind.is_empty() || kind.contains(['\\', '*', '?']) {
        return Err(SubjectPatternError::NoType);
    }
    Ok(AttributePattern { kind: kind.to_owned(), value: unescaped(value.trim_start())? })
}

/// Splits a text at unescaped separators.
fn parts(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    text.split(move |c| {
        let separates = c == separator && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        separates
    })
}

/// Removes escapes and surrounding blanks from a value.
fn unescaped(text: &str) -> Result<String, SubjectPatternError> {
    let mut bytes = Vec::with_capacity(text.len());
    // Trailing blanks count only if they are escaped.
    let mut kept = 0;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let mut buffer = [0; 4];
        if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
            kept = if c == ' ' { kept } else { bytes.len() };
            continue;
        }
        let next = rest.next().ok_or(SubjectPatternError::Escape)?;
        match next.to_digit(16) {
            Some(high) => {
                let low = rest.next().and_then(|c| c.to_digit(16)).ok_or(SubjectPatternError::Escape)?;
                bytes.push(u8::try_from(high * 16 + low).map_err(|_| SubjectPatternError::Escape)?);
            }
            None => bytes.extend_from_slice(next.encode_utf8(&mut buffer).as_bytes()),
        }
        kept = bytes.len();
    }
    bytes.truncate(kept);
    String::from_utf8(bytes).map_err(|_| SubjectPatternError::Escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(names: &[&[(&str, &str)]]) -> DistinguishedName {
        let attribute =
            |(kind, value): &(&str, &str)| NameAttribute { kind: (*kind).into(), value: Some((*value).into()) };
        DistinguishedName(names.iter().map(|name| name.iter().map(attribute).collect()).collect())
    }

    fn met(pattern: &str, names: &[&[(&str, &str)]]) -> bool {
        SubjectPattern::parse(pattern).unwrap().is_met(&subject(names))
    }

    #[test]
    fn a_value_that_spells_several_names_is_one_name() {
        let real: &[&[(&str, &str)]] = &[&[("CN", "admin")], &[("O", "Corp")]];
        let forged: [&[&[(&str, &str)]]; 5] = [
            &[&[("CN", "admin, O=Corp")]],
            &[&[("CN", "admin,O=Corp")]],
            &[&[("CN", "admin + O=Corp")]],
            &[&[("CN", "admin"), ("O", "Corp")]],
            &[&[("O", "Corp")], &[("CN", "admin")]],
        ];
        for pattern in
            ["CN=admin, O=Corp", "CN=admin,O=Corp", "cn=admin, o=Corp", "CN=admin, *", "CN=admin, O=*", "*, O=Corp"]
        {
            assert!(met(pattern, real), "{pattern}");
            for names in forged {
                // Two names in another order fit where a pattern leaves a name open.
                let is_open = pattern.contains('*') && names.len() == 2;
                assert!(is_open || !met(pattern, names), "{pattern} {names:?}");
            }
        }
        let longer: &[&[(&str, &str)]] = &[&[("CN", "admin")], &[("O", "Corp")], &[("OU", "guests")]];
        assert!(!met("CN=admin, O=Corp", longer) && met("CN=admin, *", longer) && !met("CN=admin*", real));
        assert!(!met("CN=admin, *", &[&[("CN", "admin")]]), "a star stands for at least one name");
        assert!(!met("CN=admin", &[]) && !met("*", &[]));
    }

    #[test]
    fn what_a_subject_is_written_as_is_a_pattern_of_that_subject_alone() {
        let all: [&[&[(&str, &str)]]; 6] = [
            &[&[("CN", "admin")], &[("O", "Corp")]],
            &[&[("CN", "admin, O=Corp")]],
            &[&[("CN", r"a\, b")]],
            &[&[("CN", " #x ")]],
            &[&[("CN", "a\nb")], &[("1.2.3", "é")]],
            &[&[("CN", "a"), ("O", "b")]],
        ];
        for (at, names) in all.iter().enumerate() {
            let pattern = subject(names).to_string();
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(met(&pattern, other), at == other_at, "{pattern} {other:?}");
            }
        }
    }

    #[test]
    fn a_value_that_is_no_text_fits_no_pattern() {
        let odd = DistinguishedName(vec![vec![NameAttribute { kind: "CN".into(), value: None }]]);
        assert!(!SubjectPattern::parse("CN=*").unwrap().is_met(&odd));
    }

    #[test]
    fn a_pattern_without_types_or_with_half_an_escape_is_refused() {
        for bad in ["", "ada", "*Corp*", "CN=a,", "=a", r"CN=a\", r"CN=a\0", r"CN=a\FF"] {
            assert!(SubjectPattern::parse(bad).is_err(), "{bad}");
        }
    }
}
