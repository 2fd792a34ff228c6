//! MCP server inside the process whose tools search, show, count and compare recorded calls.
//!
//! - **A caller sees its own calls only.** A connection acts for one principal. All reads go through
//!   [`own_tapes::OwnTapes`], which queries the store for that principal's entries only. A call of another principal is
//!   reported as not found.
//! - **The tools write nothing.** They use the read half of the store interface.
//! - **Only the caller waits for the disk.** The first query opens the store. Queries run on blocking threads, a few at
//!   once, each with a time limit.
//! - **Answers are small.** Lists are paged, texts truncated, and terminal control characters escaped.

mod ask_error;
mod call_line;
mod catalog;
mod diff;
mod own_tapes;
mod question;
mod search;
mod show;
mod stats;
#[cfg(test)]
mod tests;

use ask_error::AskError;
use bytes::Bytes;
use own_tapes::OwnTapes;
use question::Question;
use serde_json::{Map, Value, json};
use signalbox_embedded::{Answer, CallOutcome, Progress, RunningCall, ServerDescription, Toolbox};
use signalbox_engine::Principal;
use signalbox_engine::record::{StoreError, TapeStore};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender};

/// Maximum number of concurrent queries. Further ones wait.
const MAX_QUERIES: usize = 4;
/// Time limit of a query. It returns what it found until then.
const MAX_TIME: Duration = Duration::from_secs(10);

const ABOUT: ServerDescription = ServerDescription {
    name: "signalbox-tapes",
    title: "Recorded calls",
    version: env!("CARGO_PKG_VERSION"),
    instructions: "These tools look at recordings (tapes) of your own calls through this gateway: find calls with \
                   tapes_search, then look at one with tapes_show, count with tapes_stats, and compare two with \
                   tapes_diff. Nothing can be changed with them, and calls of these tools are not among what they find.",
};

/// Function that opens the store of the tapes.
pub type OpenStore = Box<dyn Fn() -> Result<Arc<dyn TapeStore>, StoreError> + Send + Sync>;

/// Server for the tape tools. Clones share the store.
#[derive(Clone)]
pub struct TapeTools(Arc<ServerState>);

struct ServerState {
    /// Name of this backend. Its own calls are hidden.
    backend: Arc<str>,
    open: OpenStore,
    store: OnceLock<Arc<dyn TapeStore>>,
    permits: Arc<Semaphore>,
}

impl fmt::Debug for TapeTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TapeTools").field("backend", &self.0.backend).finish_non_exhaustive()
    }
}

impl TapeTools {
    /// Creates a server for the backend of this name. The first query opens the store.
    #[must_use]
    pub fn new(backend: impl Into<Arc<str>>, open: OpenStore) -> Self {
        let (store, permits) = (OnceLock::new(), Arc::new(Semaphore::new(MAX_QUERIES)));
        Self(Arc::new(ServerState { backend: backend.into(), open, store, permits }))
    }

    /// Serves a connection on behalf of `principal` until the peer closes it.
    pub async fn serve(self, principal: Principal, incoming: Receiver<Bytes>, outgoing: Sender<Bytes>) {
        signalbox_embedded::serve(Connection { tools: self, principal }, incoming, outgoing).await;
    }
}

/// Tools on behalf of one principal.
struct Connection {
    tools: TapeTools,
    principal: Principal,
}

impl Toolbox for Connection {
    fn about(&self) -> ServerDescription {
        ABOUT
    }

    fn tools(&self) -> Vec<Value> {
        catalog::tools()
    }

    fn call(&mut self, tool: &str, arguments: Map<String, Value>, _: Progress) -> Option<RunningCall> {
        let question = Question::read(tool, &arguments)?;
        let (state, principal) = (Arc::clone(&self.tools.0), self.principal.clone());
        Some(Box::pin(async move {
            match ask(state, principal, question).await {
                Ok(answer) => answer,
                Err(error) => error_answer(&error),
            }
        }))
    }
}

async fn ask(
    state: Arc<ServerState>,
    principal: Principal,
    question: Result<Question, AskError>,
) -> Result<Answer, AskError> {
    let question = question?;
    let turn = Arc::clone(&state.permits).acquire_owned().await.map_err(|_| AskError::Interrupted)?;
    let reading = tokio::task::spawn_blocking(move || {
        // Held until the read ends, even if the caller cancels.
        let _turn = turn;
        let store = state.store()?;
        let until = Instant::now() + MAX_TIME;
        let own = OwnTapes { store: &*store, principal: principal.as_str(), asking: &state.backend, until };
        question.answer(&own)
    });
    reading.await.map_err(|_| AskError::Interrupted)?
}

impl ServerState {
    /// Returns the store, opening it if needed. A failure is not cached: the next query tries again.
    fn store(&self) -> Result<Arc<dyn TapeStore>, AskError> {
        if let Some(store) = self.store.get() {
            return Ok(Arc::clone(store));
        }
        let opened = (self.open)()?;
        Ok(Arc::clone(self.store.get_or_init(|| opened)))
    }
}

/// Formats an error as an answer for the model.
fn error_answer(error: &AskError) -> Answer {
    let text = signalbox_wire::printable::one_line(&error.to_string());
    let ending = match error {
        AskError::Arguments(_) => CallOutcome::BadArguments(json!({"reason": "invalid_arguments"})),
        _ => CallOutcome::Failed,
    };
    Answer { ending, ..Answer::text(text) }
}
