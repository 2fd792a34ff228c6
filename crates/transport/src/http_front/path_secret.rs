//! A path with its own bearer secret, which opens that path and nothing else.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use signalbox_seal::sha256;

/// Path with the hash of its secret.
#[derive(Clone, Debug)]
pub struct PathSecret {
    path: &'static str,
    /// Hash of the secret. Only the hash is kept; hashes have equal length, so they can be compared in constant time.
    hash: [u8; 32],
}

impl PathSecret {
    /// Creates a rule that only `secret` opens `path`.
    #[must_use]
    pub fn new(path: &'static str, secret: &str) -> Self {
        Self { path, hash: sha256(secret.as_bytes()) }
    }

    /// Returns `true` if a request for this path carries the secret; `None` for other paths.
    #[must_use]
    pub fn opens(&self, path: &str, headers: &HeaderMap) -> Option<bool> {
        if path != self.path {
            return None;
        }
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let (first, second) = (shown.next(), shown.next());
        let token = first.filter(|_| second.is_none()).and_then(|value| value.as_bytes().split_first_chunk::<7>());
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer ")).map(|(_, token)| token);
        Some(token.is_some_and(|token| {
            let differing = sha256(token).iter().zip(&self.hash).fold(0, |all, (one, other)| all | (one ^ other));
            differing == 0
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (AUTHORIZATION, http::HeaderValue::from_static(value))).collect()
    }

    /// Proves NO-16.
    #[test]
    fn the_secret_opens_its_path_and_nothing_else_does() {
        let secret = PathSecret::new("/metrics", "made-up-health");
        assert_eq!(secret.opens("/mcp", &headers(&["Bearer made-up-health"])), None);
        assert_eq!(secret.opens("/metrics", &headers(&["Bearer made-up-health"])), Some(true));
        assert_eq!(secret.opens("/metrics", &headers(&["bearer made-up-health"])), Some(true));
        for wrong in [&["Bearer made-up-healt"][..], &["Basic made-up-health"], &["Bearer"], &[]] {
            assert_eq!(secret.opens("/metrics", &headers(wrong)), Some(false), "{wrong:?}");
        }
        let mut both = headers(&["Bearer made-up-health"]);
        both.append(AUTHORIZATION, http::HeaderValue::from_static("Bearer other"));
        assert_eq!(secret.opens("/metrics", &both), Some(false), "two credentials are one too many");
    }
}
