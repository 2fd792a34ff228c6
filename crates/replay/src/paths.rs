//! Path patterns for JSON documents, used to ignore places in a comparison.

use serde_json::Value;
use std::fmt;

/// Maximum number of segments in a pattern.
const MAX_SEGMENTS: usize = 64;
/// Maximum number of patterns in a set.
const MAX_PATTERNS: usize = 10_000;

/// Set of path patterns. Each is a JSON pointer (RFC 6901) from the top of the message, in which `*` matches one member
/// or item and `**` any number of them: `/result/content/*/text`, `/**/timestamp`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Paths(Vec<Pattern>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Pattern(Vec<Segment>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Segment {
    Named(String),
    Any,
    Deep,
}

/// Error in a path pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// The pattern does not start with `/`.
    #[error("`{0}` is not a path: it must begin with `/`, as in `/result/content/*/text`")]
    NoSlash(String),
    /// A `~` is not part of an escape.
    #[error("`{0}` is not a path: `~` must be written `~0`, and a `/` within a name `~1`")]
    Tilde(String),
    /// The pattern has too many segments.
    #[error("a path may have {MAX_SEGMENTS} segments; this one has {0}")]
    TooLong(usize),
    /// The set has too many patterns.
    #[error("{MAX_PATTERNS} paths may be given at most")]
    TooMany,
}

impl Paths {
    /// Parses a set of patterns.
    ///
    /// # Errors
    /// If one of them is not a path.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, PathError> {
        let mut all = Self::default();
        for text in texts {
            all.add(text.as_ref())?;
        }
        Ok(all)
    }

    /// Adds a pattern.
    ///
    /// # Errors
    /// If it is not a path.
    pub fn add(&mut self, text: &str) -> Result<(), PathError> {
        if self.0.len() >= MAX_PATTERNS {
            return Err(PathError::TooMany);
        }
        let pattern = Pattern::parse(text)?;
        if !self.0.contains(&pattern) {
            self.0.push(pattern);
        }
        Ok(())
    }

    /// Returns `true` if the set has no patterns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if a pattern matches the place or one of its ancestors. The place is given as names and indices.
    #[must_use]
    pub fn covers<T: AsRef<str>>(&self, place: &[T]) -> bool {
        self.0
            .iter()
            .any(|pattern| (0..=place.len()).any(|end| place.get(..end).is_some_and(|part| pattern.matches(part))))
    }

    /// Returns `true` if a pattern matches the place itself. The place is given as names and indices.
    #[must_use]
    pub fn names<T: AsRef<str>>(&self, place: &[T]) -> bool {
        self.0.iter().any(|pattern| pattern.matches(place))
    }

    /// Removes all matching members from a document.
    pub fn remove_from(&self, document: &mut Value) {
        if !self.0.is_empty() {
            self.prune(document, &mut Vec::new());
        }
    }

    fn prune(&self, value: &mut Value, place: &mut Vec<String>) {
        let gone = |place: &mut Vec<String>, name: String, value: &mut Value| {
            place.push(name);
            let matches = self.0.iter().any(|pattern| pattern.matches(place));
            if !matches {
                self.prune(value, place);
            }
            place.pop();
            matches
        };
        match value {
            Value::Object(members) => members.retain(|name, value| !gone(place, name.clone(), value)),
            // Null out ignored items instead of removing them, so that later items keep their indices.
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if gone(place, index.to_string(), item) {
                        *item = Value::Null;
                    }
                }
            }
            _ => {}
        }
    }
}

impl fmt::Display for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|pattern| writeln!(f, "{pattern}"))
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, PathError> {
        let Some(rest) = text.strip_prefix('/') else { return Err(PathError::NoSlash(text.to_owned())) };
        let segments: Vec<_> = rest.split('/').map(|part| Segment::parse(part, text)).collect::<Result<_, _>>()?;
        if segments.len() > MAX_SEGMENTS {
            return Err(PathError::TooLong(segments.len()));
        }
        Ok(Self(segments))
    }

    /// Simulates the pattern as an automaton: one pass per part of the place, with the set of reachable positions.
    fn matches<T: AsRef<str>>(&self, place: &[T]) -> bool {
        let mut reached = vec![false; self.0.len() + 1];
        reached[0] = true;
        self.skip_deep(&mut reached);
        for part in place {
            let mut next = vec![false; reached.len()];
            for (at, segment) in self.0.iter().enumerate().filter(|(at, _)| reached[*at]) {
                match segment {
                    Segment::Deep => next[at] = true,
                    Segment::Any => next[at + 1] = true,
                    Segment::Named(name) => next[at + 1] |= name == part.as_ref(),
                }
            }
            reached = next;
            self.skip_deep(&mut reached);
        }
        reached.last().copied().unwrap_or_default()
    }

    /// Extends the reachable positions past each `**`, which may match nothing.
    fn skip_deep(&self, reached: &mut [bool]) {
        for (at, segment) in self.0.iter().enumerate() {
            if reached[at] && *segment == Segment::Deep {
                reached[at + 1] = true;
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| match segment {
            Segment::Named(name) => write!(f, "/{}", escaped(name)),
            Segment::Any => f.write_str("/*"),
            Segment::Deep => f.write_str("/**"),
        })
    }
}

impl Segment {
    fn parse(part: &str, whole: &str) -> Result<Self, PathError> {
        match part {
            "*" => return Ok(Self::Any),
            "**" => return Ok(Self::Deep),
            _ => {}
        }
        let mut name = String::with_capacity(part.len());
        let mut rest = part.chars();
        while let Some(one) = rest.next() {
            name.push(match one {
                '~' => match rest.next() {
                    Some('0') => '~',
                    Some('1') => '/',
                    _ => return Err(PathError::Tilde(whole.to_owned())),
                },
                other => other,
            });
        }
        Ok(Self::Named(name))
    }
}

/// Escapes a name for use in a JSON pointer.
#[must_use]
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Formats a place as a JSON pointer.
#[must_use]
pub fn pointer<T: AsRef<str>>(place: &[T]) -> String {
    place.iter().map(|part| format!("/{}", escaped(part.as_ref()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn covers(pattern: &str, place: &str) -> bool {
        let place: Vec<&str> = place.split('/').skip(1).collect();
        Paths::parse([pattern]).unwrap().covers(&place)
    }

    #[test]
    fn patterns_name_places_and_all_below_them() {
        assert!(covers("/a/b", "/a/b"));
        assert!(covers("/a/b", "/a/b/c"));
        assert!(!covers("/a/b", "/a"));
        assert!(covers("/a/*/c", "/a/7/c"));
        assert!(!covers("/a/*/c", "/a/c"));
        assert!(covers("/**/id", "/id") && covers("/**/id", "/x/y/id") && !covers("/**/id", "/x/y/ids"));
        assert!(covers("/a/**", "/a") && covers("/a/**/b/**/c", "/a/b/x/b/y/c"));
        assert!(covers("/a~1b/~0", "/a/b/~") || Paths::parse(["/a~1b/~0"]).unwrap().covers(&["a/b", "~"]));
    }

    #[test]
    fn what_is_no_path_is_refused() {
        assert_eq!(Paths::parse(["a"]).unwrap_err(), PathError::NoSlash("a".to_owned()));
        assert_eq!(Paths::parse(["/a~"]).unwrap_err(), PathError::Tilde("/a~".to_owned()));
        assert_eq!(Paths::parse(["/a".repeat(65)]).unwrap_err(), PathError::TooLong(65));
    }

    #[test]
    fn what_is_ignored_is_taken_out() {
        let mut document = json!({"a": {"id": 1, "x": [{"id": 2, "y": 3}]}, "b": [1, 2, 3]});
        Paths::parse(["/**/id", "/b/1"]).unwrap().remove_from(&mut document);
        assert_eq!(document, json!({"a": {"x": [{"y": 3}]}, "b": [1, null, 3]}));
    }

    #[test]
    fn patterns_are_written_as_they_are_read() {
        let text = "/a/*/b~1c\n/**/x~0\n";
        assert_eq!(Paths::parse(text.lines()).unwrap().to_string(), text);
    }
}
