//! Ask the tapes by MCP: a server inside the process whose tools search, show, count and compare recorded calls.
//!
//! - **A caller sees its own calls only.** A connection acts for one principal, and everything that is read goes through
//!   [`own_tapes::OwnTapes`], which asks the store for that principal's entries and nothing else. A call of somebody else is
//!   not found, just as one that does not exist.
//! - **Nothing is written.** The tools use the reading half of the port of the stores.
//! - **Nobody waits for a disk but the one who asks.** The store is opened by the first question, and read on threads for
//!   blocking work, a few at once, each for a bounded time.
//! - **Answers are small.** Lists have pages, texts are cut, and what a terminal would obey is escaped.

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
use signalbox_embedded::{About, Answer, Calling, Ending, Progress, Toolbox};
use signalbox_engine::Principal;
use signalbox_engine::record::{StoreError, TapeStore};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender};

/// Questions that are answered at once; more wait their turn.
const MAX_ASKING: usize = 4;
/// How long one question may read. What was found until then is told.
const MAX_TIME: Duration = Duration::from_secs(10);

const ABOUT: About = About {
    name: "signalbox-tapes",
    title: "Recorded calls",
    version: env!("CARGO_PKG_VERSION"),
    instructions: "These tools look at recordings (tapes) of your own calls through this gateway: find calls with \
                   tapes_search, then look at one with tapes_show, count with tapes_stats, and compare two with \
                   tapes_diff. Nothing can be changed with them, and calls of these tools are not among what they find.",
};

/// Opens the store of the tapes.
pub type OpenStore = Box<dyn Fn() -> Result<Arc<dyn TapeStore>, StoreError> + Send + Sync>;

/// The server; a clone serves another connection from the same store.
#[derive(Clone)]
pub struct TapeTools(Arc<Shared>);

struct Shared {
    /// The name of this backend, whose own calls are not shown.
    backend: Arc<str>,
    open: OpenStore,
    store: OnceLock<Arc<dyn TapeStore>>,
    asking: Arc<Semaphore>,
}

impl fmt::Debug for TapeTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TapeTools").field("backend", &self.0.backend).finish_non_exhaustive()
    }
}

impl TapeTools {
    /// A server that is the backend of this name. The store is opened when something is asked first.
    #[must_use]
    pub fn new(backend: impl Into<Arc<str>>, open: OpenStore) -> Self {
        let (store, asking) = (OnceLock::new(), Arc::new(Semaphore::new(MAX_ASKING)));
        Self(Arc::new(Shared { backend: backend.into(), open, store, asking }))
    }

    /// Answers the messages of a connection that acts for this principal, until it hangs up.
    pub async fn serve(self, principal: Principal, incoming: Receiver<Bytes>, outgoing: Sender<Bytes>) {
        signalbox_embedded::serve(Connection { tools: self, principal }, incoming, outgoing).await;
    }
}

/// The tools for one principal.
struct Connection {
    tools: TapeTools,
    principal: Principal,
}

impl Toolbox for Connection {
    fn about(&self) -> About {
        ABOUT
    }

    fn tools(&self) -> Vec<Value> {
        catalog::tools()
    }

    fn call(&mut self, tool: &str, arguments: Map<String, Value>, _: Progress) -> Option<Calling> {
        let question = Question::read(tool, &arguments)?;
        let (shared, principal) = (Arc::clone(&self.tools.0), self.principal.clone());
        Some(Box::pin(async move {
            match ask(shared, principal, question).await {
                Ok(answer) => answer,
                Err(error) => told(&error),
            }
        }))
    }
}

async fn ask(
    shared: Arc<Shared>,
    principal: Principal,
    question: Result<Question, AskError>,
) -> Result<Answer, AskError> {
    let question = question?;
    let turn = Arc::clone(&shared.asking).acquire_owned().await.map_err(|_| AskError::Interrupted)?;
    let reading = tokio::task::spawn_blocking(move || {
        // Kept until the reading ends, which it does not if the caller cancels.
        let _turn = turn;
        let store = shared.store()?;
        let until = Instant::now() + MAX_TIME;
        let own = OwnTapes { store: &*store, principal: principal.as_str(), asking: &shared.backend, until };
        question.answer(&own)
    });
    reading.await.map_err(|_| AskError::Interrupted)?
}

impl Shared {
    /// The store, opened if it is not yet. A failure is not remembered: the next question tries again.
    fn store(&self) -> Result<Arc<dyn TapeStore>, AskError> {
        if let Some(store) = self.store.get() {
            return Ok(Arc::clone(store));
        }
        let opened = (self.open)()?;
        Ok(Arc::clone(self.store.get_or_init(|| opened)))
    }
}

/// An error as an answer that a model can read.
fn told(error: &AskError) -> Answer {
    let text = signalbox_wire::printable::one_line(&error.to_string());
    let ending = match error {
        AskError::Arguments(_) => Ending::BadArguments(json!({"reason": "invalid_arguments"})),
        _ => Ending::Failed,
    };
    Answer { ending, ..Answer::text(text) }
}
