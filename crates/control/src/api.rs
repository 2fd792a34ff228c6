//! The HTTP API of a running process, besides MCP. [`routes`] lists it.

mod administration;
mod anchors;
mod approve;
mod audit;
mod authorization;
mod breakpoints;
mod grants;
mod holds;
mod mcp;
mod process;
mod replay;
pub mod routes;
mod sessions;
mod sign_in;
mod switches;
pub mod transparent;

use crate::status::{Overview, ProcessInfo};
use http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_assembly::anchor_book::AnchorBook;
use signalbox_assembly::assemble::App;
use signalbox_assembly::name_check;
use signalbox_assembly::reload::Reloader;
use signalbox_assembly::seal_folder::SealFolder;
use signalbox_transport::router::{Problem, RoutedAnswer, RoutedBody, RoutedRequest};
use std::sync::Arc;
use std::time::Duration;

/// The longest name of a person.
const MAX_NAME: usize = 128;

/// What the routes tell of and act on.
pub struct Served {
    reloader: Arc<Reloader>,
    overview: Overview,
    anchors: Arc<AnchorBook>,
}

impl Served {
    /// A process that is kept to its configuration by this, at this place. Needs a runtime.
    #[must_use]
    pub fn new(reloader: &Arc<Reloader>, place: ProcessInfo) -> Arc<Self> {
        name_check::follow(reloader);
        let anchors = Arc::new(AnchorBook::new(SealFolder::of(&reloader.current().data_dir)));
        Arc::new(Self { reloader: Arc::clone(reloader), overview: Overview::new(reloader, place), anchors })
    }

    fn app(&self) -> &App {
        self.reloader.app()
    }
}

/// What was asked for.
fn ok(value: &Value) -> RoutedAnswer {
    RoutedAnswer::json(StatusCode::OK, value.to_string())
}

fn bad(why: impl std::fmt::Display) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, why)
}

/// The body as JSON; an empty one stands for `{}`.
async fn json<T: DeserializeOwned>(body: RoutedBody) -> Result<T, Problem> {
    let body = body.bytes().await?;
    let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
    serde_json::from_slice(body).map_err(|error| bad(format_args!("the body: {error}")))
}

/// The number in the path.
fn id(request: &RoutedRequest) -> Result<u64, Problem> {
    number(request.segment("id"))
}

fn number(text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|_| bad(format_args!("`{text}` is not a number")))
}

/// Who decides: the name that came with the request, else whom the system tells.
fn who(caller: &str, name: Option<String>) -> String {
    let name = name.filter(|name| !name.is_empty() && name.len() <= MAX_NAME);
    name.map_or_else(|| caller.to_owned(), |name| format!("{name} ({caller})"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
