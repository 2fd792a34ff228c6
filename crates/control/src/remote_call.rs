//! A single `tools/call` at an MCP server of revision 2026-07-28, without a session.

use crate::control_socket::AskError;
use crate::in_process_session::{PipeError, ServerMessage};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use signalbox_transport::tls::BackTlsSpec;
use signalbox_transport::web_client;
use signalbox_wire::sse::SseDecoder;
use signalbox_wire::{Revision, header, meta};

/// Maximum size of an answer in bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// Id of the request.
const ID: u64 = 1;

/// Calls a tool at this address. Returns `None` if the server rejects the request without processing it, because it
/// speaks an older revision or requires arguments in headers.
///
/// # Errors
/// The error of the server, or the reason why there is no answer.
pub async fn call(
    url: &Uri,
    key: Option<&str>,
    mut params: Value,
    on_notification: impl Fn(&Value),
) -> Result<Option<Value>, PipeError> {
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Ok(None);
    }
    params["_meta"][meta::PROTOCOL_VERSION] = json!(Revision::LATEST.as_str());
    params["_meta"][meta::CLIENT_CAPABILITIES] = json!({});
    params["_meta"][meta::CLIENT_INFO] = json!({"name": "signalbox", "version": env!("CARGO_PKG_VERSION")});
    let opened = web_client::open(&url.to_string(), &BackTlsSpec::default(), key.is_some()).await;
    let (stream, authority) = opened.map_err(AskError::from)?;
    let request = request(url, authority, key, &params)?;
    let (mut sender, connection) =
        http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(AskError::from)?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(AskError::from)?;
    let done = match answer.status().as_u16() {
        200 => read(answer, on_notification).await,
        // For these, the server's message helps the user more than another attempt. With 5xx, the call may have run
        // before the server or a proxy failed.
        401 | 403 | 408 | 429 | 200..=299 | 500.. => Err(AskError::Status(answer.status()).into()),
        _ => Ok(None),
    };
    connection.abort();
    done
}

fn request(uri: &Uri, host: HeaderValue, key: Option<&str>, params: &Value) -> Result<Request<Full<Bytes>>, PipeError> {
    let body = json!({"jsonrpc": "2.0", "id": ID, "method": "tools/call", "params": params}).to_string();
    let name = params["name"].as_str().unwrap_or_default();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .header(header::PROTOCOL_VERSION, Revision::LATEST.as_str())
        .header(header::METHOD, "tools/call")
        .header(header::NAME, &*header::encode_value(name));
    if let Some(key) = key {
        let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| AskError::Key)?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    Ok(request.body(Full::from(body)).map_err(|error| AskError::Body(error.to_string()))?)
}

/// Reads the answer: one message, or events with notifications before it.
async fn read(answer: http::Response<Incoming>, on_notification: impl Fn(&Value)) -> Result<Option<Value>, PipeError> {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let in_events = kind.starts_with("text/event-stream");
    let mut body = answer.into_body();
    let (mut events, mut whole) = (SseDecoder::new(MAX_ANSWER), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(AskError::from)?.into_data() else { continue };
        if !in_events {
            whole.extend_from_slice(&data);
            if whole.len() > MAX_ANSWER {
                return Err(AskError::Body("it is too large".to_owned()).into());
            }
            continue;
        }
        events.push(&data);
        while let Some(event) = events.next_event() {
            let event = event.map_err(|error| AskError::Body(error.to_string()))?;
            if event.data.is_empty() {
                continue;
            }
            match ServerMessage::read(&event.data, ID)? {
                ServerMessage::Notification(notification) => on_notification(&notification),
                ServerMessage::Answer(result) => return Ok(Some(result)),
                ServerMessage::Other => {}
            }
        }
    }
    match ServerMessage::read(&whole, ID) {
        Ok(ServerMessage::Answer(result)) => Ok(Some(result)),
        Err(error @ PipeError::Refused { .. }) => Err(error),
        _ => Err(PipeError::Ended),
    }
}
