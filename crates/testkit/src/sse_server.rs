//! A server of HTTP+SSE (2024-11-05) that does what a test says: its streams can be cut while a call is in flight.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Most events that wait for a reader.
const QUEUE: usize = 1024;

#[derive(Default)]
struct State {
    /// The open streams, by the number in their session's id.
    streams: Vec<Option<mpsc::Sender<Bytes>>>,
    /// Every message that was posted.
    posted: Vec<Value>,
}

/// The server, with one tool `echo`, which answers, and one tool `hang`, which does not.
#[derive(Clone)]
pub struct SseServer {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl SseServer {
    /// Starts it. It ends with the test's runtime.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = Self { address: listener.local_addr()?, state: Arc::default() };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = serving.clone();
                let service = hyper::service::service_fn(move |request| server.clone().answer(request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(server)
    }

    /// The methods that were posted so far.
    pub fn methods(&self) -> Vec<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.posted.iter().filter_map(|message| message["method"].as_str()).map(str::to_owned).collect()
    }

    /// How many streams were opened so far.
    pub fn opened(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).streams.len()
    }

    /// Ends every open stream.
    pub fn cut(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.streams.iter_mut().for_each(|stream| drop(stream.take()));
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
        let path = request.uri().path().to_owned();
        Ok(match (request.method(), path.as_str()) {
            (&Method::GET, "/sse") => self.open(),
            (&Method::POST, "/message") => self.post(request).await,
            _ => plain(StatusCode::NOT_FOUND, "Cannot do that"),
        })
    }

    fn open(&self) -> Response<BoxBody<Bytes, Infallible>> {
        let (sender, events) = mpsc::channel(QUEUE);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoint = format!("event: endpoint\ndata: /message?sessionId={}\n\n", state.streams.len());
        let _ = sender.try_send(Bytes::from(endpoint));
        state.streams.push(Some(sender));
        let mut response = Response::new(Events(events).boxed());
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
        response
    }

    async fn post(&self, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
        let session = request.uri().query().and_then(|query| query.strip_prefix("sessionId=")?.parse::<usize>().ok());
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.posted.push(message.clone());
        let Some(Some(stream)) = session.and_then(|session| state.streams.get(session)) else {
            return plain(StatusCode::NOT_FOUND, "no such session");
        };
        if let Some(answer) = reply(&message) {
            let _ = stream.try_send(Bytes::from(format!("event: message\ndata: {answer}\n\n")));
        }
        plain(StatusCode::ACCEPTED, "Accepted")
    }
}

/// What it answers; a notification and a call of `hang` get nothing.
fn reply(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let tool = |name: &str| json!({"name": name, "description": "", "inputSchema": {"type": "object"}});
    let result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"}}),
        "tools/list" => json!({"tools": [tool("echo"), tool("hang")]}),
        "tools/call" if message["params"]["name"] == "hang" => return None,
        "tools/call" => json!({"content": [{"type": "text", "text": message["params"]["arguments"].to_string()}]}),
        "ping" => json!({}),
        _ => return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn plain(status: StatusCode, text: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

struct Events(mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}
