//! Backends that are child processes: one message per line on their standard input and output.
//!
//! Four tasks serve each child: one writes its input, one reads its output, one follows its standard error, and one
//! (`life`) owns the process and is the only one that reports its end. A child leads its own process group, and the
//! whole group ends with it.

pub(crate) mod group;
mod life;
mod printable;
mod reader;
#[cfg(test)]
pub(crate) mod recorder;
mod spawn;
mod stderr;
#[cfg(test)]
mod tests;
mod writer;

pub use group::Reaper;
pub use spawn::SpawnError;
pub use stderr::LOGGED as STDERR_LINES;

use crate::send_queue::{QueueError, SendQueue};
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time for a child to exit by itself, and again after SIGTERM.
pub const KILL_GRACE: Duration = Duration::from_secs(2);

/// Configuration of a child process.
#[derive(Clone)]
pub struct ChildSpec {
    /// Name of the backend, for messages.
    pub name: Arc<str>,
    /// Program: a path, or a name to search on `PATH`. No shell is involved.
    pub program: String,
    /// Arguments, each passed unchanged.
    pub args: Vec<String>,
    /// Environment variables to set.
    pub env: Vec<(String, String)>,
    /// Names of variables to pass on from our own environment, besides those that are always passed on.
    pub env_pass: Vec<String>,
    /// Working directory; `None` for ours.
    pub cwd: Option<PathBuf>,
    /// Maximum length of a line from the child, in bytes.
    pub max_message: usize,
    /// Time for the child to exit after its input is closed, and again after SIGTERM.
    pub kill_grace: Duration,
}

impl ChildSpec {
    /// Creates a configuration without arguments and with the default limits.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, program: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_pass: Vec::new(),
            cwd: None,
            max_message: signalbox_wire::limits::LINE,
            kill_grace: KILL_GRACE,
        }
    }
}

/// Values of variables and arguments are often secrets, so neither is shown.
impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ChildSpec")
            .field("name", &self.name)
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &names)
            .field("env_pass", &self.env_pass)
            .field("cwd", &self.cwd)
            .field("max_message", &self.max_message)
            .field("kill_grace", &self.kill_grace)
            .finish()
    }
}

/// Starts a new process for every link.
#[derive(Clone, Debug)]
pub struct ChildConnector {
    spec: Arc<ChildSpec>,
    reaper: Reaper,
    counts: Arc<ChildCounts>,
}

impl ChildConnector {
    /// Creates a connector with its own reaper.
    #[must_use]
    pub fn new(spec: ChildSpec) -> Self {
        Self { spec: Arc::new(spec), reaper: Reaper::default(), counts: Arc::default() }
    }

    /// Registers the children with this reaper, so that a shutdown can wait for those of all backends at once.
    #[must_use]
    pub fn with_reaper(mut self, reaper: &Reaper) -> Self {
        self.reaper = reaper.clone();
        self
    }

    /// Returns the reaper of this connector's children.
    #[must_use]
    pub fn reaper(&self) -> &Reaper {
        &self.reaper
    }

    /// Returns the counters of this backend's children.
    #[must_use]
    pub fn counts(&self) -> &Arc<ChildCounts> {
        &self.counts
    }
}

impl Connector for ChildConnector {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let Self { spec, reaper, counts } = self.clone();
        Box::pin(async move {
            let child = spawn::spawn(&spec).map_err(|error| error.fault(&spec.name))?;
            let link = life::begin(child, &spec, &reaper, &counts, events).map_err(|error| error.fault(&spec.name))?;
            Ok(Arc::new(link) as Arc<dyn Link>)
        })
    }

    fn carries_headers(&self) -> bool {
        false
    }

    fn is_process(&self) -> bool {
        true
    }

    fn dropped(&self) -> BTreeMap<&'static str, u64> {
        self.counts.dropped()
    }

    fn kind(&self) -> &'static str {
        "stdio"
    }
}

/// Counters over all children of one backend.
#[derive(Debug, Default)]
pub struct ChildCounts {
    /// Lines on standard output that cannot be a message, such as banners.
    pub not_json: AtomicU64,
    /// Lines on standard output that exceed the maximum length.
    pub too_long: AtomicU64,
    /// Lines on standard error that were not logged because too many arrived at once.
    pub unlogged: AtomicU64,
    /// Messages refused because the child does not read fast enough.
    pub refused: AtomicU64,
    /// Messages refused because they cannot be put on one line.
    pub unsendable: AtomicU64,
}

impl ChildCounts {
    /// Returns the number of dropped or refused messages and lines by reason.
    fn dropped(&self) -> BTreeMap<&'static str, u64> {
        let all = [
            ("line_too_long", &self.too_long),
            ("stderr_unlogged", &self.unlogged),
            ("queue_full", &self.refused),
            ("not_one_line", &self.unsendable),
        ];
        all.into_iter().map(|(why, count)| (why, count.load(Ordering::Relaxed))).collect()
    }

    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// An open child. Dropping it closes it.
#[derive(Debug)]
struct ChildLink {
    name: Arc<str>,
    pid: u32,
    queue: SendQueue,
    counts: Arc<ChildCounts>,
}

impl Link for ChildLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let name = &self.name;
        self.queue.send(message).map_err(|refused| {
            let (kind, text) = match refused {
                QueueError::Full => {
                    ChildCounts::add(&self.counts.refused);
                    let text = "does not read its input fast enough: too many messages already wait for it";
                    (FaultKind::Overloaded, format!("backend `{name}` {text}"))
                }
                // Down rather than died: this message has certainly not reached the child.
                QueueError::Ended => {
                    let why = self.queue.why().unwrap_or("is ending");
                    (FaultKind::BackendDown, format!("backend `{name}` is not running: it {why}"))
                }
            };
            Fault::new(kind, text).with_str("backend", name)
        })
    }

    fn close(&self) {
        self.queue.close();
    }

    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }
}
