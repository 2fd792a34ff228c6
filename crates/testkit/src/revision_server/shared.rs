//! What all conversations of one server process share: what was counted, who listens, and the tasks.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::call::{Out, Outlet};
use super::talk::Talk;
use super::tasks::Task;
use super::{Options, catalog, oddities};
use crate::revision::Revision;
use crate::wire_log::{Tap, WireLog};

/// Most violations that are kept in words; more are only counted.
const MAX_VIOLATIONS: usize = 200;
/// Most conversations that are told of changes.
const MAX_TALKS: usize = 10_000;
/// Most listeners, tasks and given out states; no test comes near.
const MAX_KEPT: usize = 100_000;

/// One server process.
#[derive(Debug)]
pub struct ServerShared {
    /// The one revision it speaks.
    pub revision: Revision,
    /// Whether it has odd tools.
    pub odd: bool,
    wire_log: Option<Arc<WireLog>>,
    journal: Option<Mutex<File>>,
    next: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    runs: BTreeMap<String, u64>,
    tags: BTreeMap<String, u64>,
    rounds: u64,
    slow: BTreeMap<&'static str, u64>,
    violations: Vec<String>,
    violation_count: u64,
    extra: bool,
    talks: Vec<Weak<Talk>>,
    listeners: Vec<Listener>,
    issued: HashMap<u64, Issued>,
    tasks: BTreeMap<String, Arc<Task>>,
}

/// A `subscriptions/listen` of the new era that is open.
#[derive(Debug)]
struct Listener {
    serial: u64,
    id: Value,
    filter: Value,
    out: Outlet,
}

/// A `requestState` that was given out.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The id of the request it answered.
    pub id: Value,
    /// The arguments of that request.
    pub arguments: Value,
    /// The keys of what was asked for.
    pub keys: Vec<String>,
    /// Whether it came back.
    pub used: bool,
}

impl ServerShared {
    /// A server that has done nothing yet.
    ///
    /// # Errors
    /// When the journal or the wire log cannot be written.
    pub fn new(options: &Options) -> anyhow::Result<Arc<Self>> {
        let open = |path| File::options().create(true).append(true).open(path).with_context(|| format!("{path:?}"));
        let journal = options.journal.as_ref().map(open).transpose()?.map(Mutex::new);
        let wire_log = options.wire_log.as_deref().map(WireLog::in_file).transpose()?;
        let (revision, odd, inner) = (options.revision, options.odd, Mutex::default());
        Ok(Arc::new(Self { revision, odd, wire_log, journal, next: AtomicU64::new(1), inner }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection begins, of which every message is kept where that is wanted.
    pub fn tap(&self) -> Tap {
        Tap::of(self.wire_log.as_ref())
    }

    /// A number that was not given out before.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn write(&self, line: &Value) {
        let Some(journal) = &self.journal else { return };
        let mut file = journal.lock().unwrap_or_else(PoisonError::into_inner);
        // One write, so that lines of several processes do not mix.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            eprintln!("the journal cannot be written: {error}");
        }
    }

    /// A client did what its revision does not allow.
    pub fn violation(&self, what: &str) {
        eprintln!("VIOLATION {}: {what}", self.revision);
        self.write(&json!({"event": "violation", "revision": self.revision.name(), "what": what}));
        let mut inner = self.inner();
        inner.violation_count += 1;
        if inner.violations.len() < MAX_VIOLATIONS {
            inner.violations.push(what.to_owned());
        }
    }

    /// A tool begins to run.
    pub fn ran(&self, tool: &str, tag: &str) {
        self.write(&json!({"event": "run", "tool": tool, "tag": tag}));
        let mut inner = self.inner();
        *inner.runs.entry(tool.to_owned()).or_default() += 1;
        if !tag.is_empty() {
            *inner.tags.entry(tag.to_owned()).or_default() += 1;
        }
    }

    /// A call came back with answers.
    pub fn round(&self) {
        self.inner().rounds += 1;
    }

    /// Something happened to the call of this tag.
    pub fn event(&self, what: &str, tool: &str, tag: &str) {
        self.write(&json!({"event": what, "tool": tool, "tag": tag}));
    }

    /// The tool `slow` was started, cancelled or finished.
    pub fn slow(&self, what: &'static str, tag: &str) {
        self.event(what, "slow", tag);
        *self.inner().slow.entry(what).or_default() += 1;
    }

    /// What was counted so far.
    pub fn counts(&self) -> Value {
        let inner = self.inner();
        json!({
            "runs": inner.runs,
            "tags": inner.tags,
            "rounds": inner.rounds,
            "slow": inner.slow,
            "violations": inner.violations,
            "violation_count": inner.violation_count,
        })
    }

    /// All tools, as a list.
    pub fn tools(&self) -> Value {
        let mut listed = catalog::tools(self.revision, self.inner().extra);
        if let Some(tools) = listed["tools"].as_array_mut().filter(|_| self.odd) {
            tools.extend(oddities::tools(self.revision));
        }
        listed
    }

    /// Remembers a conversation that is to be told of changes.
    pub fn join(&self, talk: &Arc<Talk>) {
        let mut inner = self.inner();
        inner.talks.retain(|talk| talk.strong_count() > 0);
        if inner.talks.len() < MAX_TALKS {
            inner.talks.push(Arc::downgrade(talk));
        }
    }

    /// Opens a listener; returns its number.
    pub fn listen(&self, id: &Value, filter: Value, out: Outlet) -> u64 {
        let serial = self.number();
        let mut inner = self.inner();
        if kept(inner.listeners.len(), "listener") {
            inner.listeners.push(Listener { serial, id: id.clone(), filter, out });
        }
        serial
    }

    /// Closes a listener.
    pub fn unlisten(&self, serial: u64) {
        self.inner().listeners.retain(|listener| listener.serial != serial);
    }

    /// Turns the tool `extra` on or off, and tells everyone who wants to know.
    pub fn change_tools(&self) {
        let mut inner = self.inner();
        inner.extra = !inner.extra;
        let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        for talk in inner.talks.iter().filter_map(Weak::upgrade).filter(|talk| talk.open()) {
            talk.tell(note.clone());
        }
        inner.tell_listeners(&note, |filter| filter["toolsListChanged"] == true);
    }

    /// Tells everyone who follows this resource that it changed.
    pub fn touch(&self, uri: &str) {
        let inner = self.inner();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}});
        for talk in inner.talks.iter().filter_map(Weak::upgrade).filter(|talk| talk.follows(uri)) {
            talk.tell(note.clone());
        }
        let follows = |filter: &Value| {
            filter["resourceSubscriptions"].as_array().is_some_and(|uris| uris.iter().any(|one| one == uri))
        };
        inner.tell_listeners(&note, follows);
    }

    /// Tells everyone who listens for this task how it is.
    pub fn task_changed(&self, id: &str, task: Value) {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": task});
        let wants =
            |filter: &Value| filter["taskIds"].as_array().is_some_and(|tasks| tasks.iter().any(|one| one == id));
        self.inner().tell_listeners(&note, wants);
    }

    /// Remembers a state that is given out; returns its number.
    pub fn issue(&self, issued: Issued) -> u64 {
        let serial = self.number();
        let mut inner = self.inner();
        if kept(inner.issued.len(), "state") {
            inner.issued.insert(serial, issued);
        }
        serial
    }

    /// Takes a state back: as it was before it came back.
    pub fn redeem(&self, serial: u64) -> Option<Issued> {
        let mut inner = self.inner();
        let issued = inner.issued.get_mut(&serial)?;
        let before = issued.clone();
        issued.used = true;
        Some(before)
    }

    /// Keeps a task.
    pub fn keep(&self, task: Arc<Task>) {
        let mut inner = self.inner();
        if kept(inner.tasks.len(), "task") {
            inner.tasks.insert(task.id.clone(), task);
        }
    }

    /// The task of this id.
    pub fn task(&self, id: &str) -> Option<Arc<Task>> {
        self.inner().tasks.get(id).cloned()
    }

    /// All tasks.
    pub fn tasks(&self) -> Vec<Arc<Task>> {
        self.inner().tasks.values().cloned().collect()
    }
}

/// Whether there is room for one more; if not, says so.
fn kept(count: usize, what: &str) -> bool {
    if count >= MAX_KEPT {
        eprintln!("no room for one more {what}");
    }
    count < MAX_KEPT
}

impl Inner {
    /// Tells listeners, each under its own subscription id.
    fn tell_listeners(&self, note: &Value, wants: impl Fn(&Value) -> bool) {
        for listener in self.listeners.iter().filter(|listener| wants(&listener.filter)) {
            let mut message = note.clone();
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] = listener.id.clone();
            if listener.out.try_send(Out::note(message)).is_err() {
                eprintln!("a listener does not read");
            }
        }
    }
}
