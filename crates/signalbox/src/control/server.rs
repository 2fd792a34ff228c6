//! The answering end of a control socket.

use super::call::{Api, Call, Lines, Reply};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// Most connections at a time.
const CONNECTIONS: usize = 32;
/// How long a caller may take for its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take for the body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest body.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// Gives the JSON of a path, or nothing where there is no such path.
pub type Route = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Something that is being done; it gives JSON.
pub type Doing = Pin<Box<dyn Future<Output = String> + Send>>;

/// Does what a path stands for, or nothing where there is no such path.
pub type Action = Arc<dyn Fn(&str) -> Option<Doing> + Send + Sync>;

/// All that is answered.
#[derive(Clone)]
pub struct Served {
    /// What can be asked.
    pub route: Route,
    /// What can be done and takes its time.
    pub action: Action,
    /// Everything else.
    pub api: Api,
}

/// Answers until dropped.
pub async fn serve(listener: &UnixListener, served: Served) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let served = served.clone();
                tokio::spawn(async move {
                    connection(stream, served).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a control connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: UnixStream, served: Served) {
    let by = stream.peer_cred().map_or_else(|_| "unknown".to_owned(), |peer| format!("uid:{}", peer.uid()));
    let service = service_fn(move |request| {
        let (served, by) = (served.clone(), by.clone());
        async move { Ok::<_, Infallible>(written(answer(request, by, &served).await)) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a control connection ended badly");
    }
}

async fn answer(request: Request<Incoming>, by: String, served: &Served) -> Reply {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let doing = if head.method == Method::POST { (served.action)(&path) } else { None };
    if let Some(doing) = doing {
        return Reply::Json(StatusCode::OK, doing.await);
    }
    let asked = if head.method == Method::GET { (served.route)(&path) } else { None };
    if let Some(body) = asked {
        return Reply::Json(StatusCode::OK, body);
    }
    let body = match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => return Reply::error(StatusCode::PAYLOAD_TOO_LARGE, format_args!("the body: {error}")),
        Err(_) => return Reply::error(StatusCode::REQUEST_TIMEOUT, "the body takes too long"),
    };
    let call = Call { method: head.method, path, body, by };
    (served.api)(&call).unwrap_or_else(|| unserved(&call.path, served))
}

/// Says whether there is anything at a path for which another method was used.
fn unserved(path: &str, served: &Served) -> Reply {
    if (served.route)(path).is_some() {
        Reply::only("GET")
    } else if (served.action)(path).is_some() {
        Reply::only("POST")
    } else {
        Reply::error(StatusCode::NOT_FOUND, "there is nothing here")
    }
}

fn written(reply: Reply) -> Response<Written> {
    let (status, kind, body) = match reply {
        Reply::Json(status, text) => (status, "application/json", Written::Whole(Some(text.into()))),
        Reply::Lines(lines) => (StatusCode::OK, "application/x-ndjson", Written::Lines(lines)),
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// The body of an answer.
enum Written {
    Whole(Option<Bytes>),
    Lines(Box<dyn Lines>),
}

impl Body for Written {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Whole(body) => Poll::Ready(body.take()),
            Self::Lines(lines) => lines.poll_lines(cx),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64)),
            Self::Lines(_) => SizeHint::default(),
        }
    }
}
