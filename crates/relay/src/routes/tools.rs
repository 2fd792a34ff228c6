//! `PUT /api/tools`: a page registers its own tools.

use super::legacy_request::{RouteRefusal, address, code_outside, is_tokened, read, session, token, whole};
use crate::refusal::LegacyRefusal;
use crate::relay::Relay;
use crate::shares::holder;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::router::{RoutedAnswer, RoutedRequest};
use std::sync::Arc;

/// Maximum size of a tool list, in bytes.
const MAX_BYTES: usize = 256 * 1024;

#[derive(Deserialize)]
struct ToolsBody {
    #[serde(rename = "sessionCode")]
    session_code: Option<String>,
    code: Option<String>,
    #[serde(rename = "workerToken")]
    worker_token: Option<String>,
    tools: Vec<Value>,
}

/// Replaces the page's own tools. MCP sessions bound to the code are notified of the change.
pub async fn put(relay: Arc<Relay>, asked: RoutedRequest) -> Result<RoutedAnswer, RouteRefusal> {
    let (address, outside, headers) = (address(&asked), code_outside(&asked), asked.headers.clone());
    let bytes = whole(&relay, &holder(&asked.caller), asked.body).await?;
    // A parsed tree takes several times the memory of its text.
    if bytes.len() > 2 * MAX_BYTES {
        return Err(RouteRefusal::of(LegacyRefusal::Validation(format!("tools may take up {MAX_BYTES} bytes"))));
    }
    let told: ToolsBody = read(&bytes)?;
    drop(bytes);
    let record = session(&relay, outside.or(told.session_code).or(told.code), &address).await?;
    if !is_tokened(&relay, &record, token(&headers, told.worker_token.as_deref())).await? {
        return Err(RouteRefusal::about(LegacyRefusal::WorkerTokenNeeded, &record.code));
    }
    let bad = |why: String| RouteRefusal::about(LegacyRefusal::Validation(why), &record.code);
    let own = relay.tools.read_own(&told.tools).map_err(|error| bad(error.to_string()))?;
    let (count, text) = (own.len(), Value::from(own).to_string());
    if text.len() > MAX_BYTES {
        return Err(bad(format!("tools may take up {MAX_BYTES} bytes")));
    }
    match relay.store.set_tools(&record.code, &text, unix_millis()).await {
        Ok(true) => Ok(RoutedAnswer::json(StatusCode::OK, json!({"tools": count}).to_string())),
        Ok(false) => Err(RouteRefusal::about(LegacyRefusal::SessionExpired, &record.code)),
        Err(error) => Err(RouteRefusal::of(relay.failed(&error))),
    }
}
