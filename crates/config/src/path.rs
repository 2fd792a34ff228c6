//! The path of a key in a configuration file, as an error message prints it.

use std::fmt;

/// `backends.files.args[2]`: a key inside its tables, and perhaps an item of its list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyPath {
    segments: Vec<String>,
    item: Option<usize>,
}

impl KeyPath {
    /// The file itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Whether this is the file itself.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    /// The path of `key` in this table.
    #[must_use]
    pub fn child(&self, key: &str) -> Self {
        let mut segments = self.segments.clone();
        segments.push(key.to_owned());
        Self { segments, item: None }
    }

    /// The path of one item of this list.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        Self { segments: self.segments.clone(), item: Some(index) }
    }

    /// The keys, outermost first.
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

/// Whether TOML lets this key stand without quotes.
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
