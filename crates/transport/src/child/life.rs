//! The life of a child, from its start to the end of its last descendant.
//!
//! One task owns the process. It ends when the process exits, when a pipe breaks, or when the link is closed or
//! dropped. It reports the end once, and then ends the whole group.

use super::group::{Group, KILLED_WAIT, Reaper, Registration};
use super::reader::Reader;
use super::spawn::SpawnError;
use super::stderr::{Follower, LastWords};
use super::writer::Writer;
use super::{ChildCounts, ChildLink, ChildSpec};
use crate::send_queue::{QUEUE, SendQueue, closed};
use rustix::process::Signal;
use signalbox_runtime::LinkEvents;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Time for a child to exit after one of its pipes has broken, so that its exit code can be reported.
const EXIT_WAIT: Duration = Duration::from_secs(1);
/// After the exit, time without output before its pipes are dropped: a descendant may hold them open for ever.
const DRAIN_IDLE: Duration = Duration::from_millis(250);
/// After the exit, maximum time to read its pipes.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// Interval at which survivors of the leader are checked.
const SURVIVOR_POLL: Duration = Duration::from_millis(20);

/// Starts the tasks of a process that was just spawned.
pub(super) fn begin(
    mut child: Child,
    spec: &ChildSpec,
    reaper: &Reaper,
    counts: &Arc<ChildCounts>,
    events: Arc<dyn LinkEvents>,
) -> Result<ChildLink, SpawnError> {
    let started = child.id().and_then(|pid| Some((pid, Group::led_by(pid)?)));
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some((pid, group)), (Some(stdin), Some(stdout), Some(stderr))) = (started, pipes) else {
        let why = "it has no process id or no pipes".to_owned();
        return Err(SpawnError::Other { program: spec.program.clone(), why });
    };
    let registration = reaper.register(pid, Arc::new(group));
    tracing::debug!(backend = %spec.name, pid, program = %spec.program, "a child was started");

    let (sender, queue) = mpsc::channel(QUEUE);
    let (close, closing) = watch::channel(false);
    let waiting = Arc::new(AtomicUsize::new(0));
    let words = Arc::new(LastWords::default());
    let progress = Arc::new(AtomicU64::new(0));
    let writer = Writer {
        name: Arc::clone(&spec.name),
        queue,
        waiting: Arc::clone(&waiting),
        closing: closing.clone(),
        events: Arc::clone(&events),
        counts: Arc::clone(counts),
    };
    let reader = Reader::new(spec, &events, counts, &progress);
    let follower = Follower::new(&spec.name, &words, counts, &progress);
    let ended = Arc::new(OnceLock::new());
    let life = Life {
        registration,
        child,
        name: Arc::clone(&spec.name),
        grace: spec.kill_grace,
        closing,
        writer: OwnedTask::spawn(writer.run(stdin)),
        reader: OwnedTask::spawn(reader.run(stdout)),
        follower: OwnedTask::spawn(follower.run(stderr)),
        progress,
        words,
        ended: Arc::clone(&ended),
        events,
    };
    tokio::spawn(life.run());
    let (name, counts) = (Arc::clone(&spec.name), Arc::clone(counts));
    let queue = SendQueue { closing: close, queue: sender, waiting, ended };
    Ok(ChildLink { name, pid, queue, counts })
}

/// Event that ended a child's use.
enum Ending {
    Exited(io::Result<ExitStatus>),
    PipeBroke(&'static str),
    Closed,
}

/// State of the owning task.
struct Life {
    /// First field, so that it is dropped first: the group must be killed before its leader is reaped.
    registration: Registration,
    child: Child,
    name: Arc<str>,
    grace: Duration,
    closing: watch::Receiver<bool>,
    writer: OwnedTask,
    reader: OwnedTask,
    follower: OwnedTask,
    progress: Arc<AtomicU64>,
    words: Arc<LastWords>,
    ended: Arc<OnceLock<String>>,
    events: Arc<dyn LinkEvents>,
}

impl Life {
    async fn run(mut self) {
        let ending = self.ending().await;
        let (status, otherwise) = match ending {
            Ending::Exited(status) => (Some(status), None),
            Ending::PipeBroke(what) => {
                let status = timeout(EXIT_WAIT, self.child.wait()).await.ok();
                let otherwise = status.is_none().then_some(what);
                (status, otherwise)
            }
            Ending::Closed => (self.end_leader().await, Some("was closed by the gateway")),
        };
        if status.is_some() {
            self.drain().await;
        }
        // After the report, no event may be posted.
        self.reader.stop().await;
        self.writer.stop().await;
        self.report(match (otherwise, &status) {
            (Some(why), _) => why.to_owned(),
            (None, Some(status)) => describe(status, self.words.quote()),
            (None, None) => "ended".to_owned(),
        });
        if status.is_none() {
            self.end_leader().await;
        }
        self.end_survivors().await;
    }

    async fn ending(&mut self) -> Ending {
        tokio::select! {
            biased;
            () = closed(&mut self.closing) => Ending::Closed,
            status = self.child.wait() => Ending::Exited(status),
            () = self.reader.done() => Ending::PipeBroke("closed its standard output"),
            () = self.writer.done() => Ending::PipeBroke("closed its standard input"),
        }
    }

    /// Waits for output that the child wrote before its end.
    async fn drain(&mut self) {
        let limit = Instant::now() + DRAIN_MAX;
        loop {
            let before = self.progress.load(Ordering::Relaxed);
            let both = async {
                self.reader.done().await;
                self.follower.done().await;
            };
            let ended = timeout(DRAIN_IDLE, both).await.is_ok();
            let silent = self.progress.load(Ordering::Relaxed) == before;
            if ended || silent || Instant::now() >= limit {
                return;
            }
        }
    }

    /// Reports the end. Nothing else does.
    fn report(&self, why: String) {
        tracing::debug!(backend = %self.name, %why, "a child has ended");
        // Set first, so that a receiver of the event also sees the end on the link.
        let _ = self.ended.set(why.clone());
        self.events.last_words(self.words.lines());
        self.events.lost(why);
    }

    /// Ends the leader. Its input is closed or about to be, so it may exit by itself; otherwise the whole group is
    /// signalled.
    async fn end_leader(&mut self) -> Option<io::Result<ExitStatus>> {
        for (signal, wait) in [(None, self.grace), (Some(Signal::TERM), self.grace), (Some(Signal::KILL), KILLED_WAIT)]
        {
            if let Some(signal) = signal {
                self.registration.group().signal(signal);
            }
            if let Ok(status) = timeout(wait, self.child.wait()).await {
                return Some(status);
            }
        }
        None
    }

    /// Ends the processes that the leader left behind.
    async fn end_survivors(&self) {
        let group = self.registration.group();
        for (signal, wait) in [(Signal::TERM, self.grace), (Signal::KILL, KILLED_WAIT)] {
            if !group.survives() {
                return;
            }
            group.signal(signal);
            let limit = Instant::now() + wait;
            while group.survives() && Instant::now() < limit {
                sleep(SURVIVOR_POLL).await;
            }
        }
        if group.survives() {
            // Only unreaped zombies and processes stuck in the kernel outlive SIGKILL.
            tracing::info!(backend = %self.name, "processes of a child's group remain although they were killed");
            group.forget();
        }
    }
}

fn describe(status: &io::Result<ExitStatus>, last_words: Option<String>) -> String {
    let how = match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => format!("ended ({status})"),
        },
        Err(error) => format!("ended, but its exit code cannot be read ({error})"),
    };
    match last_words {
        Some(words) => format!("{how}: {words}"),
        None => how,
    }
}

/// A spawned task. It can be awaited again after its end, and is aborted when dropped.
#[derive(Debug)]
pub(super) struct OwnedTask(Option<JoinHandle<()>>);

impl OwnedTask {
    pub(super) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(tokio::spawn(future)))
    }

    /// Waits until the task has ended, successfully or not. Cancel-safe.
    pub(super) async fn done(&mut self) {
        if let Some(handle) = &mut self.0 {
            // A task that panicked has ended too; the runtime has printed the panic to stderr.
            let _ = handle.await;
            self.0 = None;
        }
    }

    /// Aborts the task and waits until it has ended.
    pub(super) async fn stop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.abort();
        }
        self.done().await;
    }
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.abort();
        }
    }
}
