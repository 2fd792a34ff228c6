//! Escapes NUL, the one character that PostgreSQL cannot store in a text.

use std::borrow::Cow;

/// A zero becomes `\0`, and a backslash `\\`. The beginning of a text becomes the beginning of what becomes of it.
pub fn escape(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', '\\']) { text.replace('\\', "\\\\").replace('\0', "\\0").into() } else { text.into() }
}

/// The text that was escaped.
pub fn unescape(text: String) -> String {
    if !text.contains('\\') {
        return text;
    }
    let mut characters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next().map(|next| if next == '0' { '\0' } else { next })),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_comes_back() {
        for text in ["", "plain", "\0", "\\0", "a\\\0b\\\\", "\\"] {
            let escaped = escape(text);
            assert!(!escaped.contains('\0'));
            assert_eq!(unescape(escaped.into_owned()), text);
        }
    }
}
