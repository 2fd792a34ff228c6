//! Percent escapes (RFC 3986, section 2.1), without any opinion on what the decoded bytes mean.

/// Decodes the percent escapes of a text once. A `%` that starts no escape stays. Returns `None` if there are no
/// escapes.
#[must_use]
pub fn decode_once(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let escape = |at: usize| u8::try_from(digit(at + 1)? * 16 + digit(at + 2)?).ok();
    let first = memchr::memchr_iter(b'%', text).find(|at| escape(*at).is_some())?;
    let mut out = Vec::with_capacity(text.len());
    out.extend_from_slice(text.get(..first)?);
    let mut at = first;
    while let Some(&byte) = text.get(at) {
        match escape(at).filter(|_| byte == b'%') {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_once() {
        for (text, expected) in [
            ("", None),
            ("100%", None),
            ("%zz%2", None),
            ("%+1%-1", None),
            ("%2e%2E/%252e", Some(&b"../%2e"[..])),
            ("%%32%65", Some(b"%2e")),
            ("%zz%ff", Some(b"%zz\xff")),
        ] {
            assert_eq!(decode_once(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }
}
