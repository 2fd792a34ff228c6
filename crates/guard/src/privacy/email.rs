//! Finds e-mail addresses.
//!
//! An address has a local part without quotes (RFC 5321, section 4.1.2) and a domain that could be registered. Hosts of
//! logins, versions of packages, file names and addresses in reserved domains have the same sign and are left alone.

use super::segment::Segment;
use super::{PrivacyClass, PrivateSpan, email_domain, placeholder};
use std::ops::Range;

/// Maximum length of a local part, in bytes.
const MAX_LOCAL: usize = 64;
/// Number of bytes before a local part that are searched for the start of a URL.
const URL_REACH: usize = 64;
/// Local parts of logins and of words of programming languages.
const NOT_LOCAL: &[&str] = &["git", "hg", "svn", "ssh", "this", "super", "return"];
/// Local parts of mailboxes that accept no mail.
const NO_REPLY: &[&str] = &["noreply", "no-reply", "no_reply", "donotreply", "do-not-reply"];

/// Adds the addresses of a segment.
pub(super) fn find(segment: Segment<'_>, spans: &mut Vec<PrivateSpan>) {
    for at in memchr::memchr_iter(b'@', segment.bytes()) {
        if let Some(range) = address(segment, at) {
            let placeholder = placeholder::of_class(PrivacyClass::Email).into();
            spans.push(PrivateSpan { class: PrivacyClass::Email, range: segment.place(range), placeholder });
        }
    }
}

/// Returns the address around the sign at an offset.
fn address(segment: Segment<'_>, at: usize) -> Option<Range<usize>> {
    let start = local_start(segment, at)?;
    let local = segment.text().get(start..at)?;
    let length = email_domain::length(segment.text().get(at + 1..)?)?;
    let end = at + 1 + length;
    let domain = segment.text().get(at + 1..end)?;
    let is_local = |names: &[&str]| names.iter().any(|name| local.eq_ignore_ascii_case(name));
    let is_reserved = email_domain::is_reserved(domain) || email_domain::is_algorithm_suffix(domain);
    let is_address = !is_reserved
        && !is_local(NOT_LOCAL)
        && !is_local(NO_REPLY)
        && ends_address(segment, end)
        && !is_url_login(segment, start);
    is_address.then_some(start..end)
}

/// Returns the start of the local part before the sign at an offset.
fn local_start(segment: Segment<'_>, at: usize) -> Option<usize> {
    let before = segment.text().get(segment.boundary(at.saturating_sub(MAX_LOCAL + 2))..at)?;
    let run = before.chars().rev().take_while(|character| is_local(*character)).map(char::len_utf8).sum::<usize>();
    let start = at - run;
    let start = start + escape_length(segment, start, run);
    let local = segment.text().get(start..at)?;
    // A sentence or a list may put signs before an address.
    let trimmed = local.trim_start_matches(['.', '-', '+', '_']);
    let start = at - trimmed.len();
    let is_local = !trimmed.is_empty()
        && trimmed.len() <= MAX_LOCAL
        && !trimmed.ends_with('.')
        && !trimmed.contains("..")
        && trimmed.contains(char::is_alphanumeric);
    // A sign before it makes it a part of a scope, a path, a variable or a format.
    let is_part = local.len() == trimmed.len() && b"@$%&#".contains(&segment.byte_before(start, 1));
    (is_local && !is_part).then_some(start)
}

/// Returns the length of the escape that a run of letters begins with, such as the `n` of `\n`.
fn escape_length(segment: Segment<'_>, start: usize, run: usize) -> usize {
    let (letters, digits) = match (segment.byte_before(start, 1), segment.byte(start)) {
        (b'\\', b'n' | b'r' | b't') => (1, 0),
        (b'\\', b'u') => (1, 4),
        (b'%', _) => (0, 2),
        _ => (0, 0),
    };
    let length = letters + digits;
    let is_escape = (start + letters..start + length).all(|at| segment.byte(at).is_ascii_hexdigit());
    if length < run && is_escape { length } else { 0 }
}

/// Returns true for characters of local parts. Scripts that put no spaces between words are left out.
fn is_local(character: char) -> bool {
    match character {
        '.' | '_' | '+' | '-' => true,
        '\0'..='\u{7f}' => character.is_ascii_alphanumeric(),
        '\u{80}'..='\u{5ff}' | '\u{1e00}'..='\u{1fff}' => character.is_alphanumeric(),
        _ => false,
    }
}

/// Returns true if the text at an offset does not continue what looked like an address.
fn ends_address(segment: Segment<'_>, end: usize) -> bool {
    match segment.byte(end) {
        b'@' | b'(' | b'_' => false,
        b'.' | b'-' => !segment.byte(end + 1).is_ascii_alphanumeric(),
        // `ann@host.org:/path`, `git@host.org:team/project`.
        b':' => !is_remote_path(segment, end + 1),
        _ => !segment.is_word_at(end),
    }
}

/// Returns true if a path of a host is at an offset, as commands like `scp` write it after a colon.
fn is_remote_path(segment: Segment<'_>, at: usize) -> bool {
    let rest = segment.bytes().get(at..).unwrap_or_default().iter().take(URL_REACH);
    let mut path = rest.take_while(|byte| byte.is_ascii_alphanumeric() || b"._-/~".contains(byte));
    segment.byte(at) == b'~' || path.any(|byte| *byte == b'/')
}

/// Returns true if the text before a local part makes it the login of a URL, as in `ssh://ann@host.org`.
fn is_url_login(segment: Segment<'_>, start: usize) -> bool {
    let before = segment.bytes().get(start.saturating_sub(URL_REACH)..start).unwrap_or_default();
    let is_login = |byte: &u8| byte.is_ascii_graphic() && !b"/?#@\"'<>()".contains(byte);
    let login = before.iter().rev().take_while(|byte| is_login(byte)).count();
    before.get(..before.len() - login).is_some_and(|before| before.ends_with(b"://"))
}
