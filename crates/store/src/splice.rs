//! Bodies stored as the difference from another: a common prefix and suffix, and a new middle.

use bytes::{Bytes, BytesMut};
use signalbox_engine::record::Body;

/// Joins the start of `base`, `middle` and the end of `base`; `None` if the base is too short.
pub fn join(base: &[u8], prefix: u64, suffix: u64, middle: &[u8]) -> Option<Bytes> {
    let (prefix, suffix) = (usize::try_from(prefix).ok()?, usize::try_from(suffix).ok()?);
    if prefix.checked_add(suffix)? > base.len() {
        return None;
    }
    let mut whole = BytesMut::with_capacity(prefix + middle.len() + suffix);
    whole.extend_from_slice(&base[..prefix]);
    whole.extend_from_slice(middle);
    whole.extend_from_slice(&base[base.len() - suffix..]);
    Some(whole.freeze())
}

/// Encodes a body as its difference from `like`, the body at position `seq`.
pub fn encode_like(seq: u64, like: &Bytes, whole: &Bytes) -> Body {
    let (prefix, suffix) = common(like, whole);
    let middle = whole.slice(prefix..whole.len() - suffix);
    Body::Like { seq, prefix: prefix as u64, suffix: suffix as u64, middle }
}

/// Returns the lengths of the common prefix and suffix of a body and its base.
fn common(base: &[u8], body: &[u8]) -> (usize, usize) {
    let most = base.len().min(body.len());
    let prefix = base.iter().zip(body).take_while(|(a, b)| a == b).count();
    let suffix = base.iter().rev().zip(body.iter().rev()).take(most - prefix).take_while(|(a, b)| a == b).count();
    (prefix, suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_apart_is_joined_again() {
        for (base, body) in [("", ""), ("abc", "abc"), ("abc", "abXc"), ("aaaa", "aa"), ("aa", "aaaa"), ("x", "y")] {
            let (prefix, suffix) = common(base.as_bytes(), body.as_bytes());
            let middle = &body.as_bytes()[prefix..body.len() - suffix];
            let joined = join(base.as_bytes(), prefix as u64, suffix as u64, middle);
            assert_eq!(joined.as_deref(), Some(body.as_bytes()), "{base} {body}");
        }
    }

    #[test]
    fn a_base_that_is_too_short_is_noticed() {
        assert_eq!(join(b"abc", 2, 2, b""), None);
        assert_eq!(join(b"abc", u64::MAX, 1, b""), None);
    }
}
