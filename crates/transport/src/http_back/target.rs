//! Where a backend is, read from its configured address.

use super::HttpSpecError;
use http::header::HeaderValue;
use http::uri::{PathAndQuery, Uri};
use std::sync::Arc;

/// The port of an address that names none.
const DEFAULT_PORT: u16 = 80;

/// A checked address.
#[derive(Debug)]
pub(crate) struct Target {
    /// The name or address to connect to, without brackets.
    pub host: Box<str>,
    /// The port to connect to.
    pub port: u16,
    /// The value of `Host`.
    pub authority: HeaderValue,
    /// Path and query, as a request line has them.
    pub uri: Uri,
}

impl Target {
    /// Reads an address with this scheme.
    pub(crate) fn parse(backend: &Arc<str>, url: &str, scheme: &str) -> Result<Self, HttpSpecError> {
        let bad = || HttpSpecError::Url(Arc::clone(backend));
        let uri: Uri = url.parse().map_err(|_| bad())?;
        match uri.scheme_str() {
            Some(found) if found.eq_ignore_ascii_case(scheme) => {}
            None => return Err(bad()),
            Some(found) => {
                return Err(HttpSpecError::Scheme { backend: Arc::clone(backend), scheme: found.to_owned() });
            }
        }
        let authority = uri.authority().ok_or_else(bad)?;
        if authority.as_str().contains('@') {
            return Err(HttpSpecError::Credentials(Arc::clone(backend)));
        }
        let host = authority.host();
        let inner = host.trim_start_matches('[').trim_end_matches(']');
        // The parser takes a port that is no number for none at all.
        let port = match authority.as_str().get(host.len()..) {
            None | Some("") => DEFAULT_PORT,
            Some(_) => authority.port_u16().ok_or_else(bad)?,
        };
        if inner.is_empty() {
            return Err(bad());
        }
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self {
            host: inner.into(),
            port,
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| bad())?,
            uri: Uri::from(path),
        })
    }
}

impl std::fmt::Display for Target {
    /// Host and port only: the path may hold a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let check = |url: &str, shown: &str, host: &str, line: &str| {
            let target = Target::parse(&"b".into(), url, "http").unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(target.authority, host);
            assert_eq!(target.uri.to_string(), line);
        };
        check("http://a.example", "a.example:80", "a.example", "/");
        check("http://[::1]:9/mcp?x=1", "[::1]:9", "[::1]:9", "/mcp?x=1");
        check("http://127.0.0.1:8080/mcp", "127.0.0.1:8080", "127.0.0.1:8080", "/mcp");
    }

    #[test]
    fn bad_addresses_are_refused_and_not_repeated() {
        for url in [
            "",
            "/mcp",
            "localhost",
            "http://",
            "http:///mcp",
            "http://a:/x",
            "http://a:99999/",
            "http://a b/",
            "https://h/secret",
            "ftp://h/secret",
            "http://me:secret@h/",
        ] {
            let error = Target::parse(&"b".into(), url, "http").unwrap_err();
            assert!(!error.to_string().contains("secret"), "{url}: {error}");
        }
    }
}
