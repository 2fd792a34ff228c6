//! The answering end of a control socket.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// Most connections at a time.
const CONNECTIONS: usize = 32;
/// How long a caller may take for its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Gives the JSON of a path, or nothing where there is no such path.
pub type Route = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Something that is being done; it gives JSON.
pub type Doing = Pin<Box<dyn Future<Output = String> + Send>>;

/// Does what a path stands for, or nothing where there is no such path.
pub type Action = Arc<dyn Fn(&str) -> Option<Doing> + Send + Sync>;

/// Answers until dropped.
pub async fn serve(listener: &UnixListener, route: Route, action: Action) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (route, action) = (Arc::clone(&route), Arc::clone(&action));
                tokio::spawn(async move {
                    connection(stream, route, action).await;
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

async fn connection(stream: UnixStream, route: Route, action: Action) {
    let service = service_fn(move |request| {
        let (route, action) = (Arc::clone(&route), Arc::clone(&action));
        async move { Ok::<_, Infallible>(answer(&request, &route, &action).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a control connection ended badly");
    }
}

async fn answer<B>(request: &Request<B>, route: &Route, action: &Action) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    let doing = if request.method() == Method::POST { action(path) } else { None };
    let (status, body) = match (request.method(), doing) {
        (_, Some(doing)) => (StatusCode::OK, doing.await),
        (&Method::GET, None) => match route(path) {
            Some(body) => (StatusCode::OK, body),
            None => unserved(path, route, action),
        },
        _ => unserved(path, route, action),
    };
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Says whether there is anything at a path for which another method was used.
fn unserved(path: &str, route: &Route, action: &Action) -> (StatusCode, String) {
    let error = |status, text: &str| (status, format!(r#"{{"error":"{text}"}}"#));
    if route(path).is_some() {
        error(StatusCode::METHOD_NOT_ALLOWED, "only GET is served here")
    } else if action(path).is_some() {
        error(StatusCode::METHOD_NOT_ALLOWED, "only POST is served here")
    } else {
        error(StatusCode::NOT_FOUND, "there is nothing here")
    }
}
