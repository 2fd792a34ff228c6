//! Flushes files to disk shortly after writes, many writes at once, on a thread of its own.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Time for which writes are gathered before a flush.
pub const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Sender to the thread, which starts at the first write.
#[derive(Debug, Default)]
pub(super) struct GroupFlush {
    sender: OnceLock<Option<Sender<Dirty>>>,
}

/// Flag that a file has unflushed writes.
#[derive(Clone, Debug, Default)]
pub(super) struct DirtyFlag(Arc<AtomicBool>);

impl DirtyFlag {
    /// Returns `true` from a write until its flush.
    #[cfg(test)]
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

struct Dirty {
    file: File,
    path: PathBuf,
    flag: DirtyFlag,
}

impl GroupFlush {
    /// Schedules a flush of a file that was written to.
    ///
    /// # Errors
    /// If the file handle cannot be duplicated, or a direct flush fails.
    pub(super) fn written(&self, file: &File, path: impl FnOnce() -> PathBuf, flag: &DirtyFlag) -> io::Result<()> {
        if flag.0.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let start = || {
            // The flags bound the channel: it holds each file at most once.
            let (sender, dirty) = mpsc::channel();
            let thread = std::thread::Builder::new().name("nonces".to_owned()).spawn(move || run(&dirty));
            let started = thread.inspect_err(|error| tracing::error!(%error, "nonces are not flushed to the disk"));
            started.ok().map(|_| sender)
        };
        let sender = self.sender.get_or_init(start);
        let dirty = Dirty { file: file.try_clone()?, path: path(), flag: flag.clone() };
        if sender.as_ref().is_none_or(|sender| sender.send(dirty).is_err()) {
            // The thread is not running, so flush here.
            flag.0.store(false, Ordering::Release);
            return file.sync_data();
        }
        Ok(())
    }
}

/// Gathers and flushes files until all senders are gone.
fn run(dirty: &Receiver<Dirty>) {
    while let Ok(first) = dirty.recv() {
        let (mut group, until) = (vec![first], Instant::now() + FLUSH_EVERY);
        while let Ok(next) = dirty.recv_timeout(until.saturating_duration_since(Instant::now())) {
            group.push(next);
        }
        for Dirty { file, path, flag } in group {
            // Cleared before the flush, so that a later write schedules another.
            flag.0.store(false, Ordering::Release);
            if let Err(error) = file.sync_data() {
                tracing::error!(file = %path.display(), %error, "nonces may be lost in a power cut");
            }
        }
    }
}
