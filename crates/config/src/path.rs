//! Path of a key in a configuration file, as an error message prints it.

use std::fmt;

/// Key inside its tables, and perhaps an item of its list: `backends.files.args[2]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyPath {
    segments: Vec<String>,
    item: Option<usize>,
}

impl KeyPath {
    /// Returns the path of the file itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns `true` if this is the file itself.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the path of `key` in this table.
    #[must_use]
    pub fn child(&self, key: &str) -> Self {
        let mut segments = self.segments.clone();
        segments.push(key.to_owned());
        Self { segments, item: None }
    }

    /// Returns the path of one item of this list.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        Self { segments: self.segments.clone(), item: Some(index) }
    }

    /// Returns the keys, outermost first.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.segments.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            if is_bare(segment) {
                f.write_str(segment)?;
            } else {
                write!(f, "{segment:?}")?;
            }
        }
        self.item.map_or(Ok(()), |item| write!(f, "[{item}]"))
    }
}

/// Returns `true` if TOML lets this key stand without quotes.
pub fn is_bare(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_keys_are_quoted() {
        let path = KeyPath::root().child("backends").child("a.b\u{1b}").child("args").item(2);
        assert_eq!(path.to_string(), r#"backends."a.b\u{1b}".args[2]"#);
    }
}
