//! `/api/v1/status`, `/api/v1/version`, `/api/v1/reload` and `/api/v1/live`: the process as a whole.

use super::{Served, ok};
use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use signalbox_assembly::live::{Live, Watching};
use signalbox_assembly::reload::Trigger;
use signalbox_transport::router::{Answer, Answered, Chunks as _, Event, Events, Problem, Request};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// One line of JSON for each fact.
const LINES: &str = "application/x-ndjson";

pub(super) async fn status(served: Arc<Served>, _: Request) -> Answered {
    told(served.overview.json())
}

/// The state of a process, if it could be written.
pub(super) fn told(state: serde_json::Result<String>) -> Answered {
    state
        .map(|text| Answer::json(StatusCode::OK, text))
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format_args!("the status: {error}")))
}

pub(super) async fn version<S>(_: Arc<S>, _: Request) -> Answered {
    Ok(ok(&json!({"name": "signalbox", "version": env!("CARGO_PKG_VERSION")})))
}

pub(super) async fn reload(served: Arc<Served>, _: Request) -> Answered {
    let done = served.reloader.reload(Trigger::Command).await;
    let mut answer = json!({"command": served.overview.command(), "pid": std::process::id(), "ok": done.is_ok()});
    match done {
        Ok(summary) => {
            answer["text"] = json!(summary.to_string());
            answer["summary"] = json!(summary);
        }
        Err(error) => answer["error"] = json!(error.to_string()),
    }
    Ok(ok(&answer))
}

pub(super) async fn live(served: Arc<Served>, request: Request) -> Answered {
    watch(&served.app().live, &request)
}

/// Facts as they happen: lines, or events for a client that would rather have those, as a browser would.
pub(super) fn watch(live: &Arc<Live>, request: &Request) -> Answered {
    match live.watch() {
        Ok(watching) if request.wants_events() => Ok(Answer::events(FactEvents { watching, waiting: VecDeque::new() })),
        Ok(watching) => Ok(Answer::live(LINES, watching)),
        Err(error) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, error)),
    }
}

/// Each line as an event.
struct FactEvents {
    watching: Watching,
    /// Lines that have yet to be told.
    waiting: VecDeque<Bytes>,
}

impl Events for FactEvents {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(data) = self.waiting.pop_front() {
                return Poll::Ready(Some(Event { data, ..Event::default() }));
            }
            let Some(Ok(lines)) = ready!(self.watching.poll_chunk(cx)) else { return Poll::Ready(None) };
            let whole = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            self.waiting.extend(whole.map(|line| lines.slice_ref(line)));
        }
    }
}
