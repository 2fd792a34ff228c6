//! Patterns with `*` for the names of methods, tools, backends and principals.

/// A pattern in which `*` stands for any run of characters. Matching takes time in proportion to the text and the pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glob(Box<str>);

impl Glob {
    /// This pattern.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        Self(pattern.into())
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` is one of those meant.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        if !self.0.contains('*') {
            return rest.is_empty();
        }
        let mut parts: Vec<&str> = parts.collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            // The leftmost place leaves the most room for what follows, so no other need be tried.
            let Some(found) = rest.find(part) else { return false };
            rest = rest.get(found + part.len()..).unwrap_or_default();
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_run() {
        let check = |pattern: &str, text: &str| Glob::new(pattern).matches(text);
        assert!(check("tools/*", "tools/call") && check("*", "") && check("a*b*c", "a-b-b-c") && check("x", "x"));
        assert!(check("*call", "tools/call") && check("a**a", "aa"));
        assert!(!check("tools/*", "tool") && !check("x", "xy") && !check("a*b", "ab-") && !check("aa*aa", "aaa"));
        assert!(!check("", "x") && check("", ""));
    }
}
