//! HTTP API of a running process besides MCP. [`routes`] lists it.

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

use crate::metrics::VisibleNames;
use crate::status::{ProcessInfo, StatusReporter};
use http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_assembly::anchor_book::AnchorBook;
use signalbox_assembly::assemble::App;
use signalbox_assembly::name_check;
use signalbox_assembly::reload::Reloader;
use signalbox_assembly::seal_folder::SealFolder;
use signalbox_engine::{Caller, Proof};
use signalbox_transport::router::{RouteFault, RoutedAnswer, RoutedBody, RoutedRequest};
use std::sync::Arc;
use std::time::Duration;

/// Maximum length of a person's name, in bytes.
const MAX_NAME: usize = 128;

/// State behind the API: the reloader, the status and the anchors of one process.
pub struct ApiState {
    reloader: Arc<Reloader>,
    overview: StatusReporter,
    anchors: Arc<AnchorBook>,
    /// True if `/metrics` of the listener is open to holders of its own secret only, who may read it all.
    metrics_have_secret: bool,
}

impl ApiState {
    /// Creates the state for the process that `reloader` configures. Needs a Tokio runtime.
    #[must_use]
    pub fn new(reloader: &Arc<Reloader>, place: ProcessInfo) -> Arc<Self> {
        name_check::follow(reloader);
        let config = reloader.current();
        let anchors = Arc::new(AnchorBook::new(SealFolder::of(&config.data_dir)));
        // A change of the secret is in force after a restart.
        let metrics_have_secret = config.auth.metrics_secret.is_some();
        let overview = StatusReporter::new(reloader, place);
        Arc::new(Self { reloader: Arc::clone(reloader), overview, anchors, metrics_have_secret })
    }

    /// Returns the names of tools and backends that a caller may read in reports of the process: all if it administers,
    /// or if it has shown the secret of the page.
    fn visible_names(&self, caller: &Caller, has_secret: bool) -> VisibleNames {
        let identity = caller.identity();
        match has_secret || identity.proof == Proof::LocalUser || identity.has_role(routes::ADMIN) {
            true => VisibleNames::All,
            false => VisibleNames::of(self.app(), caller),
        }
    }

    fn app(&self) -> &App {
        self.reloader.app()
    }
}

/// Answers 200 with a JSON body.
fn ok(value: &Value) -> RoutedAnswer {
    RoutedAnswer::json(StatusCode::OK, value.to_string())
}

fn bad(why: impl std::fmt::Display) -> RouteFault {
    RouteFault::new(StatusCode::BAD_REQUEST, why)
}

/// Parses the body as JSON. An empty body stands for `{}`.
async fn json<T: DeserializeOwned>(body: RoutedBody) -> Result<T, RouteFault> {
    let body = body.bytes().await?;
    let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
    serde_json::from_slice(body).map_err(|error| bad(format_args!("the body: {error}")))
}

/// Parses the number in the path.
fn id(request: &RoutedRequest) -> Result<u64, RouteFault> {
    number(request.segment("id"))
}

fn number(text: &str) -> Result<u64, RouteFault> {
    text.parse().map_err(|_| bad(format_args!("`{text}` is not a number")))
}

/// Returns the name of the person who decides: the name in the request together with the caller, or the caller alone.
fn who(caller: &str, name: Option<String>) -> String {
    let name = name.filter(|name| !name.is_empty() && name.len() <= MAX_NAME);
    name.map_or_else(|| caller.to_owned(), |name| format!("{name} ({caller})"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
