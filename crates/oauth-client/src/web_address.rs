//! Parts of http(s) URLs.

use http::Uri;

/// Origin and path of an http(s) URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebAddress {
    /// Scheme, host and port, in lower case and without a default port.
    pub origin: String,
    /// Path without a trailing slash.
    pub path: String,
}

impl WebAddress {
    /// Parses a URL. `None` for other schemes than http and https, and for URLs with user names.
    pub fn read(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let authority = uri.authority()?.as_str().to_ascii_lowercase();
        let default = match scheme.as_str() {
            "https" => ":443",
            "http" => ":80",
            _ => return None,
        };
        if authority.is_empty() || authority.contains('@') {
            return None;
        }
        let authority = authority.strip_suffix(default).unwrap_or(&authority);
        let path = uri.path().trim_end_matches('/').to_owned();
        Some(Self { origin: format!("{scheme}://{authority}"), path })
    }

    /// Returns true if the other URL equals this one or lies below it.
    pub fn holds(&self, other: &Self) -> bool {
        let rest = other.path.strip_prefix(&self.path);
        self.origin == other.origin && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Returns the canonical URI of a server (RFC 8707 as used by MCP): no fragment, no query, no trailing slash, scheme
/// and host in lower case.
pub fn canonical(url: &str) -> Option<String> {
    WebAddress::read(url).map(|address| format!("{}{}", address.origin, address.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_uri_has_no_fragment_and_no_slash_at_its_end() {
        let check = |url: &str, expected: Option<&str>| assert_eq!(canonical(url).as_deref(), expected, "{url}");
        check("HTTPS://MCP.Example.com/mcp/", Some("https://mcp.example.com/mcp"));
        check("https://mcp.example.com:443/", Some("https://mcp.example.com"));
        check("http://localhost:8080/a?b=c", Some("http://localhost:8080/a"));
        check("ftp://a/", None);
        check("https://me@a/", None);
        check("javascript:alert(1)", None);
    }

    #[test]
    fn a_resource_holds_what_lies_below_it() {
        let holds = |one: &str, other: &str| WebAddress::read(one).unwrap().holds(&WebAddress::read(other).unwrap());
        assert!(holds("https://a/", "https://a/mcp") && holds("https://a/mcp", "https://a/mcp"));
        assert!(!holds("https://a/mcp", "https://a/mcpx") && !holds("https://b", "https://a/mcp"));
    }
}
