//! The asking end of a control socket.

use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long a process may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to do something.
const DOING: Duration = Duration::from_secs(60);
/// The largest answer.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Why a process did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It cannot be reached.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// It does not speak HTTP.
    #[error("{0}")]
    Http(#[from] hyper::Error),
    /// It has nothing there.
    #[error("it answered {0}")]
    Status(StatusCode),
    /// Its answer is too large or broke off.
    #[error("its answer cannot be read: {0}")]
    Body(String),
    /// It takes too long.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

/// Asks the process behind a socket for a path.
///
/// # Errors
/// If there is no answer, or another than 200.
pub async fn ask(socket: &Path, path: &str) -> Result<Bytes, AskError> {
    timeout(TIMEOUT, exchange(socket, Method::GET, path)).await.unwrap_or(Err(AskError::TimedOut(TIMEOUT)))
}

/// Has the process behind a socket do what a path stands for.
///
/// # Errors
/// If there is no answer, or another than 200.
pub async fn tell(socket: &Path, path: &str) -> Result<Bytes, AskError> {
    timeout(DOING, exchange(socket, Method::POST, path)).await.unwrap_or(Err(AskError::TimedOut(DOING)))
}

async fn exchange(socket: &Path, method: Method, path: &str) -> Result<Bytes, AskError> {
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await?;
    let asking = async {
        let request = Request::builder().method(method).uri(path).header(HOST, "signalbox").body(Empty::new());
        let request = request.map_err(|error| AskError::Body(error.to_string()))?;
        let answer = sender.send_request(request).await?;
        if answer.status() != StatusCode::OK {
            return Err(AskError::Status(answer.status()));
        }
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        body.map(|body| body.to_bytes()).map_err(|error| AskError::Body(error.to_string()))
    };
    let mut asking = std::pin::pin!(asking);
    tokio::select! {
        answer = &mut asking => answer,
        // The end of the connection does not mean that the answer has been read to its end.
        _ = connection => asking.await,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ControlSocket;
    use super::super::server::{Action, Doing, serve};
    use super::*;
    use crate::data_dir::DataDir;
    use std::sync::Arc;

    #[tokio::test]
    async fn what_is_asked_is_answered() {
        let root = tempfile::tempdir().unwrap();
        let socket = ControlSocket::open(&DataDir::prepare(root.path()).unwrap()).unwrap();
        let path = socket.path().to_owned();
        let route = Arc::new(|path: &str| (path == "/x").then(|| "{\"a\":1}".repeat(100_000)));
        let action: Action = Arc::new(|path: &str| -> Option<Doing> {
            (path == "/do").then(|| -> Doing { Box::pin(async { "{\"done\":true}".to_owned() }) })
        });
        tokio::spawn(async move { serve(socket.listener(), route, action).await });
        assert_eq!(ask(&path, "/x").await.unwrap().len(), 700_000);
        assert!(matches!(ask(&path, "/y").await, Err(AskError::Status(StatusCode::NOT_FOUND))));
        assert_eq!(tell(&path, "/do").await.unwrap(), "{\"done\":true}");
        // Asking does nothing, and what can only be asked cannot be done.
        assert!(matches!(ask(&path, "/do").await, Err(AskError::Status(StatusCode::METHOD_NOT_ALLOWED))));
        assert!(matches!(tell(&path, "/x").await, Err(AskError::Status(StatusCode::METHOD_NOT_ALLOWED))));
        assert!(matches!(ask(root.path(), "/y").await, Err(AskError::Connect(_))));
    }
}
