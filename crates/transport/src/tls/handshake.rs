//! The TLS handshake on a client's socket.

use super::front::FrontTls;
use super::shown::shown_certificate;
use super::stream::MaybeTlsStream;
use super::words::{find, reason};
use signalbox_engine::authenticator::Shown;
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
pub(crate) enum Arrived {
    /// A TLS connection, with the client's certificate if it presented one.
    Secured(MaybeTlsStream, Option<Shown>),
    /// The client does not speak TLS.
    NotTls(TcpStream),
    /// The connection failed, and the client cannot be told.
    Gone,
}

/// Reason why a handshake failed.
enum Failed {
    TimedOut,
    Crowded,
    Io(io::Error),
}

impl FrontTls {
    /// Performs the handshake. Counts and logs a failure.
    pub(crate) async fn accept(&self, socket: TcpStream, counters: &Counters) -> Arrived {
        let failed = match timeout(self.spec.handshake_timeout, self.shake(socket, counters)).await {
            Ok(Ok(arrived)) => return arrived,
            Ok(Err(failed)) => failed,
            Err(_) if self.room.available_permits() == 0 => Failed::Crowded,
            Err(_) => Failed::TimedOut,
        };
        let why = match &failed {
            Failed::TimedOut => "timeout",
            Failed::Crowded => "crowded",
            Failed::Io(error) => find(error).map_or("closed", reason),
        };
        counters.handshake_failed(why);
        if let Failed::Io(error) = failed {
            tracing::debug!(%error, "a TLS handshake failed");
        }
        Arrived::Gone
    }

    async fn shake(&self, socket: TcpStream, counters: &Counters) -> Result<Arrived, Failed> {
        let mut first = [0];
        // Wait here first: a silent client must not occupy a place among the handshakes.
        if socket.peek(&mut first).await.map_err(Failed::Io)? == 0 {
            return Err(Failed::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        if first[0] != HANDSHAKE {
            counters.handshake_failed("not_tls");
            return Ok(Arrived::NotTls(socket));
        }
        let _room = self.room.acquire().await.map_err(|_| Failed::Crowded)?;
        let _under_way = UnderWay::new(counters);
        let _ = socket.set_nodelay(true);
        let stream = TlsAcceptor::from(self.config()).accept(socket).await.map_err(Failed::Io)?;
        Counters::add(&counters.handshakes_done);
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let shown = shown.map(|certificate| Shown::Certificate(shown_certificate(certificate)));
        Ok(Arrived::Secured(MaybeTlsStream::Tls(Box::new(stream.into())), shown))
    }
}

/// Counts a handshake in progress until it is dropped.
struct UnderWay<'a>(&'a Counters);

impl<'a> UnderWay<'a> {
    fn new(counters: &'a Counters) -> Self {
        counters.handshakes.fetch_add(1, Ordering::Relaxed);
        Self(counters)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.handshakes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sends a response to a client that does not speak TLS, and closes the socket.
pub(crate) async fn last_words(mut socket: TcpStream, words: &[u8]) {
    let saying = async {
        socket.write_all(words).await?;
        socket.shutdown().await?;
        let mut rest = socket.take(UNHEARD as u64);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    let _ = timeout(LAST_WORDS, saying).await;
}
