//! Placeholders of removed data.

use super::PrivacyClass;
use memchr::memmem::Finder;
use signalbox_secret_scan::Scanner;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

/// Characters that would make a link of the placeholder before them.
pub(super) const OPENS_LINK: [char; 3] = ['(', '[', ':'];

/// Words that every placeholder contains.
const MARK: &[u8] = b" removed";
/// Text of a credential's placeholder up to the kind of the credential.
const CREDENTIAL: &str = "[credential removed: ";
/// Maximum length of the name of a kind of credentials.
const MAX_KIND: usize = 64;

/// Kinds of credentials that the scanner knows.
static KINDS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| Scanner::built_in().rules().iter().map(|rule| rule.id.as_str()).collect());

/// Returns the placeholder of a credential of this kind.
pub(super) fn of_credential(kind: &str) -> String {
    format!("{CREDENTIAL}{kind}]")
}

/// Returns the placeholder of a class.
pub(super) const fn of_class(class: PrivacyClass) -> &'static str {
    match class {
        PrivacyClass::Credential => "[credential removed]",
        PrivacyClass::Email => "[email removed]",
        PrivacyClass::Phone => "[phone removed]",
        PrivacyClass::Iban => "[iban removed]",
        PrivacyClass::Card => "[card removed]",
    }
}

/// Returns the places of placeholders in a text.
pub(super) fn places(text: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    for mark in Finder::new(MARK).find_iter(text.as_bytes()) {
        let Some(start) = start(text, mark) else { continue };
        let Some(length) = text.get(start..).and_then(length) else { continue };
        places.push(start..start + length);
    }
    places
}

/// Returns the offset of the bracket before the mark of a placeholder.
fn start(text: &str, mark: usize) -> Option<usize> {
    let longest = PrivacyClass::ALL.iter().map(|class| class.word().len()).max()?;
    let before = text.as_bytes().get(mark.saturating_sub(longest + 1)..mark)?;
    Some(mark - before.len() + memchr::memrchr(b'[', before)?)
}

/// Returns the length of the placeholder that the text starts with.
fn length(text: &str) -> Option<usize> {
    if let Some(plain) = PrivacyClass::ALL.into_iter().map(of_class).find(|plain| text.starts_with(plain)) {
        return Some(plain.len());
    }
    let kind = text.strip_prefix(CREDENTIAL)?;
    let is_of_kind = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let end = kind.bytes().take(MAX_KIND + 1).position(|byte| !is_of_kind(&byte))?;
    let is_known = kind.get(end..)?.starts_with(']') && KINDS.contains(kind.get(..end)?);
    is_known.then_some(CREDENTIAL.len() + end + 1)
}
