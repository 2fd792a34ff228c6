//! The answering end of a control socket.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
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

/// Answers until dropped.
pub async fn serve(listener: &UnixListener, route: Route) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let route = Arc::clone(&route);
                tokio::spawn(async move {
                    connection(stream, route).await;
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

async fn connection(stream: UnixStream, route: Route) {
    let service = service_fn(move |request| {
        let answer = answer(&request, &route);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a control connection ended badly");
    }
}

fn answer<B>(request: &Request<B>, route: &Route) -> Response<Full<Bytes>> {
    let (status, body) = match (request.method(), route(request.uri().path())) {
        (&Method::GET, Some(body)) => (StatusCode::OK, body),
        (_, Some(_)) => (StatusCode::METHOD_NOT_ALLOWED, r#"{"error":"only GET is served here"}"#.to_owned()),
        (_, None) => (StatusCode::NOT_FOUND, r#"{"error":"there is nothing here"}"#.to_owned()),
    };
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
