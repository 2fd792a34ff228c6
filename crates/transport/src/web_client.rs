//! Single HTTP requests to addresses that third parties named, such as the endpoints of an authorization server.
//!
//! The caller provides a [`DialGuard`], which checks every address that a name resolves to, directly before that
//! address is dialled: a name that changes between check and connection gains nothing. Redirects are not followed.

use crate::http1::body::{self, ResponseBodyError};
use crate::http1::{Conn, HttpTarget, RequestDraft, SendError, TargetError};
use crate::tls::BackTlsSpec;
use bytes::Bytes;
use http::Method;
use http::header::{HeaderName, HeaderValue, WWW_AUTHENTICATE};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Maximum time to connect to one address, and again for its TLS handshake.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Maximum time for a whole request.
const WHOLE_TIME: Duration = Duration::from_secs(20);
/// Maximum size of an answer.
pub const MAX_ANSWER: usize = 256 * 1024;
/// Maximum number of addresses tried per name.
const MAX_ADDRESSES: usize = 4;

/// Decides which addresses may be dialled.
pub trait DialGuard: Send + Sync {
    /// Returns `true` if this address of the host may be dialled.
    fn may_dial(&self, host: &str, address: IpAddr) -> bool;

    /// Returns `true` if the host may be contacted without TLS.
    fn may_be_plain(&self, host: &str) -> bool;
}

/// A single HTTP request.
pub struct WebRequest {
    /// Method; a `GET` sends no body.
    pub method: Method,
    /// Address: `https://`, or `http://` if the guard allows it.
    pub url: String,
    /// Headers besides `Host` and `Content-Length`. Their values may be secrets.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Body; empty for none.
    pub body: Bytes,
}

impl fmt::Debug for WebRequest {
    /// Addresses, header values and bodies may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Answer to a [`WebRequest`].
#[derive(Clone)]
pub struct WebAnswer {
    pub status: u16,
    /// Values of `WWW-Authenticate`, in order.
    pub challenges: Vec<String>,
    pub body: Bytes,
}

impl fmt::Debug for WebAnswer {
    /// The body may contain a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Reason why there is no answer. It names the host, but never the whole address or the server's response.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address is invalid.
    #[error("{0}")]
    Address(TargetError),
    /// The address does not use TLS.
    #[error("`{host}` would be spoken to without TLS; only https is used")]
    Plain {
        /// Host of the address.
        host: String,
    },
    /// The host resolves only to addresses that are not public.
    #[error("`{host}` leads to an address that is not public")]
    Forbidden {
        /// Host of the address.
        host: String,
    },
    /// No address could be reached, or the answer is incomplete.
    #[error("`{host}` could not be asked: {why}")]
    Failed {
        /// Host of the address.
        host: String,
        /// Description of the failure.
        why: String,
    },
}

/// Sends a request and reads the whole answer.
///
/// # Errors
/// Returns the reason why there is no answer.
pub async fn fetch(request: WebRequest, guard: &dyn DialGuard, tls: &BackTlsSpec) -> Result<WebAnswer, WebError> {
    let name: Arc<str> = "auth.outbound".into();
    let target = HttpTarget::parse(&request.url, "http").map_err(WebError::Address)?;
    if !target.secure && !guard.may_be_plain(&target.host) {
        return Err(WebError::Plain { host: target.host.into() });
    }
    let target = target.with_tls(&name, tls.clone()).map_err(WebError::Address)?;
    let asking = tokio::time::timeout(WHOLE_TIME, exchange(&target, request, guard));
    asking.await.unwrap_or_else(|_| Err(failed(&target, format!("no answer within {} s", WHOLE_TIME.as_secs()))))
}

/// Any stream that can be read and written.
pub trait AnyStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> AnyStream for S {}

/// Connects to an address given by the user, wherever it leads. With `secret` the caller intends to send a secret, so
/// the address needs TLS unless it is on this machine. Returns the connection and the value of `Host`.
///
/// # Errors
/// Returns the reason why there is no connection.
pub async fn open(url: &str, tls: &BackTlsSpec, secret: bool) -> Result<(Box<dyn AnyStream>, HeaderValue), WebError> {
    let target = HttpTarget::parse(url, "http").map_err(WebError::Address)?;
    let local = target.host.eq_ignore_ascii_case("localhost")
        || target.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if secret && !target.secure && !local {
        return Err(WebError::Plain { host: target.host.into() });
    }
    let target = target.with_tls(&"url".into(), tls.clone()).map_err(WebError::Address)?;
    let stream = target.connect(CONNECT_TIME).await.map_err(|error| failed(&target, error))?;
    Ok((Box::new(stream), target.authority.clone()))
}

async fn exchange(target: &HttpTarget, request: WebRequest, guard: &dyn DialGuard) -> Result<WebAnswer, WebError> {
    let socket = dial(target, guard).await?;
    let securing = tokio::time::timeout(CONNECT_TIME, target.secure(socket)).await;
    let stream =
        securing.map_err(|_| failed(target, "no TLS handshake in time"))?.map_err(|error| failed(target, error))?;
    let mut draft = RequestDraft::new(&request.method, &target.uri, &target.authority);
    for (name, value) in &request.headers {
        draft.add(name, value);
    }
    let sent = if request.method == Method::GET { draft.without_body() } else { draft.with_body(request.body) };
    let mut conn = Conn::over(stream);
    let head = conn.send(sent).await.map_err(|error| match error {
        SendError::Unsent(..) => failed(target, "it closed the connection before it took the request"),
        SendError::Failed(error) => failed(target, error),
    })?;
    let bytes = body::whole(&mut conn, MAX_ANSWER, || None).await.map_err(|error| match error {
        ResponseBodyError::TooLarge(_) | ResponseBodyError::NoRoom(_) => failed(target, "its answer is too large"),
        ResponseBodyError::Broken(error) => failed(target, error),
    })?;
    Ok(WebAnswer { status: head.status.as_u16(), challenges: head.texts(&WWW_AUTHENTICATE), body: bytes })
}

/// Connects to the first address of the host that the guard allows and that answers.
async fn dial(target: &HttpTarget, guard: &dyn DialGuard) -> Result<TcpStream, WebError> {
    let found = tokio::time::timeout(CONNECT_TIME, tokio::net::lookup_host((&*target.host, target.port))).await;
    let found = found.map_err(|_| failed(target, "its name could not be looked up in time"))?;
    let found: Vec<_> = found.map_err(|error| failed(target, error))?.take(MAX_ADDRESSES).collect();
    let mut last: Option<io::Error> = None;
    for address in found {
        if !guard.may_dial(&target.host, address.ip()) {
            continue;
        }
        match tokio::time::timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => {
                let _ = socket.set_nodelay(true);
                return Ok(socket);
            }
            Ok(Err(error)) => last = Some(error),
            Err(_) => last = Some(io::ErrorKind::TimedOut.into()),
        }
    }
    Err(match last {
        Some(error) => failed(target, error),
        None => WebError::Forbidden { host: target.host.to_string() },
    })
}

fn failed(target: &HttpTarget, why: impl fmt::Display) -> WebError {
    WebError::Failed { host: target.host.to_string(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http_back::tests::server::{Act, Server, response};
    use std::sync::Mutex;

    struct Asked {
        dial: bool,
        plain: bool,
        asked: Mutex<Vec<IpAddr>>,
    }

    impl DialGuard for Asked {
        fn may_dial(&self, _: &str, address: IpAddr) -> bool {
            self.asked.lock().unwrap().push(address);
            self.dial
        }

        fn may_be_plain(&self, _: &str) -> bool {
            self.plain
        }
    }

    fn get(url: String) -> WebRequest {
        WebRequest { method: Method::GET, url, headers: Vec::new(), body: Bytes::new() }
    }

    #[tokio::test]
    async fn the_very_address_that_is_dialled_is_asked_about() {
        let server = Server::start(|_| {
            Act::Write(response("401 Unauthorized", "www-authenticate: Bearer\r\nwww-authenticate: Basic\r\n", "no"))
        })
        .await;
        let url = format!("http://localhost:{}/x", server.address.port());
        let ask = async |dial, plain| {
            let guard = Asked { dial, plain, asked: Mutex::default() };
            let answer = fetch(get(url.clone()), &guard, &BackTlsSpec::default()).await;
            (answer, guard.asked.into_inner().unwrap())
        };
        let (answer, asked) = ask(true, true).await;
        let answer = answer.unwrap();
        assert_eq!((answer.status, &answer.body[..]), (401, &b"no"[..]));
        assert_eq!(answer.challenges, ["Bearer", "Basic"]);
        assert!(asked.iter().all(IpAddr::is_loopback) && !asked.is_empty());
        let (answer, _) = ask(false, true).await;
        assert!(matches!(answer, Err(WebError::Forbidden { .. })));
        let (answer, asked) = ask(true, false).await;
        assert!(matches!(answer, Err(WebError::Plain { .. })) && asked.is_empty());
        assert_eq!(server.seen().len(), 1);
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        let server =
            Server::start(|_| Act::Write(response("302 Found", "location: http://169.254.169.254/\r\n", ""))).await;
        let guard = Asked { dial: true, plain: true, asked: Mutex::default() };
        let answer = fetch(get(format!("http://{}/x", server.address)), &guard, &BackTlsSpec::default()).await.unwrap();
        assert_eq!((answer.status, server.seen().len()), (302, 1));
    }
}
