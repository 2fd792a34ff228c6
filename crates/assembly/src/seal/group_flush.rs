//! Flushes files to the disk a moment after they were written to, many writes at once, on a thread of its own.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// How long writes are gathered before they are flushed.
pub const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// The thread, once something is to be flushed.
#[derive(Debug, Default)]
pub(super) struct GroupFlush {
    sender: OnceLock<Option<Sender<Dirty>>>,
}

/// Whether a file has been written to since it was flushed last.
#[derive(Clone, Debug, Default)]
pub(super) struct DirtyFlag(Arc<AtomicBool>);

impl DirtyFlag {
    /// True from a write until its flush.
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
    /// The file was written to; it is on the disk a moment later.
    ///
    /// # Errors
    /// If the file cannot be handed over.
    pub(super) fn written(&self, file: &File, path: impl FnOnce() -> PathBuf, flag: &DirtyFlag) -> io::Result<()> {
        if flag.0.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let start = || {
            // It holds each file at most once, by its flag.
            let (sender, dirty) = mpsc::channel();
            let thread = std::thread::Builder::new().name("nonces".to_owned()).spawn(move || run(&dirty));
            let started = thread.inspect_err(|error| tracing::error!(%error, "nonces are not flushed to the disk"));
            started.ok().map(|_| sender)
        };
        let sender = self.sender.get_or_init(start);
        let dirty = Dirty { file: file.try_clone()?, path: path(), flag: flag.clone() };
        if sender.as_ref().is_none_or(|sender| sender.send(dirty).is_err()) {
            // Nobody flushes in groups, so that it is done here.
            flag.0.store(false, Ordering::Release);
            return file.sync_data();
        }
        Ok(())
    }
}

/// Gathers and flushes until nobody can write any more.
fn run(dirty: &Receiver<Dirty>) {
    while let Ok(first) = dirty.recv() {
        let (mut group, until) = (vec![first], Instant::now() + FLUSH_EVERY);
        while let Ok(next) = dirty.recv_timeout(until.saturating_duration_since(Instant::now())) {
            group.push(next);
        }
        for Dirty { file, path, flag } in group {
            // Whoever writes from here on has the file flushed once more.
            flag.0.store(false, Ordering::Release);
            if let Err(error) = file.sync_data() {
                tracing::error!(file = %path.display(), %error, "nonces may be lost in a power cut");
            }
        }
    }
}
