//! Listener for clients: its address and transport, and whether other machines can reach it.

use super::tls::ListenTls;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// Path at which the process reports that it is alive.
pub const HEALTH: &str = "/healthz";
/// Path at which it reports that it can serve.
pub const READY: &str = "/readyz";
/// Path of its metrics, in the Prometheus text format.
pub const METRICS: &str = "/metrics";
/// Path at which it takes signed heads of other gateways' tapes.
pub const ANCHORS: &str = "/anchors";

/// Address, transport and path that clients connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenConfig {
    /// Transport spoken on the address.
    pub transport: Transport,
    /// Loopback address. Any other address is allowed only if clients must authenticate.
    pub host: IpAddr,
    /// Port; 0 takes any free one.
    pub port: u16,
    /// Path of the MCP endpoint.
    pub path: String,
    /// TLS settings, if TLS is enabled.
    pub tls: Option<ListenTls>,
}

impl Default for ListenConfig {
    /// Returns the listener of an empty configuration.
    fn default() -> Self {
        let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self { transport: Transport::Http, host, port: 8080, path: "/mcp".to_owned(), tls: None }
    }
}

impl ListenConfig {
    /// Returns `true` if strangers cannot use the address: it is a loopback one, or clients must authenticate, by a
    /// certificate or because the file requires `authentication`.
    #[must_use]
    pub fn may_be_reached(&self, authentication: bool) -> bool {
        self.host.is_loopback() || authentication || self.tls.as_ref().is_some_and(ListenTls::authenticates)
    }
}

/// Transport spoken on the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP, and WebSocket on the same path.
    Http,
    /// The same as `Http`, but shown to people as WebSocket.
    WebSocket,
    /// One message per line, on a bare socket.
    Tcp,
}

/// `HOST:PORT`, as `--listen` and `SIGNALBOX_LISTEN` take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddr {
    pub host: IpAddr,
    /// Port; 0 takes any free one.
    pub port: u16,
}

/// Reason why a text is not an address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// The text is not of the form `HOST:PORT`.
    #[error("expected HOST:PORT, like 127.0.0.1:8080, [::1]:8080 or localhost:0")]
    Malformed,
}

impl FromStr for ListenAddr {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let (host, port) = text.rsplit_once(':').ok_or(ListenError::Malformed)?;
        // `u16::from_str` would accept a sign.
        if host.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ListenError::Malformed);
        }
        let port = port.parse().map_err(|_| ListenError::Malformed)?;
        if host.contains(':') && !host.starts_with('[') {
            return Err(ListenError::Malformed);
        }
        let host = address(host).ok_or(ListenError::Malformed)?;
        Ok(Self { host, port })
    }
}

/// Returns the address that `host` names. Of names only `localhost` is known, since no resolver is asked.
pub(super) fn address(host: &str) -> Option<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("127.0.0.1:8080", Ok(("127.0.0.1", 8080))),
            ("localhost:0", Ok(("127.0.0.1", 0))),
            ("[::1]:65535", Ok(("::1", 65535))),
            ("127.8.9.1:1", Ok(("127.8.9.1", 1))),
            ("0.0.0.0:80", Ok(("0.0.0.0", 80))),
            ("example.com:80", Err(ListenError::Malformed)),
            ("::1:80", Err(ListenError::Malformed)),
            ("127.0.0.1:65536", Err(ListenError::Malformed)),
            ("127.0.0.1:+1", Err(ListenError::Malformed)),
            ("127.0.0.1:", Err(ListenError::Malformed)),
            ("8080", Err(ListenError::Malformed)),
            (":8080", Err(ListenError::Malformed)),
        ] {
            let expected = expected.map(|(host, port)| ListenAddr { host: host.parse().expect("an address"), port });
            assert_eq!(text.parse::<ListenAddr>(), expected, "{text}");
        }
    }
}
