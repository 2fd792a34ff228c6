//! The addresses by which clients know the MCP endpoint as a protected resource.
//!
//! Clients compare the resource in the metadata with the address that they were given and refuse another host or path.
//! So where the host may vary (loopback has several names), the resource follows the request, and the stream of
//! HTTP+SSE is a resource of its own.

/// The address of a client's request, as far as it decides which resource was meant.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RequestAddress<'a> {
    /// The value of the `Host` header.
    pub host: Option<&'a str>,
    /// The path, without a query.
    pub path: &'a str,
}

/// The resource, and the variants of it that are this gateway too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceAddress {
    resource: String,
    /// Path of the stream of HTTP+SSE, with what a proxy puts before it.
    stream_path: String,
    /// Hosts other than loopback that may take the place of the resource's own. `None` if the host never varies.
    hosts: Option<Vec<String>>,
}

impl ResourceAddress {
    /// The resource at this address, whose host never varies.
    #[must_use]
    pub fn fixed(resource: &str) -> Self {
        Self { resource: resource.to_owned(), stream_path: "/sse".to_owned(), hosts: None }
    }

    /// The same with the stream of HTTP+SSE at `stream`, beside the endpoint at `endpoint`.
    #[must_use]
    pub fn with_stream(mut self, endpoint: &str, stream: &str) -> Self {
        let before = self.parts().1.strip_suffix(endpoint).unwrap_or_default();
        self.stream_path = format!("{before}{stream}");
        self
    }

    /// The same, known by every name of loopback and by these hosts.
    #[must_use]
    pub fn known_as(mut self, hosts: &[String]) -> Self {
        self.hosts = Some(hosts.iter().map(|host| host.to_ascii_lowercase()).collect());
        self
    }

    /// The resource itself, the audience of tokens.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.resource
    }

    /// True if the resource is at an address of loopback.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.parts().0.split_once("://").is_some_and(|(_, host)| is_local(host))
    }

    /// The resource that a client means which sends its requests to this address.
    #[must_use]
    pub fn at(&self, request: RequestAddress<'_>) -> String {
        let (origin, path) = self.parts();
        // A resource without a path holds everything below it.
        let is_stream = !path.trim_matches('/').is_empty() && request.path.len() > 1 && path != request.path;
        let is_stream = is_stream && self.stream_path.ends_with(request.path);
        let path = if is_stream { &self.stream_path } else { path };
        match (request.host.filter(|host| self.admits(host)), origin.split_once("://")) {
            (Some(host), Some((scheme, _))) => format!("{scheme}://{}{path}", host.to_ascii_lowercase()),
            _ => format!("{origin}{path}"),
        }
    }

    /// The resource whose metadata is asked for by this path behind the well-known one. `None` if it is not ours.
    #[must_use]
    pub fn of_metadata(&self, host: Option<&str>, path: &str) -> Option<String> {
        let path = path.trim_end_matches('/');
        let own = self.parts().1;
        if path.is_empty() || path == own.trim_end_matches('/') {
            return Some(self.at(RequestAddress { host, path: own }));
        }
        (path == self.stream_path).then(|| self.at(RequestAddress { host, path }))
    }

    /// True if this canonical address is the resource or a variant of it.
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

    /// The audiences of tokens for the resource: its variants as far as they are known beforehand.
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

/// True if an allowed host stands for this one. Without a port it stands for every port.
#[must_use]
pub fn names(allowed: &str, host: &str) -> bool {
    allowed.eq_ignore_ascii_case(host_name(host)) || allowed.eq_ignore_ascii_case(host)
}

/// The host without its port.
fn host_name(host: &str) -> &str {
    if host.starts_with('[') {
        return host.find(']').map_or(host, |end| &host[..=end]);
    }
    memchr::memrchr(b':', host.as_bytes()).map_or(host, |colon| &host[..colon])
}

/// True for a name of loopback, with or without a port.
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

    /// Issue 32, point 14.
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
