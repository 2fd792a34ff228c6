//! The TLS handshake before a connection speaks HTTP, if TLS is configured.

use super::client_connection::ClientConnection;
use crate::tls::{FrontTls, HandshakeOutcome, MaybeTlsStream, last_words};
use std::future::{Future as _, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use tokio::net::TcpStream;

/// Response to a client that speaks plain HTTP to a TLS listener.
const USE_HTTPS: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 61\r\n\
connection: close\r\n\r\nTLS is spoken here: use https:// (or wss://) in the address.\n";

/// Returns the stream to serve HTTP on, or `None` if the client is gone.
pub async fn accept(socket: TcpStream, connection: &Arc<ClientConnection>) -> Option<MaybeTlsStream> {
    match &connection.front.spec.tls {
        None => Some(MaybeTlsStream::Plain(socket)),
        // Boxed, so that connections without TLS do not reserve space for it.
        Some(tls) => Box::pin(handshake(socket, connection, tls)).await,
    }
}

async fn handshake(socket: TcpStream, connection: &ClientConnection, tls: &FrontTls) -> Option<MaybeTlsStream> {
    // The handshake has its own time limit; the limit of the first request head starts after it.
    connection.begin();
    let outcome = {
        let mut accepting = std::pin::pin!(tls.accept(socket, &connection.front.gateway.counters));
        poll_fn(|cx| {
            connection.register_waker(cx.waker());
            if connection.is_stopped() || connection.is_displaced() {
                return Poll::Ready(HandshakeOutcome::Gone);
            }
            accepting.as_mut().poll(cx)
        })
        .await
    };
    match outcome {
        HandshakeOutcome::Secured(stream, shown) => {
            connection.set_secured(shown);
            Some(stream)
        }
        HandshakeOutcome::NotTls(socket) => {
            last_words(socket, USE_HTTPS).await;
            None
        }
        HandshakeOutcome::Gone => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_plain_http_is_as_long_as_it_says() {
        let text = std::str::from_utf8(USE_HTTPS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
    }
}
