//! `POST /api/sessions`: a page opens a session (C-1, CO-1).

use super::legacy_request::{Refused, address, read, whole};
use crate::counts::Counts;
use crate::refusal::Refusal;
use crate::relay::Relay;
use crate::session::NewSession;
use crate::shares::holder;
use crate::when::iso;
use http::StatusCode;
use serde_json::{Value, json};
use signalbox_transport::router::{RoutedAnswer, RoutedRequest};
use std::sync::Arc;
use std::time::Instant;

/// The longest way to write nothing, in bytes.
const MAX_BODY: usize = 1024;

/// Makes a session. Both spellings of the code and of the time are told.
pub async fn create(relay: Arc<Relay>, asked: RoutedRequest) -> Result<RoutedAnswer, Refused> {
    let address = address(&asked);
    let body = whole(&relay, &holder(&asked.caller), asked.body).await?;
    // A long one is not read: a tree of values is many times larger than its text.
    if body.len() > MAX_BODY || (!body.is_empty() && read::<Value>(&body)? != json!({})) {
        return Err(Refused::of(Refusal::InvalidRequest));
    }
    if let Err(wait) = relay.session_rate.take(&address, Instant::now()) {
        Counts::add(&relay.counts.rate_limited);
        return Err(Refused::of(Refusal::RateLimited { what: "new sessions", wait }));
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
