//! What can be asked of a running process, and done with it, on its control socket: `/api/v1/…`.
//!
//! ```text
//! GET    holds            GET holds/{id}    POST holds/{id}/release|edit|answer|refuse
//! GET    breakpoints      POST breakpoints  DELETE breakpoints[/{id}]
//! GET    sessions         GET sessions/{id} DELETE sessions/{id}
//! GET    live             one line of JSON for each fact, as it happens
//! ```

mod breakpoints;
mod holds;
mod sessions;

use crate::assemble::App;
use crate::control::{Api, Call, Reply};
use http::{Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// Where everything is.
pub const ROOT: &str = "/api/v1/";
/// The longest name of a person.
const MAX_NAME: usize = 128;

/// The answers of a process that runs this gateway.
#[must_use]
pub fn api(app: &App) -> Api {
    let app = app.clone();
    Arc::new(move |call: &Call| {
        let path = call.path.strip_prefix(ROOT)?;
        let parts: Vec<&str> = path.split('/').collect();
        match parts.as_slice() {
            ["holds", rest @ ..] => holds::serve(&app, call, rest),
            ["breakpoints", rest @ ..] => breakpoints::serve(&app.breakpoints, call, rest),
            ["sessions", rest @ ..] => sessions::serve(&app.gateway, call, rest),
            ["live"] if call.method == Method::GET => Some(live(&app)),
            ["live"] => Some(Reply::only("GET")),
            _ => None,
        }
    })
}

fn live(app: &App) -> Reply {
    match app.live.watch() {
        Ok(watching) => Reply::Lines(Box::new(watching)),
        Err(error) => Reply::error(StatusCode::SERVICE_UNAVAILABLE, error),
    }
}

/// The number in a path.
fn number(text: &str) -> Result<u64, Reply> {
    text.parse().map_err(|_| Reply::error(StatusCode::BAD_REQUEST, format_args!("`{text}` is no number")))
}

/// Who decides: the name that came with the call, else whom the system tells.
fn who(call: &Call, name: Option<String>) -> String {
    let name = name.filter(|name| !name.is_empty() && name.len() <= MAX_NAME);
    name.map_or_else(|| call.by.clone(), |name| format!("{name} ({})", call.by))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
