//! Path patterns of routes, and their matching.

/// Reasons why a pattern is invalid.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatternError {
    /// The pattern does not begin with `/`.
    #[error("a path begins with `/`")]
    NoRoot,
    /// A segment follows `{*name}`.
    #[error("nothing can follow `{{*name}}`")]
    AfterRest,
    /// A name is missing, contains braces, or is only a part of its segment.
    #[error("a segment is text, `{{name}}` or, at the end, `{{*name}}`")]
    Braces,
    /// Two segments have the same name.
    #[error("a name is used twice")]
    Twice,
}

/// Maximum length of a segment that is shown in a record.
const MAX_WORD: usize = 32;

/// Captured segments by name, still percent-encoded.
pub type Captures<'p> = Vec<(&'static str, &'p str)>;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Part {
    /// Exactly this text, without decoding.
    Text(&'static str),
    /// Any one segment, by this name.
    Name(&'static str),
    /// All segments to the end, by this name.
    Rest(&'static str),
}

impl Part {
    fn parse(segment: &'static str) -> Result<Self, PatternError> {
        let inner = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let part = match inner {
            None => Self::Text(segment),
            Some(name) => name.strip_prefix('*').map_or(Self::Name(name), Self::Rest),
        };
        let (Self::Text(text) | Self::Name(text) | Self::Rest(text)) = part;
        let nameless = text.is_empty() && inner.is_some();
        if nameless || text.contains(['{', '}', '*']) { Err(PatternError::Braces) } else { Ok(part) }
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Self::Text(_) => None,
            Self::Name(name) | Self::Rest(name) => Some(name),
        }
    }
}

/// A parsed path pattern.
#[derive(Debug)]
pub struct Pattern(Vec<Part>);

impl Pattern {
    /// Parses a pattern, which must begin with `/`.
    pub fn parse(path: &'static str) -> Result<Self, PatternError> {
        let segments = path.strip_prefix('/').ok_or(PatternError::NoRoot)?.split('/');
        let parts = segments.map(Part::parse).collect::<Result<Vec<_>, _>>()?;
        for (index, part) in parts.iter().enumerate() {
            if matches!(part, Part::Rest(_)) && index + 1 < parts.len() {
                return Err(PatternError::AfterRest);
            }
            if part.name().is_some() && parts[..index].iter().any(|earlier| earlier.name() == part.name()) {
                return Err(PatternError::Twice);
            }
        }
        Ok(Self(parts))
    }

    /// Returns the captured segments if the path matches. Text must match byte for byte, so that a proxy that guards a
    /// path in front of the gateway need not know other spellings of it.
    pub fn captures<'p>(&self, path: &'p str) -> Option<Captures<'p>> {
        let mut rest = Some(path.strip_prefix('/')?);
        let mut captured = Captures::new();
        for part in &self.0 {
            let left = rest?;
            let (segment, behind) = match part {
                Part::Rest(_) => (left, None),
                _ => left.split_once('/').map_or((left, None), |(segment, behind)| (segment, Some(behind))),
            };
            match part {
                Part::Text(text) if *text != segment => return None,
                Part::Text(_) => {}
                Part::Name(_) | Part::Rest(_) if segment.is_empty() => return None,
                Part::Name(name) | Part::Rest(name) => captured.push((name, segment)),
            }
            rest = behind;
        }
        rest.is_none().then_some(captured)
    }

    /// Returns `true` if both patterns match the same paths.
    pub fn is_like(&self, other: &Self) -> bool {
        let same = |pair: (&Part, &Part)| match pair {
            (Part::Text(one), Part::Text(other)) => one == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

/// Returns a path that no route has, for a record: `*` stands for each segment that is no plain word, because it may be
/// the code or ticket of a mistyped address.
pub fn without_secrets(path: &str) -> String {
    let is_version = |segment: &str| segment.len() <= 3 && segment.starts_with('v');
    let is_plain = |letter: char| letter.is_ascii_lowercase() || "-_.".contains(letter);
    let is_word = |segment: &str| segment.len() <= MAX_WORD && segment.chars().all(is_plain);
    let shown = path.split('/').map(|segment| if is_word(segment) || is_version(segment) { segment } else { "*" });
    shown.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured<'p>(pattern: &'static str, path: &'p str) -> Option<Captures<'p>> {
        Pattern::parse(pattern).unwrap().captures(path)
    }

    #[test]
    fn text_is_matched_as_it_is() {
        assert_eq!(captured("/healthz", "/healthz"), Some(vec![]));
        assert_eq!(captured("/", "/"), Some(vec![]));
        for other in ["", "/", "healthz", "/healthz/", "//healthz", "/health%7a", "/HEALTHZ", "/healthz/x", "*"] {
            assert_eq!(captured("/healthz", other), None, "{other}");
        }
    }

    #[test]
    fn a_name_is_one_segment_that_is_not_empty() {
        assert_eq!(captured("/holds/{id}", "/holds/7"), Some(vec![("id", "7")]));
        assert_eq!(captured("/holds/{id}/edit", "/holds/a%2fb/edit"), Some(vec![("id", "a%2fb")]));
        assert_eq!(captured("/{a}/{b}", "/1/2"), Some(vec![("a", "1"), ("b", "2")]));
        for other in ["/holds", "/holds/", "/holds/7/", "/holds/7/8", "/holds//7"] {
            assert_eq!(captured("/holds/{id}", other), None, "{other}");
        }
    }

    #[test]
    fn the_rest_is_everything_below_that_is_not_nothing() {
        assert_eq!(captured("/files/{*path}", "/files/a/b.js"), Some(vec![("path", "a/b.js")]));
        assert_eq!(captured("/files/{*path}", "/files/a/"), Some(vec![("path", "a/")]));
        assert_eq!(captured("/{*path}", "/x"), Some(vec![("path", "x")]));
        for other in ["/files", "/files/", "/filesystem/a"] {
            assert_eq!(captured("/files/{*path}", other), None, "{other}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for (path, error) in [
            ("", PatternError::NoRoot),
            ("x/y", PatternError::NoRoot),
            ("/{*rest}/x", PatternError::AfterRest),
            ("/{}", PatternError::Braces),
            ("/{*}", PatternError::Braces),
            ("/a{b}", PatternError::Braces),
            ("/{b", PatternError::Braces),
            ("/*", PatternError::Braces),
            ("/{a}/{a}", PatternError::Twice),
            ("/{a}/{*a}", PatternError::Twice),
        ] {
            assert_eq!(Pattern::parse(path).map(|_| ()), Err(error), "{path}");
        }
    }

    #[test]
    fn names_do_not_make_a_difference() {
        let like = |one, other| Pattern::parse(one).unwrap().is_like(&Pattern::parse(other).unwrap());
        assert!(like("/a/{b}", "/a/{c}") && like("/{*b}", "/{*c}"));
        assert!(!like("/a/{b}", "/a/{*b}") && !like("/a/{b}", "/a/b") && !like("/a", "/b") && !like("/a", "/a/{b}"));
    }

    #[test]
    fn paths_in_records_have_no_codes() {
        for (path, shown) in [
            ("/api/v1/nothing", "/api/v1/nothing"),
            ("/api/zzz/ABC123XY", "/api/zzz/*"),
            ("/api/zzz/ABCDEFGH/x", "/api/zzz/*/x"),
            ("/api/41424344/%41BC123XY", "/api/*/*"),
            ("/api/abc;code=ABC123XY", "/api/*"),
            ("/", "/"),
        ] {
            assert_eq!(without_secrets(path), shown);
        }
        assert_eq!(without_secrets(&format!("/api/{}", "x".repeat(200))), "/api/*");
    }
}
