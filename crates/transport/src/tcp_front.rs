//! The plain TCP front: each connection is a client with its own session and sends one message per line.
//!
//! A browser page can send an HTTP request to any port of this machine, and lines of its body would pass for messages.
//! A connection whose first byte cannot begin JSON is therefore closed before anything else is read.

mod tcp_client;

use crate::admission::Admission;
use crate::first_message::{MAX_FIRST_MESSAGE, PendingConnection};
use crate::places::{Evictable as _, unknown_caller};
use crate::stdio_front::{self, StdioError};
use crate::tls::{FrontTls, HandshakeOutcome, last_words};
use crate::turned_away::RefusalSender;
use crate::workers::Workers;
use signalbox_engine::authenticator::{Arrival, Authenticators, ConnectionProof};
use signalbox_engine::{Caller, Fault, FaultKind, Limit, Proof};
use signalbox_runtime::Gateway;
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::Era;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tcp_client::{TcpClient, TcpClients};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep, timeout};

/// Maximum wait for the first byte of a client.
pub const FIRST_BYTE: Duration = Duration::from_secs(30);
/// Maximum time for a refused client to read the reason.
const LAST_WORD: Duration = Duration::from_secs(1);
/// Maximum time that a client may leave written data unread.
const KEPT_FOR: Duration = Duration::from_secs(75);

/// Configuration of the front.
#[derive(Clone, Debug)]
pub struct TcpSpec {
    /// Limits on open connections.
    pub admission: Arc<Admission>,
    /// Methods by which callers authenticate.
    pub authenticators: Authenticators,
    /// Maximum wait for the first message if it must authenticate the caller.
    pub authentication_timeout: Duration,
    /// TLS configuration; `None` serves plain TCP. A client that presents a certificate is its own principal.
    pub tls: Option<Arc<FrontTls>>,
}

/// Accepts connections and assigns each to the next worker until `stop` is set. Then it accepts none, and open
/// connections end with their sessions.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    spec: Arc<TcpSpec>,
    workers: &Workers,
    mut stop: watch::Receiver<bool>,
) {
    let refusals = RefusalSender::new(spec.admission.reserve());
    let clients = TcpClients::new(Arc::clone(&gateway), Arc::clone(&spec.admission));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let (socket, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely the process is out of descriptors: wait for some to be closed instead of spinning.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // If no caller can authenticate, the connection need not wait in the reserve for its caller.
        let may_prove = gateway.settings().require_proof || spec.tls.is_some();
        let Some(client) = clients.seat(address).filter(|client| may_prove || client.settle(None)) else {
            gateway.counters.connections_refused.fetch_add(1, Ordering::Relaxed);
            let fault = no_room();
            gateway.refused(&unknown_caller(Some(address), "tcp"), None, &fault, None);
            // Inside TLS a response needs a handshake first, and there is no room for one.
            if spec.tls.is_none()
                && let Some(sending) = refusals.send(socket, line(&fault))
            {
                connections.spawn(sending);
            }
            continue;
        };
        // The socket is registered with the runtime that accepted it until it is moved to a worker's.
        let Ok(socket) = socket.into_std() else { continue };
        let (gateway, spec) = (Arc::clone(&gateway), Arc::clone(&spec));
        let serving = async move {
            if let Ok(socket) = TcpStream::from_std(socket) {
                gateway.counters.connections.fetch_add(1, Ordering::Relaxed);
                match &spec.tls {
                    None => connection(socket, &gateway, &spec, &client).await,
                    // Boxed, so that connections without TLS do not reserve space for it.
                    Some(tls) => Box::pin(serve_tls(socket, tls, &gateway, &spec, &client)).await,
                }
                gateway.counters.connections.fetch_sub(1, Ordering::Relaxed);
            }
        };
        connections.spawn_on(serving, workers.turn());
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(mut socket: TcpStream, gateway: &Arc<Gateway>, spec: &TcpSpec, client: &TcpClient) {
    let _ = socket.set_nodelay(true);
    let ready = tokio::select! {
        ready = wait_for_json(&mut socket, gateway, || client.shown_caller(), first_byte(gateway, spec)) => ready,
        () = client.displaced() => false,
    };
    if ready {
        let (input, output) = socket.into_split();
        authenticate(input, output, gateway, spec, None, client).await;
    }
}

/// Serves a connection with TLS.
async fn serve_tls(socket: TcpStream, tls: &FrontTls, gateway: &Arc<Gateway>, spec: &TcpSpec, client: &TcpClient) {
    let (mut stream, shown) = match tls.accept(socket, &gateway.counters).await {
        HandshakeOutcome::Secured(stream, shown) => (stream, shown),
        HandshakeOutcome::NotTls(socket) => {
            gateway.refused(&client.shown_caller(), None, &not_tls(), None);
            return last_words(socket, &line(&not_tls())).await;
        }
        HandshakeOutcome::Gone => return,
    };
    // A TLS stream cannot be peeked, so the first byte is read and prepended again.
    let mut first = [0];
    match timeout(first_byte(gateway, spec), stream.read(&mut first)).await {
        Ok(Ok(1)) if is_json(first[0]) => {}
        Ok(Ok(1)) => return refuse(&mut stream, gateway, &client.shown_caller()).await,
        Ok(Ok(_)) => return tracing::debug!("a connection ended before its first message"),
        Ok(Err(error)) => return tracing::debug!(%error, "a connection ended before its first message"),
        Err(_) => return record_silence(gateway, &client.shown_caller()),
    }
    let (input, output) = tokio::io::split(stream);
    let input = std::io::Cursor::new(first).chain(input);
    authenticate(input, output, gateway, spec, shown.as_ref(), client).await;
}

/// Returns the maximum wait for the first byte.
fn first_byte(gateway: &Gateway, spec: &TcpSpec) -> Duration {
    if gateway.settings().require_proof { FIRST_BYTE.min(spec.authentication_timeout) } else { FIRST_BYTE }
}

/// Authenticates the caller, by its certificate or else by its first message, and serves it.
async fn authenticate<R, W>(
    input: R,
    output: W,
    gateway: &Arc<Gateway>,
    spec: &TcpSpec,
    shown: Option<&ConnectionProof>,
    client: &TcpClient,
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Unpin,
{
    let address = client.address();
    let (authenticators, transport, now) = (&spec.authenticators, "tcp", unix_millis());
    let known = authenticators.identify(&Arrival { transport, address, shown, header: &|_| None, now });
    let required = gateway.settings().require_proof;
    match known {
        Ok(caller) if !required || caller.identity().proof != Proof::Unproved => {
            gateway.identified(&caller);
            serve_session(input, output, gateway, caller, client).await;
        }
        Ok(_) | Err(_) => {
            let pending = PendingConnection { authenticators, transport, address, shown };
            let mut output = output;
            let mut input = BufReader::new(input);
            let admitted = tokio::select! {
                admitted = admit(&mut input, &mut output, gateway, spec, &pending) => admitted,
                () = client.displaced() => return send_fault(&mut output, &no_room()).await,
            };
            if let Some(caller) = admitted {
                serve_session(input, output, gateway, caller, client).await;
            }
        }
    }
}

/// Reads and answers the first message, which must authenticate the caller. Returns `None` if the client is refused.
async fn admit<R, W>(
    input: &mut BufReader<R>,
    output: &mut W,
    gateway: &Gateway,
    spec: &TcpSpec,
    pending: &PendingConnection<'_>,
) -> Option<Caller>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut line = Vec::new();
    let most = u64::try_from(MAX_FIRST_MESSAGE).unwrap_or(u64::MAX).saturating_add(1);
    let mut bounded = input.take(most);
    let reading = bounded.read_until(b'\n', &mut line);
    match timeout(spec.authentication_timeout, reading).await {
        Ok(Ok(read)) if read > 0 => {}
        Ok(_) => return None,
        Err(_) => {
            gateway.counters.refused(Limit::HeadTime);
            let fault = too_late();
            gateway.refused(&pending.unknown_caller(), None, &fault, None);
            send_fault(output, &fault).await;
            return None;
        }
    }
    match pending.prove(gateway, line.trim_ascii_end().to_vec().into()) {
        Ok((caller, answer)) => {
            let mut answer = answer.to_vec();
            answer.push(b'\n');
            let written = timeout(LAST_WORD, output.write_all(&answer)).await;
            matches!(written, Ok(Ok(()))).then_some(caller)
        }
        Err(refused) => {
            let mut reply = refused.reply();
            gateway.refused(&pending.unknown_caller(), None, &refused.fault, Some(&reply));
            reply = [&reply[..], b"\n"].concat().into();
            let _ = timeout(LAST_WORD, async { output.write_all(&reply).await }).await;
            let _ = timeout(LAST_WORD, output.shutdown()).await;
            None
        }
    }
}

/// Serves an authenticated client.
async fn serve_session<R, W>(input: R, output: W, gateway: &Arc<Gateway>, caller: Caller, client: &TcpClient)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Unpin,
{
    let mut output = StallTimeout::new(output, KEPT_FOR);
    if !client.settle(Some(&caller)) {
        gateway.counters.connections_refused.fetch_add(1, Ordering::Relaxed);
        gateway.refused(&client.shown_caller(), None, &no_room(), None);
        return send_fault(&mut output, &no_room()).await;
    }
    let drain = gateway.settings().drain;
    let served = tokio::select! {
        served = stdio_front::serve(input, &mut output, Arc::clone(gateway), caller, drain) => served,
        () = client.displaced() => Err(StdioError::Session(no_room())),
    };
    match served {
        Ok(()) => {}
        Err(StdioError::Session(fault)) => send_fault(&mut output, &fault).await,
        Err(error) => {
            if error.is_slow_reader() {
                gateway.counters.refused(Limit::SlowReader);
            }
            tracing::debug!(%error, "a connection ended early");
        }
    }
    let _ = timeout(LAST_WORD, output.shutdown()).await;
}

/// Waits for the first byte. Returns `false` if the client is refused or gone; a refused client has been told the
/// reason.
async fn wait_for_json(
    socket: &mut TcpStream,
    gateway: &Gateway,
    caller: impl FnOnce() -> Caller,
    within: Duration,
) -> bool {
    match timeout(within, begins_with_json(socket)).await {
        Ok(Ok(true)) => return true,
        Ok(Ok(false)) => refuse(socket, gateway, &caller()).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection ended before its first message"),
        Err(_) => record_silence(gateway, &caller()),
    }
    false
}

/// Records a connection that is closed because nothing came on it in time.
fn record_silence(gateway: &Gateway, caller: &Caller) {
    gateway.counters.refused(Limit::HeadTime);
    let fault = match gateway.settings().require_proof {
        true => too_late(),
        false => Fault::new(FaultKind::InvalidRequest, "no message came in time"),
    };
    gateway.refused(caller, None, &fault, None);
    tracing::debug!("closed a connection on which nothing came");
}

/// Peeks at the first byte.
async fn begins_with_json(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    if socket.peek(&mut first).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(is_json(first[0]))
}

/// Returns `true` if a message can begin with this byte.
fn is_json(first: u8) -> bool {
    matches!(first, b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n')
}

/// Refuses a client whose first byte cannot begin a message.
async fn refuse(output: &mut (impl AsyncWrite + Unpin), gateway: &Gateway, caller: &Caller) {
    gateway.counters.malformed.fetch_add(1, Ordering::Relaxed);
    let fault = Fault::new(FaultKind::Parse, "Parse error: one JSON-RPC message per line is served here, and no HTTP");
    gateway.refused(caller, None, &fault, None);
    send_fault(output, &fault).await;
}

/// Fault of a client that gets no place or loses its place.
fn no_room() -> Fault {
    Fault::new(FaultKind::Overloaded, "too many connections are open")
}

fn too_late() -> Fault {
    Fault::new(FaultKind::Unauthenticated, "no message proved in time who calls")
}

fn not_tls() -> Fault {
    Fault::new(FaultKind::InvalidRequest, "TLS is spoken here: connect with TLS")
}

/// Formats a fault as one line.
fn line(fault: &Fault) -> Vec<u8> {
    let mut line = fault.reply(None, Era::Legacy).to_vec();
    line.push(b'\n');
    line
}

/// Tells a client the reason for its refusal.
async fn send_fault(output: &mut (impl AsyncWrite + Unpin), fault: &Fault) {
    let line = line(fault);
    let writing = async {
        output.write_all(&line).await?;
        output.shutdown().await
    };
    let _ = timeout(LAST_WORD, writing).await;
}

/// A writer that fails when the reader stalls. It sets a timer only while a write is blocked.
struct StallTimeout<W> {
    output: W,
    most: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<W> StallTimeout<W> {
    /// Creates a writer that waits for a stalled reader for at most `most`.
    fn new(output: W, most: Duration) -> Self {
        Self { output, most, waiting: None }
    }

    /// Returns the result of a write, or a timeout if writes have been blocked for too long.
    fn check_stall<T>(&mut self, cx: &mut Context<'_>, tried: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.waiting = None;
            return tried;
        }
        let most = self.most;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(most)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for StallTimeout<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.output).poll_write(cx, bytes);
        self.check_stall(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.output).poll_flush(cx);
        self.check_stall(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_runtime::{GatewayParts, Settings};
    use tokio::io::duplex;

    #[tokio::test]
    async fn a_connection_that_says_nothing_is_closed_and_counted() {
        let gateway = Gateway::new(GatewayParts::unguarded(Settings::default(), Vec::new()).unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut socket, _) = listener.accept().await.unwrap();
        assert!(!wait_for_json(&mut socket, &gateway, || Caller::anonymous("tcp"), Duration::from_millis(20)).await);
        assert_eq!(gateway.counters.all_refused()["head_time"], 1);
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_given_up_and_a_slow_one_is_not() {
        let (output, mut input) = duplex(4);
        let mut output = StallTimeout::new(output, Duration::from_millis(50));
        let error = output.write_all(b"too much").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let reading = async {
            let mut rest = Vec::new();
            input.read_to_end(&mut rest).await.unwrap();
            rest
        };
        let writing = async {
            output.write_all(b"goes on").await.unwrap();
            drop(output);
        };
        let (rest, ()) = tokio::join!(reading, writing);
        assert_eq!(rest, b"too goes on");
    }
}
