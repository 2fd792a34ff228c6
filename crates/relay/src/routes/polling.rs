//! `GET /api/request/{code}`: long polling for pages that cannot keep a stream open. The response waits until there is
//! a request.
//!
//! A code in the header `X-Session-Code` takes precedence over the one in the URL.

use super::legacy_request::{
    RouteRefusal, address, code_outside, header, is_tokened, peer, session, shows_worker, token,
};
use crate::refusal::LegacyRefusal;
use crate::relay::Relay;
use crate::store::RelayEvent;
use crate::stream_roles::StreamRole;
use crate::worker::Worker;
use http::StatusCode;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::router::{RoutedAnswer, RoutedRequest};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Maximum time that a poll waits; the default if the page gives none.
const MAX_WAIT: Duration = Duration::from_secs(25);
/// Maximum number of polling pages whose deliveries are remembered.
const MAX_POLLERS: usize = 10_000;

/// Returns the requests that wait for the page.
pub async fn poll(relay: Arc<Relay>, asked: RoutedRequest) -> Result<RoutedAnswer, RouteRefusal> {
    // The page library sends the code in a header and a dash in the URL.
    let code = code_outside(&asked).unwrap_or_else(|| asked.segment("code").to_owned());
    let record = session(&relay, Some(code), &address(&asked)).await?;
    let who = peer(&asked);
    is_tokened(&relay, &record, token(&asked.headers, None)).await?;
    if !shows_worker(&asked.headers) {
        relay.roles.note(&record.mark, &who, StreamRole::Worker);
    }
    let wait = match asked.query.get("wait").map(str::parse::<f64>) {
        None => MAX_WAIT,
        Some(Ok(seconds)) if (0.0..=MAX_WAIT.as_secs_f64()).contains(&seconds) => Duration::from_secs_f64(seconds),
        Some(_) => {
            let why = format!("wait is a number of seconds from 0 to {}", MAX_WAIT.as_secs());
            return Err(RouteRefusal::about(LegacyRefusal::Validation(why), &record.code));
        }
    };
    let holder = header(&asked.headers, "x-worker-id").map_or_else(|| format!("poll {who}"), str::to_owned);
    // Without a journal, a polling page is identified by its address and name.
    let journal = header(&asked.headers, "x-worker-journal").map_or_else(|| holder.clone(), str::to_owned);
    let key = (record.code.clone(), Box::from(holder.as_str()));
    let given = relay.polled.lock().unpoisoned().remove(&key).unwrap_or_default();
    let mut worker = Worker::new(record.code.clone(), &holder, &journal, &holder).having(given);
    let due = wait_for(&relay, &mut worker, wait).await;
    let mut polled = relay.polled.lock().unpoisoned();
    if polled.len() >= MAX_POLLERS {
        polled.clear();
    }
    polled.insert(key, worker.into_sent());
    drop(polled);
    let due = due?.join(",");
    Ok(RoutedAnswer::json(StatusCode::OK, format!(r#"{{"requests":[{due}]}}"#)))
}

async fn wait_for(relay: &Arc<Relay>, worker: &mut Worker, wait: Duration) -> Result<Vec<String>, RouteRefusal> {
    let failed = |error| RouteRefusal::of(relay.failed(&error));
    let until = Instant::now() + wait;
    let mut events = relay.store.subscribe(&worker.code).await.map_err(failed)?;
    loop {
        if worker.take_lead(relay).await.map_err(failed)? {
            let due = worker.due(relay).await.map_err(failed)?;
            if !due.is_empty() {
                return Ok(due);
            }
        }
        loop {
            match timeout_at(until, events.recv()).await {
                Err(_) => return Ok(Vec::new()),
                Ok(Some(RelayEvent::Requested { .. } | RelayEvent::LeadChanged)) => break,
                Ok(Some(RelayEvent::Ended)) => {
                    return Err(RouteRefusal::about(LegacyRefusal::SessionExpired, &worker.code));
                }
                Ok(Some(_)) => {}
                Ok(None) => {
                    if relay.store.by_code(&worker.code, unix_millis()).await.map_err(failed)?.is_none() {
                        return Err(RouteRefusal::about(LegacyRefusal::SessionExpired, &worker.code));
                    }
                    events = relay.store.subscribe(&worker.code).await.map_err(failed)?;
                    break;
                }
            }
        }
    }
}
