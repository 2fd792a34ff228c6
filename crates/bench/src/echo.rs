//! Echo server over Streamable HTTP (hyper, keep-alive, one JSON response per POST) and over stdio.

use crate::answer::Echo;
use crate::args::Args;
use crate::echo_workers::EchoWorkers;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpStream;

/// Maximum size of a body.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

static SESSIONS: AtomicU64 = AtomicU64::new(1);

/// Serves until the process ends.
pub fn run(args: &Args, server: Echo) -> io::Result<()> {
    // The server lives as long as the process, so leak it rather than count references.
    let server: &'static Echo = Box::leak(Box::new(server));
    let workers = EchoWorkers::bind(args.required("listen")?, args.optional("workers")?)?;
    println!("listening http://{}/mcp", workers.address()?);
    workers.serve(move || move |stream| serve(stream, server))
}

fn serve(stream: TcpStream, server: &'static Echo) {
    let service = service_fn(move |request| respond(request, server));
    tokio::spawn(http1::Builder::new().auto_date_header(false).serve_connection(TokioIo::new(stream), service));
}

async fn respond(request: Request<Incoming>, server: &Echo) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let mut response = Response::new(Full::default());
    match head.method {
        Method::POST => {}
        Method::DELETE => return Ok(response),
        _ => {
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
            return Ok(response);
        }
    }
    let Some(message) = read(body).await else {
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        return Ok(response);
    };
    let revision = head.headers.get("mcp-protocol-version");
    let answer = server.answer(&message, revision.map(HeaderValue::as_bytes));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
    if answer.opens_session {
        let session = SESSIONS.fetch_add(1, Ordering::Relaxed);
        response.headers_mut().insert("mcp-session-id", HeaderValue::from(session));
    }
    if !answer.body.is_empty() {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *response.body_mut() = Full::new(Bytes::from(answer.body));
    }
    Ok(response)
}

/// Reads the whole body, without a copy if it arrives in one piece.
async fn read(mut body: Incoming) -> Option<Bytes> {
    let announced = usize::try_from(body.size_hint().lower()).ok()?;
    if announced > BODY_LIMIT {
        return None;
    }
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else {
            continue;
        };
        if whole.is_empty() {
            if body.is_end_stream() {
                return Some(data);
            }
            whole.reserve(announced.max(data.len()));
        }
        if whole.len() + data.len() > BODY_LIMIT {
            return None;
        }
        whole.put(data);
    }
    Some(whole.freeze())
}

/// Buffer size: room for one large message, so that most are read with one call.
const BUFFER: usize = 128 * 1024;

/// Answers lines until stdin ends.
pub fn run_stdio(server: &Echo) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    let mut replies = Vec::with_capacity(BUFFER);
    while input.read_until(b'\n', &mut line)? > 0 {
        let reply = server.answer(&line, None).body;
        if !reply.is_empty() {
            replies.extend_from_slice(&reply);
            replies.push(b'\n');
        }
        line.clear();
        // Responses to lines that arrived together are written together.
        if input.buffer().is_empty() || replies.len() >= BUFFER {
            output.write_all(&replies)?;
            output.flush()?;
            replies.clear();
        }
    }
    output.write_all(&replies)?;
    output.flush()
}
