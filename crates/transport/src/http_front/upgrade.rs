//! The request that turns a connection into a WebSocket.

use super::FrontAnswer;
use super::answer::{plain, refusal, sentence};
use super::client_connection::ClientConnection;
use super::socket::Socket;
use crate::protobuf;
use crate::websocket::{SUBPROTOCOL, derive_accept_key};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use signalbox_engine::{FaultKind, dialect};
use signalbox_wire::Era;
use std::sync::Arc;

/// Only version of the WebSocket protocol.
const VERSION: HeaderValue = HeaderValue::from_static("13");

/// A session whose client waits for its connection to become a WebSocket.
pub struct PendingUpgrade {
    /// Future of the upgraded connection.
    pub upgrade: OnUpgrade,
    /// Session state for the upgraded connection.
    pub socket: UpgradedSocket,
}

/// Session state of an upgraded connection.
pub enum UpgradedSocket {
    /// Session of an authenticated caller.
    Session(Socket),
    /// No session yet: the first message must authenticate the caller.
    Unproved(SocketFormat),
}

/// Message format in the frames of a WebSocket.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SocketFormat {
    /// MCP as JSON, unless the first message shows another dialect.
    Json,
    /// MCP as protobuf in binary frames.
    Protobuf,
    Governed,
}

impl SocketFormat {
    /// Subprotocol name of each format.
    const ALL: [(&str, Self); 3] =
        [(SUBPROTOCOL, Self::Json), (protobuf::SUBPROTOCOL, Self::Protobuf), (dialect::SUBPROTOCOL, Self::Governed)];
}

/// Returns `true` if the client asks for a WebSocket.
pub fn is_asked_for(headers: &HeaderMap) -> bool {
    headers.contains_key(UPGRADE) && names(headers, &UPGRADE).any(|name| name.eq_ignore_ascii_case("websocket"))
}

/// Answers the upgrade request. If the caller is `known`, its session is open before the response is sent.
pub fn handle(connection: &Arc<ClientConnection>, mut request: Request<Incoming>, known: bool) -> FrontAnswer {
    let accept = match accept_key(request.headers()) {
        Ok(accept) => accept,
        Err(answer) => return *answer,
    };
    let Some(upgrade) = request.extensions_mut().remove::<OnUpgrade>() else {
        return sentence(StatusCode::BAD_REQUEST, FaultKind::InvalidRequest, "this connection cannot be upgraded");
    };
    let offered = || names(request.headers(), &SEC_WEBSOCKET_PROTOCOL);
    let protocol = offered().find_map(|name| SocketFormat::ALL.into_iter().find(|(one, _)| *one == name));
    let format = protocol.map_or(SocketFormat::Json, |(_, format)| format);
    let socket = match known.then(|| Socket::open(connection, connection.caller_by("websocket"), format)) {
        Some(Ok(socket)) => UpgradedSocket::Session(socket),
        Some(Err(fault)) => return refusal(StatusCode::SERVICE_UNAVAILABLE, None, Era::Legacy, &fault),
        None => UpgradedSocket::Unproved(format),
    };
    let mut answer = plain(StatusCode::SWITCHING_PROTOCOLS);
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some((protocol, _)) = protocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    }
    connection.upgrade(PendingUpgrade { upgrade, socket });
    answer
}

/// Computes the `Sec-WebSocket-Accept` value of a valid upgrade request.
fn accept_key(headers: &HeaderMap) -> Result<HeaderValue, Box<FrontAnswer>> {
    let refuse = |status, text: &str| Box::new(sentence(status, FaultKind::InvalidRequest, text));
    if headers.get(SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
        let mut answer = refuse(StatusCode::UPGRADE_REQUIRED, "version 13 of the WebSocket protocol is served");
        answer.headers_mut().insert(SEC_WEBSOCKET_VERSION, VERSION);
        answer.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        return Err(answer);
    }
    let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let key = match (keys.next(), keys.next()) {
        (Some(key), None) if is_key(key.as_bytes()) => key,
        _ => return Err(refuse(StatusCode::BAD_REQUEST, "one Sec-WebSocket-Key header of 16 bytes is required")),
    };
    HeaderValue::from_str(&derive_accept_key(key.as_bytes()))
        .map_err(|_| refuse(StatusCode::BAD_REQUEST, "the Sec-WebSocket-Key header cannot be used"))
}

/// Returns `true` for 16 bytes in base64.
fn is_key(key: &[u8]) -> bool {
    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(digit)
}

/// Returns the comma-separated names in all values of a header.
fn names<'a>(headers: &'a HeaderMap, header: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',').map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(headers: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn an_upgrade_is_seen() {
        assert!(is_asked_for(&with(&[("upgrade", "WebSocket")])));
        assert!(is_asked_for(&with(&[("upgrade", "h2c, websocket")])));
        assert!(!is_asked_for(&with(&[("upgrade", "h2c")])));
        assert!(!is_asked_for(&with(&[("connection", "upgrade")])));
    }

    #[test]
    fn a_client_that_asks_rightly_gets_its_key_and_others_are_told_what_is_wrong() {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let good = with(&[("sec-websocket-version", "13"), ("sec-websocket-key", key)]);
        assert_eq!(accept_key(&good).map_err(|answer| answer.status()).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for (headers, status) in [
            (&[("sec-websocket-key", key)][..], 426),
            (&[("sec-websocket-version", "8"), ("sec-websocket-key", key)], 426),
            (&[("sec-websocket-version", "13")], 400),
            (&[("sec-websocket-version", "13"), ("sec-websocket-key", "short")], 400),
            (&[("sec-websocket-version", "13"), ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZ???")], 400),
            (&[("sec-websocket-version", "13"), ("sec-websocket-key", key), ("sec-websocket-key", key)], 400),
        ] {
            let refused = accept_key(&with(headers)).map_err(|answer| answer.status().as_u16());
            assert_eq!(refused, Err(status), "{headers:?}");
        }
    }
}
