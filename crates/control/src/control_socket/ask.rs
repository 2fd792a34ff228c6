//! Requests to a running process.

use super::process_address::ProcessAddress;
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use signalbox_transport::web_client::WebError;
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout of a query.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of an action.
const DOING: Duration = Duration::from_secs(60);
/// Maximum size of an answer in bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Error of a request to a process.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The socket cannot be connected.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// The listener cannot be reached.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The key is not valid in a header.
    #[error("the key is not one: it has characters that no key has")]
    Key,
    /// The process does not speak HTTP.
    #[error("{0}")]
    Http(#[from] hyper::Error),
    /// The status is an error without an explanation.
    #[error("it answered {0}")]
    Status(StatusCode),
    /// The process refused the request, with a reason.
    #[error("{why}")]
    Refused {
        /// Status of the response.
        status: StatusCode,
        /// Reason given by the process.
        why: String,
    },
    /// The answer is too large or incomplete.
    #[error("its answer cannot be read: {0}")]
    Body(String),
    /// The request timed out.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

/// Sends a GET request to a process.
///
/// # Errors
/// If there is no answer, or its status is not 200.
pub async fn ask(process: impl Into<ProcessAddress>, path: &str) -> Result<Bytes, AskError> {
    within(TIMEOUT, exchange(&process.into(), Method::GET, path, Bytes::new())).await
}

/// Sends a POST request without a body to a process.
///
/// # Errors
/// If there is no answer, or its status is not 200.
pub async fn tell(process: impl Into<ProcessAddress>, path: &str) -> Result<Bytes, AskError> {
    within(DOING, exchange(&process.into(), Method::POST, path, Bytes::new())).await
}

/// Sends a GET request that may take long, and reads the answer as JSON.
///
/// # Errors
/// If there is no answer, or its status is not 200.
pub async fn ask_for_long(process: impl Into<ProcessAddress>, path: &str) -> Result<Value, AskError> {
    let answer = within(DOING, exchange(&process.into(), Method::GET, path, Bytes::new())).await?;
    serde_json::from_slice(&answer).map_err(|error| AskError::Body(error.to_string()))
}

/// Sends a request with a body, and reads the answer as JSON.
///
/// # Errors
/// If there is no answer, or its status is neither 200 nor 201.
pub async fn send(
    process: impl Into<ProcessAddress>,
    method: Method,
    path: &str,
    body: Option<String>,
) -> Result<Value, AskError> {
    let body = body.map_or_else(Bytes::new, Bytes::from);
    let answer = within(TIMEOUT, exchange(&process.into(), method, path, body)).await?;
    serde_json::from_slice(&answer).map_err(|error| AskError::Body(error.to_string()))
}

async fn within(limit: Duration, asking: impl Future<Output = Result<Bytes, AskError>>) -> Result<Bytes, AskError> {
    timeout(limit, asking).await.unwrap_or(Err(AskError::TimedOut(limit)))
}

async fn exchange(process: &ProcessAddress, method: Method, path: &str, body: Bytes) -> Result<Bytes, AskError> {
    let (stream, request) = process.open().await?;
    let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await?;
    let asking = async {
        let request = request.method(method).uri(path).body(Full::new(body));
        let request = request.map_err(|error| AskError::Body(error.to_string()))?;
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map(|body| body.to_bytes()).map_err(|error| AskError::Body(error.to_string()));
        if status.is_success() { body } else { Err(refused(status, body.ok().as_deref())) }
    };
    let mut asking = std::pin::pin!(asking);
    tokio::select! {
        answer = &mut asking => answer,
        // The end of the connection does not mean that the answer has been read completely.
        _ = connection => asking.await,
    }
}

/// Maps an error response to an error, with the reason in its body.
pub(super) fn refused(status: StatusCode, body: Option<&[u8]>) -> AskError {
    let told: Option<Value> = body.and_then(|body| serde_json::from_slice(body).ok());
    let why = told.and_then(|told| told.get("error").and_then(Value::as_str).map(str::to_owned));
    match (why, status) {
        (_, StatusCode::METHOD_NOT_ALLOWED) | (None, _) => AskError::Status(status),
        (Some(why), _) => AskError::Refused { status, why },
    }
}

#[cfg(test)]
mod tests {
    use super::super::Control;
    use super::*;
    use serde_json::json;
    use signalbox_assembly::data_dir::DataDir;
    use signalbox_runtime::{Gateway, GatewayParts, Settings};
    use signalbox_transport::router::{HandlerResult, HttpRoute, Mount, RoutedAnswer, RoutedRequest as Asked, Router};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    fn gateway() -> Arc<Gateway> {
        Gateway::new(GatewayParts::unguarded(Settings::default(), Vec::new()).unwrap()).unwrap()
    }

    fn told(text: &str) -> HandlerResult {
        Ok(RoutedAnswer::json(StatusCode::OK, text.to_owned()))
    }

    fn routes() -> Vec<HttpRoute> {
        let asked = async |request: Asked| {
            let (n, m) = (request.segment("n").to_owned(), request.method.to_string());
            let by = request.caller.to_string();
            let body = request.body.bytes().await?;
            told(&json!({"n": n, "m": m, "by": by, "body": String::from_utf8_lossy(&body)}).to_string())
        };
        vec![
            HttpRoute::new(Method::GET, "/x", Mount::Control, async |_| told(&"{\"a\":1}".repeat(100_000))),
            HttpRoute::new(Method::POST, "/do", Mount::Control, async |_| told("{\"done\":true}")),
            HttpRoute::new(Method::DELETE, "/n/{n}", Mount::Control, asked),
        ]
    }

    /// A process, and where it is asked.
    fn process(root: &Path) -> PathBuf {
        let router = Arc::new(Router::new(routes()).unwrap());
        let control = Control::open(&DataDir::prepare(root).unwrap(), &gateway(), &router).unwrap();
        let path = control.socket.path().to_owned();
        tokio::spawn(async move { Control::serve(Some(&control)).await });
        path
    }

    #[tokio::test]
    async fn what_is_asked_is_answered() {
        let root = tempfile::tempdir().unwrap();
        let path = process(root.path());
        assert_eq!(ask(&path, "/x").await.unwrap().len(), 700_000);
        let nothing = ask(&path, "/y").await;
        assert!(matches!(&nothing, Err(AskError::Refused { status: StatusCode::NOT_FOUND, .. })), "{nothing:?}");
        assert_eq!(tell(&path, "/do").await.unwrap(), "{\"done\":true}");
        // Asking does nothing, and what can only be asked cannot be done.
        assert!(matches!(ask(&path, "/do").await, Err(AskError::Status(StatusCode::METHOD_NOT_ALLOWED))));
        assert!(matches!(tell(&path, "/x").await, Err(AskError::Status(StatusCode::METHOD_NOT_ALLOWED))));
        assert!(matches!(ask(root.path(), "/y").await, Err(AskError::Connect(_))));
    }

    #[tokio::test]
    async fn a_request_has_a_method_a_body_and_somebody_who_asks() {
        let root = tempfile::tempdir().unwrap();
        let path = process(root.path());
        let told = send(&path, Method::DELETE, "/n/7", Some("{}".to_owned())).await.unwrap();
        assert_eq!((&told["n"], &told["m"], &told["body"]), (&json!("7"), &json!("DELETE"), &json!("{}")));
        assert_eq!(told["by"], format!("uid:{}", rustix::process::getuid().as_raw()));
        assert_eq!(send(&path, Method::DELETE, "/n/7", None).await.unwrap()["body"], "");
    }
}
