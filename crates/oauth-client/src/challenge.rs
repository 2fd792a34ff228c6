//! Parser for `WWW-Authenticate` (RFC 9110, section 11.6.1).

/// Maximum size of a header value, in bytes.
const MAX_VALUE: usize = 8 * 1024;

/// Authentication challenge: a scheme and its parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuthChallenge {
    /// Scheme, in lower case.
    pub scheme: String,
    /// Parameters, with names in lower case.
    pub params: Vec<(String, String)>,
}

impl AuthChallenge {
    /// Returns the bearer challenge among these header values.
    #[must_use]
    pub fn bearer(values: &[String]) -> Option<Self> {
        values.iter().flat_map(|value| read(value)).find(|challenge| challenge.scheme == "bearer")
    }

    /// Returns the value of a parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Returns the scopes that the challenge names.
    #[must_use]
    pub fn scopes(&self) -> Vec<String> {
        let scopes = self.param("scope").unwrap_or_default().split_ascii_whitespace();
        scopes.map(str::to_owned).collect()
    }
}

/// Parses all challenges of a value, up to the first malformed one.
#[must_use]
pub fn read(value: &str) -> Vec<AuthChallenge> {
    let mut rest = value.get(..MAX_VALUE).unwrap_or(value);
    let mut found: Vec<AuthChallenge> = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((word, after)) = token(rest) else { return found };
        let blank = after.trim_start_matches([' ', '\t']);
        match (blank.strip_prefix('='), found.last_mut()) {
            // A name followed by a value is a parameter of the preceding challenge.
            (Some(value), Some(challenge)) => {
                let Some((value, after)) = param_value(value.trim_start_matches([' ', '\t'])) else { return found };
                challenge.params.push((word.to_ascii_lowercase(), value));
                rest = after;
            }
            (Some(_), None) => return found,
            (None, _) => {
                found.push(AuthChallenge { scheme: word.to_ascii_lowercase(), params: Vec::new() });
                rest = after;
            }
        }
    }
}

fn token(text: &str) -> Option<(&str, &str)> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !inside(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn param_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        // Some servers omit the quotes around addresses.
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return Some((value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, quoted.get(at + 1..).unwrap_or_default())),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_of_servers_are_read() {
        let value =
            r#"Basic realm="a, b", Bearer  error="invalid_token",scope="x y" , resource_metadata="https://a/\"b""#;
        let all = read(value);
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].scheme.as_str(), all[0].param("realm")), ("basic", Some("a, b")));
        let bearer = AuthChallenge::bearer(&[value.to_owned()]).unwrap();
        assert_eq!(bearer.scopes(), ["x", "y"]);
        assert_eq!(bearer.param("resource_metadata"), Some("https://a/\"b"));
        let bare = AuthChallenge::bearer(&["Negotiate".to_owned(), "bearer".to_owned()]).unwrap();
        assert!(bare.params.is_empty() && bare.scopes().is_empty());
        let unquoted = AuthChallenge::bearer(&["Bearer resource_metadata=https://a/b, scope=x".to_owned()]).unwrap();
        assert_eq!((unquoted.param("resource_metadata"), unquoted.param("scope")), (Some("https://a/b"), Some("x")));
    }

    #[test]
    fn what_is_broken_ends_the_reading_and_nothing_else() {
        for value in ["", "=", ",,,", "\"", "Bearer scope=\"never ends", "Bearer scope=\"\\", "é", "Bearer ==,=\"=\""]
        {
            let _ = read(value);
        }
        assert_eq!(read("Bearer scope=\"never").len(), 1);
        let long = format!("Bearer scope=\"{}\"", "x".repeat(100_000));
        assert!(read(&long)[0].params.is_empty());
    }
}
