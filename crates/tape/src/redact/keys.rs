//! Recognizes secrets by the names of their members.

use super::action::Action;
use super::settings::{BadRedaction, KeyRule};
use signalbox_wire::json;
use std::borrow::Cow;

/// Start of an escape that may stand for a quote, a colon or a blank, which delimit a name.
const ASCII_ESCAPE: &[u8] = b"\\u00";

/// Maximum length of a name that is looked up; rules have no longer names.
pub(crate) const MAX_NAME: usize = 64;

/// Complete names, compared without regard to case, hyphens and underscores.
#[derive(Debug)]
pub(crate) struct Keys {
    rules: Vec<(Box<[u8]>, Action)>,
    /// Bit set of the lengths that names with each first letter have.
    lengths: [u64; 256],
}

impl Keys {
    pub(crate) fn new(rules: &[KeyRule]) -> Result<Self, BadRedaction> {
        let mut keys = Self { rules: vec![], lengths: [0; 256] };
        for rule in rules {
            let mut buffer = [0; MAX_NAME];
            let bad = || BadRedaction::Name { name: rule.name.clone(), most: MAX_NAME };
            let name = plain(rule.name.as_bytes(), &mut buffer).ok_or_else(bad)?;
            if let Some(lengths) = name.first().and_then(|first| keys.lengths.get_mut(usize::from(*first))) {
                *lengths |= 1 << (name.len() - 1);
                keys.rules.push((name.into(), rule.action.clone()));
            }
        }
        keys.rules.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(keys)
    }

    /// Returns the action for the member with this key, which is given with its quotes.
    #[inline]
    pub(crate) fn action(&self, token: &[u8]) -> Option<&Action> {
        let name = token.get(1..token.len().checked_sub(1)?)?;
        // First letter and length rule out most names; a name with an escape must be decoded first.
        let first = name.first()?.to_ascii_lowercase();
        let lengths = *self.lengths.get(usize::from(first))?;
        if lengths == 0 && !matches!(first, b'-' | b'_' | b'\\' | b' ') {
            return None;
        }
        let could_be_long = name.iter().any(|byte| matches!(byte, b'-' | b'_' | b'\\' | b' '));
        if !could_be_long && (name.len() > MAX_NAME || lengths & 1 << (name.len() - 1) == 0) {
            return None;
        }
        self.find(token, name)
    }

    /// Returns true if JSON within a string may have a secret member, judged by the undecoded text.
    pub(crate) fn may_be_within(&self, inside: &[u8]) -> bool {
        if self.rules.is_empty() {
            return false;
        }
        let is_sign = |at: usize| {
            let digits = inside.get(at + ASCII_ESCAPE.len()..).and_then(|rest| rest.first_chunk::<2>());
            matches!(digits, Some(b"22" | b"3a" | b"3A" | b"20" | b"09" | b"0a" | b"0A" | b"0d" | b"0D"))
        };
        memchr::memmem::find_iter(inside, ASCII_ESCAPE).any(is_sign)
            || memchr::memchr_iter(b':', inside).any(|colon| self.is_named_before(inside, colon))
    }

    /// Returns true if a secret name may precede this colon. Undecidable cases count as matches.
    fn is_named_before(&self, inside: &[u8], colon: usize) -> bool {
        let before = inside.get(..colon).unwrap_or_default().trim_ascii_end();
        // Between a name and its colon there may be white space, which is written as an escape within a string.
        let [rest @ .., b'"'] = before else { return matches!(before, [.., b'\\', b'n' | b't' | b'r']) };
        let end = rest.len() - rest.iter().rev().take_while(|byte| **byte == b'\\').count();
        let name = rest.get(end.saturating_sub(2 * MAX_NAME)..end).unwrap_or_default();
        match memchr::memrchr(b'"', name) {
            Some(quote) => {
                let name = name.get(quote + 1..).unwrap_or_default();
                name.contains(&b'\\') || self.action(&[b"\"", name, b"\""].concat()).is_some()
            }
            None => false,
        }
    }

    #[inline(never)]
    fn find(&self, token: &[u8], name: &[u8]) -> Option<&Action> {
        let name = match name.contains(&b'\\') {
            true => Cow::Owned(json::string(token)?.into_owned().into_bytes()),
            false => Cow::Borrowed(name),
        };
        let mut buffer = [0; MAX_NAME];
        let plain = plain(&name, &mut buffer)?;
        let found = self.rules.binary_search_by(|(known, _)| (**known).cmp(plain)).ok()?;
        self.rules.get(found).map(|(_, action)| action)
    }
}

/// Returns the name in lower case without separators: `API-Key` and `api_key` become `apikey`.
fn plain<'a>(name: &[u8], buffer: &'a mut [u8; MAX_NAME]) -> Option<&'a [u8]> {
    let mut length = 0;
    for byte in name.iter().filter(|byte| !matches!(byte, b'-' | b'_' | b' ')) {
        *buffer.get_mut(length)? = byte.to_ascii_lowercase();
        length += 1;
    }
    buffer.get(..length).filter(|name| !name.is_empty())
}
