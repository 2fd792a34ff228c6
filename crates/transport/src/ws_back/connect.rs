//! Opens a WebSocket to a backend.

use super::Backend;
use crate::backend_fault::{self, ended_tls};
use crate::tls::{self, MaybeTlsStream};
use crate::websocket::{Duplex, Patience, Role, SUBPROTOCOL, derive_accept_key};
use bytes::Bytes;
use http::header::{
    CONNECTION, HOST, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE, WWW_AUTHENTICATE,
};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::backend_credentials::MAX_CREDENTIAL_TRIES;
use signalbox_runtime::{AuthHeader, AuthRefusal, BackendCredentials, LinkEvents, RequestIdentity, RequestSender};
use std::fmt::Display;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;

/// Maximum size of a response head, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// In ticks of 15 s. This is long: a server that does one thing at a time answers no ping while it works on a call, and
/// calls have their own timeout.
const PATIENCE: Patience = Patience { silent: 20, unfinished: 20 };

/// Reason why a handshake failed.
enum UpgradeError {
    Fault(Fault),
    /// Refused with 401 or 403, and these values of `WWW-Authenticate`.
    Unauthorized(u16, Vec<String>),
}

impl From<Fault> for UpgradeError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Returns on whose behalf a handshake is made. All requests of a principal share the connection, so it must not carry
/// the token of a single caller.
fn behalf(credentials: &dyn BackendCredentials, events: &dyn LinkEvents) -> RequestIdentity {
    let asker = if credentials.is_per_caller() { RequestSender::Gone } else { RequestSender::Gateway };
    RequestIdentity { user: events.user(), asker }
}

/// Connects and performs the handshake. Received messages are charged to the backend's share. A refused credential is
/// replaced if there is another.
pub(super) async fn connect(backend: &Backend, events: &dyn LinkEvents) -> Result<Duplex<MaybeTlsStream>, Fault> {
    let mut credential = match &backend.credentials {
        Some(credentials) => credentials.current(behalf(&**credentials, events)).await?,
        None => None,
    };
    for _ in 1..MAX_CREDENTIAL_TRIES {
        let (status, challenges) = match attempt(backend, events, credential.as_ref()).await {
            Ok(duplex) => return Ok(duplex),
            Err(UpgradeError::Fault(fault)) => return Err(fault),
            Err(UpgradeError::Unauthorized(status, challenges)) => (status, challenges),
        };
        let refusal = AuthRefusal { status, challenges, used: credential.take() };
        credential = match &backend.credentials {
            Some(credentials) => credentials.renewed(behalf(&**credentials, events), refusal).await?,
            None => None,
        };
        if credential.is_none() {
            return Err(backend.unauthorized(status));
        }
    }
    attempt(backend, events, credential.as_ref()).await.map_err(|error| match error {
        UpgradeError::Fault(fault) => fault,
        UpgradeError::Unauthorized(status, _) => backend.unauthorized(status),
    })
}

async fn attempt(
    backend: &Backend,
    events: &dyn LinkEvents,
    credential: Option<&AuthHeader>,
) -> Result<Duplex<MaybeTlsStream>, UpgradeError> {
    let within = backend.connect_timeout;
    let late = || {
        let text = format_args!("no answer to the handshake within {} s", within.as_secs_f32());
        backend.unreachable(&text)
    };
    let socket = backend.target.connect(within).await;
    let socket = socket.map_err(|error| backend_fault::unreachable(&backend.name, &backend.target, &error))?;
    let (socket, early) = timeout(within, handshake(backend, socket, credential)).await.map_err(|_| late())??;
    Ok(Duplex::new(socket, &early, Role::Client, backend.max_message, events.share(), PATIENCE).await)
}

async fn handshake(
    backend: &Backend,
    socket: MaybeTlsStream,
    credential: Option<&AuthHeader>,
) -> Result<(MaybeTlsStream, Bytes), UpgradeError> {
    let broken = |error: hyper::Error| match tls::find(&error) {
        Some(error) => backend.unreachable(&format_args!("it {}", ended_tls(error))),
        None => backend.refused(&format_args!("with something that cannot be read ({error})")),
    };
    let mut builder = http1::Builder::new();
    builder.max_header_size(MAX_HEAD);
    let (mut sender, conn) = builder.handshake(TokioIo::new(socket)).await.map_err(broken)?;
    let mut driver = std::pin::pin!(conn.with_upgrades());
    let key = generate_key();
    let mut answer = std::pin::pin!(sender.send_request(request(backend, &key, credential)?));
    let answer = tokio::select! {
        biased;
        answer = &mut answer => answer,
        // Even if the driver ended with an error, the response future reports what became of the request.
        _ = &mut driver => answer.await,
    };
    let answer = answer.map_err(broken)?;
    if let status @ (401 | 403) = answer.status().as_u16() {
        let challenges = answer.headers().get_all(WWW_AUTHENTICATE).iter();
        let challenges = challenges.filter_map(|value| value.to_str().ok().map(str::to_owned)).collect();
        return Err(UpgradeError::Unauthorized(status, challenges));
    }
    check(backend, &answer, &key)?;
    // The upgrade of a connection that has ended is ready at once, so the connection is not polled again.
    let mut upgrade = std::pin::pin!(hyper::upgrade::on(answer));
    let upgraded = tokio::select! {
        biased;
        upgraded = &mut upgrade => upgraded,
        _ = &mut driver => upgrade.await,
    };
    let parts = upgraded.map_err(broken)?.downcast::<TokioIo<MaybeTlsStream>>();
    let parts = parts.map_err(|_| backend.fault(FaultKind::Internal, "was connected to in an unknown way"))?;
    Ok((parts.io.into_inner(), parts.read_buf))
}

fn request(backend: &Backend, key: &str, credential: Option<&AuthHeader>) -> Result<Request<Empty<Bytes>>, Fault> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = backend.target.uri.clone();
    let headers = request.headers_mut();
    headers.insert(HOST, backend.target.authority.clone());
    headers.extend(backend.headers.iter().cloned());
    headers.extend(credential.map(|credential| (credential.name.clone(), credential.value.clone())));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    let key = HeaderValue::from_str(key);
    headers.insert(SEC_WEBSOCKET_KEY, key.map_err(|_| backend.fault(FaultKind::Internal, "cannot be sent a key"))?);
    Ok(request)
}

/// Checks the handshake response. A server that names no subprotocol is accepted, as the standard allows; one that
/// names another is not.
fn check(backend: &Backend, answer: &Response<Incoming>, key: &str) -> Result<(), Fault> {
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(backend.refused(&format_args!("with status {}", answer.status().as_u16())));
    }
    match first_wrong_header(answer.headers(), key) {
        None => Ok(()),
        Some(header) => Err(backend.refused(&format_args!("with a wrong {header} header"))),
    }
}

/// Returns the first header with a wrong value.
fn first_wrong_header(headers: &HeaderMap, key: &str) -> Option<HeaderName> {
    let value = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let names =
        |name: &HeaderName, wanted: &str| value(name).split(',').any(|name| name.trim().eq_ignore_ascii_case(wanted));
    let checks = [
        (UPGRADE, names(&UPGRADE, "websocket")),
        (CONNECTION, names(&CONNECTION, "upgrade")),
        (SEC_WEBSOCKET_ACCEPT, value(&SEC_WEBSOCKET_ACCEPT) == derive_accept_key(key.as_bytes())),
        (SEC_WEBSOCKET_PROTOCOL, headers.get(SEC_WEBSOCKET_PROTOCOL).is_none_or(|name| name == SUBPROTOCOL)),
        // No extension was offered.
        (SEC_WEBSOCKET_EXTENSIONS, !headers.contains_key(SEC_WEBSOCKET_EXTENSIONS)),
    ];
    checks.into_iter().find(|(_, right)| !right).map(|(name, _)| name)
}

impl Backend {
    fn unreachable(&self, why: &dyn Display) -> Fault {
        let text = format_args!("cannot be reached at {}: {why}", self.target);
        backend_fault::fault(&self.name, FaultKind::BackendDown, text)
    }

    fn unauthorized(&self, status: u16) -> Fault {
        self.refused(&format_args!("with status {status}"))
    }

    fn refused(&self, how: &dyn Display) -> Fault {
        self.fault(FaultKind::BackendDown, format_args!("answered the WebSocket handshake {how}"))
    }

    fn fault(&self, kind: FaultKind, text: impl Display) -> Fault {
        backend_fault::fault(&self.name, kind, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_only_if_every_header_is_right() {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let good = [
            ("upgrade", "WebSocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ];
        let check = |changed: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in good.iter().chain(changed) {
                headers.insert(*name, value.parse().unwrap());
            }
            first_wrong_header(&headers, key).map(|name| name.to_string())
        };
        assert_eq!(check(&[]), None);
        assert_eq!(check(&[("sec-websocket-protocol", "mcp")]), None);
        for bad in [
            ("upgrade", "h2c"),
            ("connection", "close"),
            ("sec-websocket-accept", "x"),
            ("sec-websocket-protocol", "soap"),
            ("sec-websocket-extensions", "permessage-deflate"),
        ] {
            assert_eq!(check(&[bad]).as_deref(), Some(bad.0));
        }
    }
}
