//! `/api/v1/breakpoints`: where messages are to be held.

use super::{millis, number};
use crate::control::{Call, Reply};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_engine::chain::Phase;
use signalbox_runtime::{Breakpoint, BreakpointError, Breakpoints, SetBreakpoint};
use std::time::Duration;

/// What is to be set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    next: Option<u32>,
    tool: Option<String>,
    method: Option<String>,
    phase: Option<String>,
    within_ms: Option<u64>,
}

pub(super) fn serve(breakpoints: &Breakpoints, call: &Call, rest: &[&str]) -> Option<Reply> {
    Some(match (rest, &call.method) {
        ([], &Method::GET) => Reply::ok(&breakpoints.list().iter().map(shown).collect::<Vec<_>>().into()),
        ([], &Method::POST) => set(breakpoints, call).unwrap_or_else(|refusal| refusal),
        ([], &Method::DELETE) => Reply::ok(&json!({"cleared": breakpoints.clear_all()})),
        ([], _) => Reply::only("GET, POST or DELETE"),
        ([id], &Method::DELETE) => match number(id).map(|id| breakpoints.clear(id)) {
            Ok(Ok(cleared)) => Reply::ok(&shown(&cleared)),
            Ok(Err(error)) => refusal(&error),
            Err(reply) => reply,
        },
        ([_], _) => Reply::only("DELETE"),
        _ => return None,
    })
}

fn set(breakpoints: &Breakpoints, call: &Call) -> Result<Reply, Reply> {
    let wanted: Wanted = call.json()?;
    let bad = |why: &str| Reply::error(StatusCode::BAD_REQUEST, why);
    if wanted.next.is_none() && wanted.tool.is_none() && wanted.method.is_none() {
        return Err(bad(r#"say what to hold: {"next":1}, {"tool":"pattern"} or {"method":"pattern"}"#));
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
    breakpoints.set(breakpoint).map(|set| Reply::ok(&shown(&set))).map_err(|error| refusal(&error))
}

fn refusal(error: &BreakpointError) -> Reply {
    let status = match error {
        BreakpointError::Unknown(_) => StatusCode::NOT_FOUND,
        BreakpointError::TooMany => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::BAD_REQUEST,
    };
    Reply::error(status, error)
}

fn shown(set: &SetBreakpoint) -> Value {
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
