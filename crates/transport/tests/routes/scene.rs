//! A front and a control socket over one router.

use bytes::Bytes;
use http::{Method, StatusCode};
use signalbox_runtime::{Gateway, GatewayParts, Settings};
use signalbox_transport::http_front::FrontSpec;
use signalbox_transport::router::{
    AnswerEvent, Broken, Chunks, Events, HandlerResult, HttpRoute, Listener, Mount, RoutedAnswer, RoutedRequest, Router,
};
use signalbox_transport::workers::Workers;
use signalbox_transport::{control_front, http_front};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(60);
pub const LISTENERS: [Listener; 2] = [Listener::Tcp, Listener::Control];

/// All streams that are open, and a way to say something on them.
#[derive(Clone, Default)]
pub struct Streams(Arc<Mutex<Vec<mpsc::Sender<Bytes>>>>);

impl Streams {
    fn begin(&self) -> Stream {
        let (said, heard) = mpsc::channel(16);
        said.try_send(Bytes::from_static(b"hello")).unwrap();
        self.0.lock().unwrap().push(said);
        Stream(heard)
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        let mut all = self.0.lock().unwrap();
        all.retain(|said| !said.is_closed());
        all.len()
    }

    /// Says something on all of them.
    pub fn say(&self, text: &'static str) {
        self.0.lock().unwrap().iter().for_each(|said| drop(said.try_send(Bytes::from_static(text.as_bytes()))));
    }

    /// No stream says anything more.
    pub fn end(&self) {
        self.0.lock().unwrap().clear();
    }

    pub async fn all_gone(&self) {
        until("a stream is still open", || self.open() == 0).await;
    }
}

/// Waits until something is true.
pub async fn until(otherwise: &str, mut look: impl FnMut() -> bool) {
    let looking = async {
        while !look() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect(otherwise);
}

struct Stream(mpsc::Receiver<Bytes>);

impl Chunks for Stream {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(Ok))
    }
}

impl Events for Stream {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<AnswerEvent>> {
        let event = |data| AnswerEvent { id: Some("1".to_owned()), name: Some("said".to_owned()), data };
        self.0.poll_recv(cx).map(|bytes| bytes.map(event))
    }
}

/// Says something and, once that is written, panics.
struct Midway(u8);

impl Chunks for Midway {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        self.0 += 1;
        match self.0 {
            1 => Poll::Ready(Some(Ok(Bytes::from_static(b"begun")))),
            2 => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            _ => panic!("as it should"),
        }
    }
}

fn text(text: impl Into<Bytes>) -> HandlerResult {
    Ok(RoutedAnswer::whole(StatusCode::OK, "text/plain", text))
}

async fn echo(request: RoutedRequest) -> HandlerResult {
    let query: Vec<String> = request.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let thing = request.headers.get("x-thing").map_or("-", |value| value.to_str().unwrap()).to_owned();
    let line = format!("{} {} {}", request.method, request.path, request.segment("what"));
    let caller = request.caller.clone();
    let body = String::from_utf8(request.body.bytes().await?.to_vec()).unwrap();
    text(format!("{line} {} {thing} {caller} {body}", query.join(" ")))
}

async fn pieces(mut request: RoutedRequest) -> HandlerResult {
    let mut length = 0;
    while let Some(piece) = request.body.piece().await? {
        length += piece.len();
    }
    text(length.to_string())
}

fn routes(streams: &Streams) -> Vec<HttpRoute> {
    let stream = |make: fn(Stream) -> RoutedAnswer| {
        let streams = streams.clone();
        move |_: RoutedRequest| {
            let answer = make(streams.begin());
            async move { Ok(answer) }
        }
    };
    let get = Method::GET;
    vec![
        HttpRoute::new(get.clone(), "/plain", Mount::Both, async |_| text("plain")),
        HttpRoute::new(Method::PUT, "/plain", Mount::Both, async |_| text("put")),
        HttpRoute::new(get.clone(), "/outside", Mount::Listener, async |_| text("outside")),
        HttpRoute::new(get.clone(), "/api/v1/status", Mount::Control, async |_| text("inside")),
        HttpRoute::new(get.clone(), "/files/{*path}", Mount::Both, async |request: RoutedRequest| {
            text(request.segment("path").to_owned())
        }),
        HttpRoute::new(Method::POST, "/echo/{what}", Mount::Both, echo).max_body(1000),
        HttpRoute::new(Method::POST, "/pieces", Mount::Both, pieces).max_body(1000),
        HttpRoute::new(get.clone(), "/live", Mount::Both, stream(|stream| RoutedAnswer::live("text/plain", stream))),
        HttpRoute::new(get.clone(), "/events", Mount::Both, stream(RoutedAnswer::events)),
        HttpRoute::new(
            get.clone(),
            "/download",
            Mount::Both,
            stream(|stream| RoutedAnswer::stream("text/plain", stream)),
        ),
        HttpRoute::new(get.clone(), "/panics/at-once", Mount::Both, |_| -> std::future::Ready<HandlerResult> {
            panic!("as it should")
        }),
        HttpRoute::new(get.clone(), "/panics/later", Mount::Both, async |_| {
            tokio::task::yield_now().await;
            panic!("as it should")
        }),
        HttpRoute::new(get, "/panics/midway", Mount::Both, async |_| Ok(RoutedAnswer::stream("text/plain", Midway(0)))),
    ]
}

/// A gateway without backends that can be reached by both doors.
pub struct Scene {
    pub gateway: Arc<Gateway>,
    pub streams: Streams,
    address: SocketAddr,
    socket: PathBuf,
    stop: watch::Sender<bool>,
    /// Ends when the front has stopped.
    pub fronting: JoinHandle<()>,
    /// The control socket answers until this is aborted.
    pub controlling: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Scene {
    pub async fn new() -> Self {
        Self::with(FrontSpec::default()).await
    }

    pub async fn with(spec: FrontSpec) -> Self {
        let gateway = Gateway::new(GatewayParts::unguarded(Settings::default(), Vec::new()).unwrap()).unwrap();
        let streams = Streams::default();
        let router = Arc::new(Router::new(routes(&streams)).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("control.sock");
        let control = UnixListener::bind(&socket).unwrap();
        let (stop, stopping) = watch::channel(false);
        let (front, routes) = (Arc::clone(&gateway), Arc::clone(&router));
        let fronting = tokio::spawn(async move {
            let workers = Workers::start(1, || {}).unwrap();
            http_front::serve(listener, front, Arc::new(spec), routes, &workers, stopping).await;
        });
        let front = Arc::clone(&gateway);
        let controlling = tokio::spawn(async move { control_front::serve(&control, front, router).await });
        Self { gateway, streams, address, socket, stop, fronting, controlling, _folder: folder }
    }

    pub async fn connect(&self, listener: Listener) -> Box<dyn Socket> {
        match listener {
            Listener::Tcp => Box::new(TcpStream::connect(self.address).await.unwrap()),
            Listener::Control => Box::new(UnixStream::connect(&self.socket).await.unwrap()),
        }
    }

    /// Everything that is said to this.
    pub async fn ask(&self, listener: Listener, sent: &str) -> String {
        let mut socket = self.connect(listener).await;
        socket.write_all(sent.as_bytes()).await.unwrap();
        rest(&mut socket).await
    }

    pub async fn listener(&self, sent: &str) -> String {
        self.ask(Listener::Tcp, sent).await
    }

    pub async fn control(&self, sent: &str) -> String {
        self.ask(Listener::Control, sent).await
    }

    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub async fn refused(&self, limit: &str, count: u64) {
        until("it is not counted", || self.gateway.counters.all_refused()[limit] == count).await;
    }

    /// Waits until no client is connected to the front.
    pub async fn no_connections(&self) {
        until("a connection is still open", || self.gateway.counters.connections.load(Ordering::Relaxed) == 0).await;
    }
}

pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for S {}

/// Everything that comes until the connection is closed.
pub async fn rest(socket: &mut (impl AsyncRead + Unpin)) -> String {
    let mut heard = Vec::new();
    // A reset ends the connection as well as a close does.
    let _ = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut heard)).await.expect("the connection stays open");
    String::from_utf8(heard).unwrap()
}

/// Reads until this has come.
pub async fn read_until(socket: &mut (impl AsyncRead + Unpin), text: &str) -> String {
    let reading = async {
        let (mut heard, mut chunk) = (String::new(), [0; 4096]);
        while !heard.contains(text) {
            let read = socket.read(&mut chunk).await.unwrap();
            assert!(read > 0, "it ended before `{text}`: {heard}");
            heard.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
        }
        heard
    };
    tokio::time::timeout(PATIENCE, reading).await.expect(text)
}

/// A request after which the connection is closed.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}{length}\r\n{body}")
}

pub fn status(answer: &str) -> u16 {
    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

pub fn head_of(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().0
}

pub fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}
