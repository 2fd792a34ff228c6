//! `/api/v1/breakpoints`: conditions for messages to hold.

use super::{ApiState, bad, id, json as read, millis, ok};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_engine::chain::Phase;
use signalbox_runtime::{ActiveBreakpoint, Breakpoint, BreakpointError};
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedRequest};
use std::sync::Arc;
use std::time::Duration;

/// Body of a request that sets a breakpoint.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBreakpoint {
    next: Option<u32>,
    tool: Option<String>,
    method: Option<String>,
    phase: Option<String>,
    within_ms: Option<u64>,
}

pub(super) async fn list(served: Arc<ApiState>, _: RoutedRequest) -> HandlerResult {
    Ok(ok(&served.app().breakpoints.list().iter().map(shown).collect::<Vec<_>>().into()))
}

pub(super) async fn clear_all(served: Arc<ApiState>, _: RoutedRequest) -> HandlerResult {
    Ok(ok(&json!({"cleared": served.app().breakpoints.clear_all()})))
}

pub(super) async fn clear(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let cleared = served.app().breakpoints.clear(id(&request)?);
    cleared.map(|cleared| ok(&shown(&cleared))).map_err(|error| refusal(&error))
}

pub(super) async fn set(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let wanted: NewBreakpoint = read(request.body).await?;
    if wanted.next.is_none() && wanted.tool.is_none() && wanted.method.is_none() {
        return Err(bad(r#"specify what to hold: {"next":1}, {"tool":"pattern"} or {"method":"pattern"}"#));
    }
    let phase = match wanted.phase.as_deref() {
        None | Some("request") => Phase::Request,
        Some("response") => Phase::Response,
        Some(_) => return Err(bad("`phase` must be request or response")),
    };
    let mut breakpoint =
        Breakpoint { tool: wanted.tool, method: wanted.method, next: wanted.next, phase, ..Breakpoint::default() };
    if let Some(within) = wanted.within_ms {
        breakpoint.within = Duration::from_millis(within);
    }
    served.app().breakpoints.set(breakpoint).map(|set| ok(&shown(&set))).map_err(|error| refusal(&error))
}

fn refusal(error: &BreakpointError) -> RouteFault {
    let status = match error {
        BreakpointError::Unknown(_) => StatusCode::NOT_FOUND,
        BreakpointError::TooMany => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::BAD_REQUEST,
    };
    RouteFault::new(status, error)
}

fn shown(set: &ActiveBreakpoint) -> Value {
    let breakpoint = &set.breakpoint;
    json!({
        "id": set.id,
        "tool": breakpoint.tool,
        "method": breakpoint.method,
        "next": breakpoint.next,
        "phase": breakpoint.phase.word(),
        "within_ms": millis(breakpoint.within),
        "hits": set.hits,
        "words": breakpoint.words(),
    })
}
