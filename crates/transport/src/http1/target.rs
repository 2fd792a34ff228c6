use crate::tls::{BackTls, BackTlsError, BackTlsSpec, MaybeTlsStream, TlsError};
use http::header::HeaderValue;
use http::uri::{PathAndQuery, Uri};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// Default port of an address without one.
const DEFAULT_PORT: u16 = 80;
const DEFAULT_TLS_PORT: u16 = 443;

/// Reasons why an address cannot be used. The address is not repeated, since it may contain a secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TargetError {
    /// The address cannot be parsed. Holds the supported scheme.
    #[error("the url cannot be parsed; expected {0}://host:port/path or {0}s://host/path")]
    Url(&'static str),
    /// The scheme of the address is not supported.
    #[error("the url's scheme is {found:?}, but only {served} and {served}s are served")]
    Scheme {
        /// Scheme of the address.
        found: String,
        /// Supported scheme, without TLS.
        served: &'static str,
    },
    /// The address contains a user name or password.
    #[error("the url holds credentials; put them into an `authorization` header instead")]
    Credentials,
    /// The TLS configuration is invalid.
    #[error("{0}")]
    Tls(#[from] TlsError),
}

/// Reason why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("no connection within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("{0}")]
    Tls(#[from] BackTlsError),
    #[error("no TLS handshake within {} s", .0.as_secs_f32())]
    TlsTimedOut(Duration),
}

/// A checked address: the host to connect to and the resource to request.
#[derive(Debug)]
pub(crate) struct HttpTarget {
    /// Host name or address to connect to, without brackets.
    pub host: Box<str>,
    /// Port to connect to.
    pub port: u16,
    /// Value of the `Host` header.
    pub authority: HeaderValue,
    /// Path and query, as in a request line.
    pub uri: Uri,
    /// Set if the scheme requires TLS.
    pub secure: bool,
    /// TLS client, if the scheme requires TLS.
    tls: Option<Arc<BackTls>>,
}

impl HttpTarget {
    /// Parses an address with this scheme, or with its TLS variant: `http` or `https`.
    pub(crate) fn parse(url: &str, scheme: &'static str) -> Result<Self, TargetError> {
        let bad = || TargetError::Url(scheme);
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let secure = match uri.scheme_str().map(str::to_ascii_lowercase) {
            Some(found) if found == scheme => false,
            Some(found) if found.strip_suffix('s') == Some(scheme) => true,
            None => return Err(bad()),
            Some(found) => return Err(TargetError::Scheme { found, served: scheme }),
        };
        let authority = uri.authority().ok_or_else(bad)?;
        if authority.as_str().contains('@') {
            return Err(TargetError::Credentials);
        }
        let host = authority.host();
        let inner = host.trim_start_matches('[').trim_end_matches(']');
        // The parser treats an invalid port as no port.
        let port = match authority.as_str().get(host.len()..) {
            None | Some("") if secure => DEFAULT_TLS_PORT,
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
            secure,
            tls: None,
        })
    }

    /// Reads the TLS files if the scheme requires TLS. `name` identifies the server in the log.
    pub(crate) fn with_tls(mut self, name: &Arc<str>, spec: BackTlsSpec) -> Result<Self, TargetError> {
        if self.secure {
            self.tls = Some(BackTls::new(name, spec, &self.host)?);
        }
        Ok(self)
    }

    /// Connects, and performs the TLS handshake if the scheme requires it. Each of the two has this timeout.
    pub(crate) async fn connect(&self, timeout: Duration) -> Result<MaybeTlsStream, ConnectError> {
        let connect = TcpStream::connect((&*self.host, self.port));
        let socket = tokio::time::timeout(timeout, connect).await.map_err(|_| ConnectError::TimedOut(timeout))??;
        socket.set_nodelay(true)?;
        let securing = tokio::time::timeout(timeout, self.secure(socket));
        Ok(securing.await.map_err(|_| ConnectError::TlsTimedOut(timeout))??)
    }

    /// Performs the TLS handshake on a connected socket, if the scheme requires it.
    pub(crate) async fn secure(&self, socket: TcpStream) -> Result<MaybeTlsStream, BackTlsError> {
        match &self.tls {
            None => Ok(MaybeTlsStream::Plain(socket)),
            // Boxed, so that connections without TLS do not reserve space for it.
            Some(tls) => Box::pin(tls.connect(socket)).await,
        }
    }
}

impl std::fmt::Display for HttpTarget {
    /// Shows only host and port: the path may contain a secret.
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
            let target = HttpTarget::parse(url, "http").unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(target.authority, host);
            assert_eq!(target.uri.to_string(), line);
        };
        check("http://a.example", "a.example:80", "a.example", "/");
        check("http://[::1]:9/mcp?x=1", "[::1]:9", "[::1]:9", "/mcp?x=1");
        check("http://127.0.0.1:8080/mcp", "127.0.0.1:8080", "127.0.0.1:8080", "/mcp");
        check("HTTPS://a.example/mcp", "a.example:443", "a.example", "/mcp");
        check("https://[::1]:9", "[::1]:9", "[::1]:9", "/");
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
            "httpss://h/secret",
            "https://me:secret@h/",
            "wss://h/secret",
            "ftp://h/secret",
            "http://me:secret@h/",
        ] {
            let error = HttpTarget::parse(url, "http").unwrap_err();
            assert!(!error.to_string().contains("secret"), "{url}: {error}");
        }
    }
}
