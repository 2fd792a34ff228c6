//! Addresses by which clients know the MCP endpoint as a protected resource.
//!
//! Clients compare the resource in the metadata with the address they were given, and refuse another host or path. So
//! where the host may vary (loopback has several names), the resource follows the request, and the HTTP+SSE stream is a
//! resource of its own.

/// Address of a client's request, as far as it determines the resource.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RequestAddress<'a> {
    /// Value of the `Host` header.
    pub host: Option<&'a str>,
    /// Path without the query.
    pub path: &'a str,
}

/// Resource identifier of the gateway, with its accepted variants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceAddress {
    resource: String,
    /// Path of the HTTP+SSE stream, with the prefix that a proxy adds.
    stream_path: String,
    /// Hosts other than loopback that may replace the resource's own. `None` if the host never varies.
    hosts: Option<Vec<String>>,
}

impl ResourceAddress {
    /// Creates the resource at this address, whose host never varies.
    #[must_use]
    pub fn fixed(resource: &str) -> Self {
        Self { resource: resource.to_owned(), stream_path: "/sse".to_owned(), hosts: None }
    }

    /// Sets the path of the HTTP+SSE stream to `stream`, beside the endpoint at `endpoint`.
    #[must_use]
    pub fn with_stream(mut self, endpoint: &str, stream: &str) -> Self {
        let before = self.parts().1.strip_suffix(endpoint).unwrap_or_default();
        self.stream_path = format!("{before}{stream}");
        self
    }

    /// Accepts every loopback name and these hosts in place of the resource's own.
    #[must_use]
    pub fn known_as(mut self, hosts: &[String]) -> Self {
        self.hosts = Some(hosts.iter().map(|host| host.to_ascii_lowercase()).collect());
        self
    }

    /// Returns the resource itself, the audience of tokens.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.resource
    }

    /// Returns true if the resource is at a loopback address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.parts().0.split_once("://").is_some_and(|(_, host)| is_local(host))
    }

    /// Returns the resource for a client that sends its requests to this address.
    #[must_use]
    pub fn at(&self, request: RequestAddress<'_>) -> String {
        let (origin, path) = self.parts();
        // A resource without a path covers everything below it.
        let is_stream = !path.trim_matches('/').is_empty() && request.path.len() > 1 && path != request.path;
        let is_stream = is_stream && self.stream_path.ends_with(request.path);
        let path = if is_stream { &self.stream_path } else { path };
        match (request.host.filter(|host| self.admits(host)), origin.split_once("://")) {
            (Some(host), Some((scheme, _))) => format!("{scheme}://{}{path}", host.to_ascii_lowercase()),
            _ => format!("{origin}{path}"),
        }
    }

    /// Returns the resource whose metadata is requested by this path behind the well-known one. `None` if it is not
    /// ours.
    #[must_use]
    pub fn of_metadata(&self, host: Option<&str>, path: &str) -> Option<String> {
        let path = path.trim_end_matches('/');
        let own = self.parts().1;
        if path.is_empty() || path == own.trim_end_matches('/') {
            return Some(self.at(RequestAddress { host, path: own }));
        }
        (path == self.stream_path).then(|| self.at(RequestAddress { host, path }))
    }

    /// Returns true if this canonical address is the resource or a variant of it.
    #[must_use]
    pub fn is_own(&self, canonical: &str) -> bool {
        let (origin, path) = parts(canonical);
        let (own_origin, own_path) = self.parts();
        let (scheme, host) = origin.split_once("://").unwrap_or_default();
        let own_scheme = own_origin.split_once("://").map(|(scheme, _)| scheme);
        let same_origin = origin.eq_ignore_ascii_case(own_origin)
            || own_scheme.is_some_and(|own| own.eq_ignore_ascii_case(scheme)) && self.admits(host);
        same_origin && (path == own_path.trim_end_matches('/') || path == self.stream_path)
    }

    /// Returns the audiences of tokens for the resource: all variants that are known beforehand.
    #[must_use]
    pub fn audiences(&self) -> Vec<String> {
        let (origin, path) = self.parts();
        let (scheme, host) = origin.split_once("://").unwrap_or_default();
        let port = &host[host_name(host).len()..];
        let mut all = vec![self.resource.clone(), format!("{origin}{}", self.stream_path)];
        let local = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        for name in self.hosts.iter().flat_map(|hosts| local.iter().chain(hosts)) {
            let host = if host_name(name).len() < name.len() { name.clone() } else { format!("{name}{port}") };
            all.extend([path, &self.stream_path].map(|path| format!("{scheme}://{host}{path}")));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn admits(&self, host: &str) -> bool {
        let named = |hosts: &Vec<String>| hosts.iter().any(|one| names(one, host));
        self.hosts.as_ref().is_some_and(|hosts| is_local(host) || named(hosts))
    }

    fn parts(&self) -> (&str, &str) {
        parts(&self.resource)
    }
}

/// Splits an address into its origin and its path.
fn parts(url: &str) -> (&str, &str) {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let path = url[after_scheme..].find('/').map_or(url.len(), |at| after_scheme + at);
    url.split_at(path)
}

/// Returns true if an allowed host matches this one. Without a port it matches every port.
#[must_use]
pub fn names(allowed: &str, host: &str) -> bool {
    allowed.eq_ignore_ascii_case(host_name(host)) || allowed.eq_ignore_ascii_case(host)
}

/// Returns the host without its port.
fn host_name(host: &str) -> &str {
    if host.starts_with('[') {
        return host.find(']').map_or(host, |end| &host[..=end]);
    }
    memchr::memrchr(b':', host.as_bytes()).map_or(host, |colon| &host[..colon])
}

/// Returns true for a loopback name, with or without a port.
#[must_use]
pub fn is_local(host: &str) -> bool {
    let name = host_name(host);
    let port = &host[name.len()..];
    let port_fits = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    port_fits && (name.eq_ignore_ascii_case("localhost") || matches!(name, "127.0.0.1" | "[::1]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &ResourceAddress, host: &str, path: &str) -> String {
        address.at(RequestAddress { host: Some(host), path })
    }

    #[test]
    fn the_resource_follows_the_host_where_that_may_vary_and_the_stream_is_one_of_its_own() {
        let own = ResourceAddress::fixed("http://127.0.0.1:8080/mcp").with_stream("/mcp", "/sse");
        let own = own.known_as(&["box.example".to_owned()]);
        assert_eq!(at(&own, "localhost:8080", "/mcp"), "http://localhost:8080/mcp");
        assert_eq!(at(&own, "[::1]:9000", "/sse"), "http://[::1]:9000/sse");
        assert_eq!(at(&own, "box.example:8080", "/mcp"), "http://box.example:8080/mcp");
        for stranger in ["evil.example", "localhost.evil.example:8080", "localhost:x", ""] {
            assert_eq!(at(&own, stranger, "/mcp"), "http://127.0.0.1:8080/mcp", "{stranger}");
        }
        assert!(own.is_own("http://localhost:8080/sse") && own.is_own("http://127.0.0.1:8080/mcp"));
        let audiences = own.audiences();
        assert!(audiences.iter().all(|one| own.is_own(one)), "{audiences:?}");
        assert!(audiences.contains(&"http://localhost:8080/sse".to_owned()), "{audiences:?}");
        for other in ["https://localhost:8080/mcp", "http://localhost:8080/api", "http://evil.example/mcp", "x"] {
            assert!(!own.is_own(other), "{other}");
        }
    }

    #[test]
    fn a_configured_resource_keeps_its_host_and_the_path_before_the_endpoint() {
        let own = ResourceAddress::fixed("https://box.example/gate/mcp").with_stream("/mcp", "/sse");
        assert_eq!(at(&own, "localhost:8080", "/mcp"), "https://box.example/gate/mcp");
        assert_eq!(at(&own, "localhost:8080", "/sse"), "https://box.example/gate/sse");
        assert_eq!(own.of_metadata(None, "/gate/sse").as_deref(), Some("https://box.example/gate/sse"));
        assert_eq!(own.of_metadata(None, "").as_deref(), Some("https://box.example/gate/mcp"));
        assert_eq!(own.of_metadata(None, "/mcp"), None);
        assert!(!own.is_own("https://localhost/gate/mcp"));
    }
}
