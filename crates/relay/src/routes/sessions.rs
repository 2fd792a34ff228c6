//! `POST /api/sessions`: a page opens a session.

use super::legacy_request::{RouteRefusal, address, read, whole};
use crate::counters::RelayCounters;
use crate::refusal::LegacyRefusal;
use crate::relay::Relay;
use crate::session::NewSession;
use crate::shares::holder;
use crate::when::iso;
use http::StatusCode;
use serde_json::{Value, json};
use signalbox_transport::router::{RoutedAnswer, RoutedRequest};
use std::sync::Arc;
use std::time::Instant;

/// Maximum length of a body that is still empty, in bytes.
const MAX_BODY: usize = 1024;

/// Creates a session. The response has both spellings of the code and the lifetime.
pub async fn create(relay: Arc<Relay>, asked: RoutedRequest) -> Result<RoutedAnswer, RouteRefusal> {
    let address = address(&asked);
    let body = whole(&relay, &holder(&asked.caller), asked.body).await?;
    // Do not parse a long body: a parsed tree takes several times the memory of its text.
    if body.len() > MAX_BODY || (!body.is_empty() && read::<Value>(&body)? != json!({})) {
        return Err(RouteRefusal::of(LegacyRefusal::InvalidRequest));
    }
    if let Err(wait) = relay.session_rate.take(&address, Instant::now()) {
        RelayCounters::add(&relay.counts.rate_limited);
        return Err(RouteRefusal::of(LegacyRefusal::RateLimited { what: "new sessions", wait }));
    }
    let NewSession { record, worker_token } = relay.create(None).await?;
    let (code, ttl) = (record.code.expose(), relay.settings.ttl_ms());
    let base = relay.base();
    let body = json!({
        "sessionCode": code,
        "code": code,
        "ttl": ttl,
        "ttlSeconds": ttl / 1_000,
        "expiresAt": iso(record.until),
        "relayBaseUrl": base,
        "workerToken": worker_token,
        "joinUrl": format!("{base}/relay/demo/#{code}"),
    });
    Ok(RoutedAnswer::json(StatusCode::CREATED, body.to_string()))
}
