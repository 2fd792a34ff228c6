//! Resolves the POST address in HTTP+SSE (2024-11-05), which the server names in its `endpoint` event.

/// Maximum length of an address in bytes.
pub const MAX_ENDPOINT: usize = 4096;

/// Default ports for `http` and `https`.
const DEFAULT_PORT: u16 = 80;
const DEFAULT_TLS_PORT: u16 = 443;

/// Reason why an address is rejected. Errors never quote the address, because it contains the session's id.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EndpointError {
    /// The event has no address.
    #[error("is empty")]
    Empty,
    /// The address exceeds [`MAX_ENDPOINT`].
    #[error("is longer than {MAX_ENDPOINT} bytes")]
    TooLong,
    /// The text is not an address.
    #[error("is no address")]
    Malformed,
    /// The address has a different origin.
    #[error("has another scheme, host or port than the configured url, or holds credentials")]
    OtherOrigin,
}

/// The `http` or `https` address at which the event stream was opened.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Base<'a> {
    /// Host, without the brackets of an IPv6 address.
    pub host: &'a str,
    /// Port of the server.
    pub port: u16,
    /// Path with its leading slash and without a query.
    pub path: &'a str,
    /// Set if the scheme is `https`.
    pub secure: bool,
}

/// Returns the path and query to post to. Messages and credentials must reach the configured host and port only. An
/// address with another origin is rejected rather than reinterpreted.
///
/// # Errors
/// If the address is invalid or has another origin.
pub fn resolve(base: Base<'_>, event: &[u8]) -> Result<String, EndpointError> {
    if event.len() > MAX_ENDPOINT {
        return Err(EndpointError::TooLong);
    }
    let text = std::str::from_utf8(event).map_err(|_| EndpointError::Malformed)?.trim();
    // Browsers read a backslash as a slash, which could hide a host. The other characters must be percent-encoded.
    if text
        .bytes()
        .any(|byte| !byte.is_ascii_graphic() || matches!(byte, b'\\' | b'"' | b'<' | b'>' | b'`' | b'{' | b'}'))
    {
        return Err(EndpointError::Malformed);
    }
    let text = text.split('#').next().unwrap_or_default();
    if text.is_empty() {
        return Err(EndpointError::Empty);
    }
    let joined = if let Some(rest) = text.strip_prefix("//") {
        in_origin(base, rest)?
    } else if let Some((scheme, rest)) = scheme(text) {
        let own = if base.secure { "https" } else { "http" };
        let rest = rest.strip_prefix("//").filter(|_| scheme.eq_ignore_ascii_case(own));
        in_origin(base, rest.ok_or(EndpointError::OtherOrigin)?)?
    } else if text.starts_with('/') {
        text.to_owned()
    } else if text.starts_with('?') {
        format!("{}{text}", base.path)
    } else {
        let folder = base.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{text}")
    };
    let (path, query) = joined.split_once('?').map_or((joined.as_str(), None), |(path, query)| (path, Some(query)));
    let mut line = without_dots(path);
    if let Some(query) = query {
        line.push('?');
        line.push_str(query);
    }
    Ok(line)
}

/// Splits off the scheme of an absolute address.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    // In `a/b:c` and `?x=a:b`, the colon is part of the path or query.
    (!scheme.contains(['/', '?'])).then_some((scheme, rest))
}

/// Returns path and query of `host:port/path?query` if host and port are the configured ones.
fn in_origin(base: Base<'_>, rest: &str) -> Result<String, EndpointError> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, line) = rest.split_at(end);
    if authority.is_empty() || authority.contains('@') {
        return Err(EndpointError::OtherOrigin);
    }
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or(EndpointError::OtherOrigin)?)),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        None | Some("") if base.secure => DEFAULT_TLS_PORT,
        None | Some("") => DEFAULT_PORT,
        // `parse` alone would accept a sign.
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().map_err(|_| EndpointError::OtherOrigin)?
        }
        Some(_) => return Err(EndpointError::OtherOrigin),
    };
    if !host.eq_ignore_ascii_case(base.host) || port != base.port {
        return Err(EndpointError::OtherOrigin);
    }
    Ok(if line.starts_with('/') { line.to_owned() } else { format!("/{line}") })
}

/// Removes the `.` and `..` segments of a path (RFC 3986, section 5.2.4).
#[must_use]
pub fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16, path: &str, event: &str) -> Result<String, EndpointError> {
        resolve(Base { host, port, path, secure: false }, event.as_bytes())
    }

    #[test]
    fn an_address_of_the_same_origin_is_found() {
        for (event, found) in [
            ("/message?sessionId=1-a", "/message?sessionId=1-a"),
            (" /message \n", "/message"),
            ("message?x=1", "/a/b/message?x=1"),
            ("?sessionId=1", "/a/b/sse?sessionId=1"),
            ("../up?x=/../y", "/a/up?x=/../y"),
            ("../../../../up", "/up"),
            ("./", "/a/b/"),
            ("..", "/a/"),
            ("/x/./y/../z", "/x/z"),
            ("/message#part", "/message"),
            ("/a?redirect=http://elsewhere/", "/a?redirect=http://elsewhere/"),
            ("//127.0.0.1:9000/m", "/m"),
            ("http://127.0.0.1:9000/m?x=1", "/m?x=1"),
            ("HTTP://127.0.0.1:9000", "/"),
            ("http://127.0.0.1:9000?x=1", "/?x=1"),
            ("/a:b", "/a:b"),
            ("/%2e%2e/x", "/%2e%2e/x"),
        ] {
            assert_eq!(at("127.0.0.1", 9000, "/a/b/sse", event).as_deref(), Ok(found), "{event}");
        }
        assert_eq!(at("Box.example", 80, "/sse", "http://box.EXAMPLE:80/m").as_deref(), Ok("/m"));
        assert_eq!(at("box.example", 80, "/sse", "http://box.example/m").as_deref(), Ok("/m"));
        assert_eq!(at("::1", 9, "/sse", "http://[::1]:9/m").as_deref(), Ok("/m"));
        assert_eq!(at("box.example", 80, "/", "m").as_deref(), Ok("/m"));
    }

    #[test]
    fn an_address_with_another_scheme_is_refused() {
        let secure = |port, event: &str| {
            resolve(Base { host: "box.example", port, path: "/sse", secure: true }, event.as_bytes())
        };
        assert_eq!(secure(443, "https://box.example/m").as_deref(), Ok("/m"));
        assert_eq!(secure(443, "//box.example/m").as_deref(), Ok("/m"));
        assert_eq!(secure(80, "https://box.example:80/m").as_deref(), Ok("/m"));
        for (port, event) in [(443, "http://box.example:443/m"), (443, "http://box.example/m"), (80, "//box.example/m")]
        {
            assert_eq!(secure(port, event), Err(EndpointError::OtherOrigin), "{event}");
        }
        assert_eq!(at("box.example", 80, "/sse", "https://box.example:80/m"), Err(EndpointError::OtherOrigin));
    }

    #[test]
    fn an_address_elsewhere_is_refused() {
        for event in [
            "http://evil.example:9000/m",
            "http://127.0.0.1:9001/m",
            "http://127.0.0.1/m",
            "https://127.0.0.1:9000/m",
            "//evil.example/m",
            "///m",
            "http:///m",
            "http:/m",
            "http:m",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/plain,x",
            "http://127.0.0.1:9000@evil.example/m",
            "http://me:secret@127.0.0.1:9000/m",
            "http://127.0.0.1:9000.evil.example/m",
            "http://127.0.0.1:+9000/m",
            "http://127.0.0.1:99999/m",
            "http://[127.0.0.1]x:9000/m",
            "HTTP://127.0.0.1.:9000/m",
        ] {
            assert_eq!(at("127.0.0.1", 9000, "/sse", event), Err(EndpointError::OtherOrigin), "{event}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let at = |event: &str| at("127.0.0.1", 9000, "/sse", event);
        for event in ["", "  ", "#x"] {
            assert_eq!(at(event), Err(EndpointError::Empty), "{event:?}");
        }
        for event in
            ["/a b", "/a\nhost: x", "/a\r\nx", "\\\\evil.example/m", "/\\evil", "/\u{e9}", "/\u{0}", "{\"a\":1}"]
        {
            assert_eq!(at(event), Err(EndpointError::Malformed), "{event:?}");
        }
        let longest = format!("/{}", "a".repeat(MAX_ENDPOINT - 1));
        assert_eq!(at(&longest), Ok(longest.clone()));
        assert_eq!(at(&format!("{longest}a")), Err(EndpointError::TooLong));
        assert_eq!(
            resolve(Base { host: "h", port: 80, path: "/", secure: false }, b"/\xff"),
            Err(EndpointError::Malformed)
        );
    }
}
