//! Protection against browser pages that talk to this machine behind the user's back (DNS rebinding).

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use signalbox_engine::resource_address::{is_local, names};

/// Allowed origins and hosts.
pub struct OriginGuard {
    origins: Vec<String>,
    hosts: Vec<String>,
}

impl OriginGuard {
    /// Creates a guard that admits the names of this machine, pages of the same origin, and the given origins and
    /// hosts.
    pub fn new(origins: &[String], hosts: &[String]) -> Self {
        let lower = |list: &[String]| list.iter().map(|one| one.to_ascii_lowercase()).collect();
        Self { origins: lower(origins), hosts: lower(hosts) }
    }

    /// Returns `true` if the request may be processed. `has_origin` says whether it carries an `Origin` that must be
    /// checked.
    pub fn admits(&self, headers: &HeaderMap, has_origin: bool) -> bool {
        self.host(headers) && (!has_origin || self.origin(headers))
    }

    fn host(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(HOST).iter();
        let (Some(host), None) = (values.next(), values.next()) else { return false };
        let Ok(host) = host.to_str() else { return false };
        is_local(host) || self.hosts.iter().any(|one| names(one, host))
    }

    /// Checks `Origin`. A program sends none, a page always does. A page of this listener has the origin that it calls;
    /// a page of another port of this machine is a stranger.
    fn origin(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(ORIGIN).iter();
        let Some(origin) = values.next() else { return true };
        let (Ok(origin), None) = (origin.to_str(), values.next()) else { return false };
        if self.origins.iter().any(|one| one.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        rest.zip(host).is_some_and(|(rest, host)| rest.eq_ignore_ascii_case(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(host: &str, origins: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        for origin in origins {
            headers.append(ORIGIN, origin.parse().unwrap());
        }
        OriginGuard::new(&["https://inspector.example".into()], &["box.example".into()])
            .admits(&headers, !origins.is_empty())
    }

    #[test]
    fn only_this_machines_names_and_the_allowed_ones_pass() {
        assert!(admits("localhost:8080", &[]));
        assert!(admits("127.0.0.1:8080", &["http://127.0.0.1:8080"]));
        assert!(admits("[::1]:8080", &["http://[::1]:8080"]));
        assert!(admits("LOCALHOST", &["https://localhost"]));
        assert!(admits("box.example:8080", &["https://inspector.example"]));
        for (host, origins) in [
            ("evil.example", &[][..]),
            ("localhost.evil.example", &[]),
            ("localhost:80x", &[]),
            ("127.0.0.1.evil.example:8080", &[]),
            // A page of another server of this machine.
            ("127.0.0.1:8080", &["http://127.0.0.1:3000"]),
            ("[::1]:8080", &["http://[::1]:3000"]),
            ("localhost:8080", &["http://localhost:3000"]),
            ("localhost:8080", &["http://127.0.0.1:8080"]),
            ("localhost", &["null"]),
            ("localhost", &["http://localhost.evil.example"]),
            ("localhost", &["http://evil.example"]),
            ("localhost", &["file://localhost"]),
            ("localhost", &["http://localhost", "http://localhost"]),
            ("localhost", &["http://localhost@evil.example"]),
            ("localhost", &["https://inspector.example:444"]),
        ] {
            assert!(!admits(host, origins), "{host} {origins:?}");
        }
    }
}
