//! The TLS handshake on a client's socket.

use super::front::FrontTls;
use super::shown::shown_certificate;
use super::stream::MaybeTlsStream;
use super::words::{find, reason};
use signalbox_engine::authenticator::ConnectionProof;
use signalbox_runtime::counters::Counters;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Content type of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;
/// Maximum time for a client that does not speak TLS to read the reason.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Maximum number of bytes read from such a client. Bytes left unread when the socket closes would discard the reason.
const UNHEARD: usize = 64 * 1024;

/// Outcome of a handshake.
pub(crate) enum HandshakeOutcome {
    /// A TLS connection, with the client's certificate if it presented one.
    Secured(MaybeTlsStream, Option<ConnectionProof>),
    /// The client does not speak TLS.
    NotTls(TcpStream),
    /// The connection failed, and the client cannot be told.
    Gone,
}

/// Reason why a handshake failed.
enum HandshakeError {
    TimedOut,
    Crowded,
    Io(io::Error),
}

impl FrontTls {
    /// Performs the handshake. Counts and logs a failure.
    pub(crate) async fn accept(&self, socket: TcpStream, counters: &Counters) -> HandshakeOutcome {
        let failed = match timeout(self.spec.handshake_timeout, self.handshake(socket, counters)).await {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(failed)) => failed,
            Err(_) if self.room.available_permits() == 0 => HandshakeError::Crowded,
            Err(_) => HandshakeError::TimedOut,
        };
        let why = match &failed {
            HandshakeError::TimedOut => "timeout",
            HandshakeError::Crowded => "crowded",
            HandshakeError::Io(error) => find(error).map_or("closed", reason),
        };
        counters.handshake_failed(why);
        if let HandshakeError::Io(error) = failed {
            tracing::debug!(%error, "a TLS handshake failed");
        }
        HandshakeOutcome::Gone
    }

    async fn handshake(&self, socket: TcpStream, counters: &Counters) -> Result<HandshakeOutcome, HandshakeError> {
        let mut first = [0];
        // Wait here first: a silent client must not occupy a place among the handshakes.
        if socket.peek(&mut first).await.map_err(HandshakeError::Io)? == 0 {
            return Err(HandshakeError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        if first[0] != HANDSHAKE {
            counters.handshake_failed("not_tls");
            return Ok(HandshakeOutcome::NotTls(socket));
        }
        let _room = self.room.acquire().await.map_err(|_| HandshakeError::Crowded)?;
        let _count = HandshakeCount::new(counters);
        let _ = socket.set_nodelay(true);
        let stream = TlsAcceptor::from(self.config()).accept(socket).await.map_err(HandshakeError::Io)?;
        Counters::add(&counters.handshakes_done);
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let shown = shown.map(|certificate| ConnectionProof::Certificate(shown_certificate(certificate)));
        Ok(HandshakeOutcome::Secured(MaybeTlsStream::Tls(Box::new(stream.into())), shown))
    }
}

/// Counts a handshake in progress until it is dropped.
struct HandshakeCount<'a>(&'a Counters);

impl<'a> HandshakeCount<'a> {
    fn new(counters: &'a Counters) -> Self {
        counters.handshakes.fetch_add(1, Ordering::Relaxed);
        Self(counters)
    }
}

impl Drop for HandshakeCount<'_> {
    fn drop(&mut self) {
        self.0.handshakes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sends a response to a client that does not speak TLS, and closes the socket.
pub(crate) async fn last_words(mut socket: TcpStream, words: &[u8]) {
    let writing = async {
        socket.write_all(words).await?;
        socket.shutdown().await?;
        let mut rest = socket.take(UNHEARD as u64);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    let _ = timeout(LAST_WORDS, writing).await;
}
