//! Redacts large messages on several threads before their turn.
//!
//! Redaction takes most of the time of a large message and depends on its bytes alone, whereas numbers, commitments and
//! the chain depend on earlier entries. Therefore only the redaction leaves the thread that writes the tape.

use super::recorder_input::{QueuedInput, RecorderInput};
use crate::redact::{Redaction, Redactor};
use bytes::Bytes;
use signalbox_engine::Fact;
use signalbox_engine::fact::Point;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

/// Smallest message that is worth the way to another thread, in bytes.
const LARGE: usize = 8 << 10;
/// Maximum number of inputs, and of bytes of messages, per pass.
const MAX_INPUTS: usize = 256;
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of threads, including the one that writes the tape.
const MAX_THREADS: usize = 4;

static THREADS: LazyLock<usize> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    cores.min(MAX_THREADS)
});

/// A message to redact, and its place among the inputs.
struct Job<'a> {
    place: usize,
    bytes: &'a Bytes,
    redacted: OnceLock<Redaction>,
}

/// Redacts the large messages among the first inputs. Returns the number of inputs it has looked at. A single large
/// message is left to its turn.
pub(crate) fn redact_ahead(ready: &mut VecDeque<QueuedInput>, redactor: &Redactor, max_body: usize) -> usize {
    let mut bytes = 0;
    let fits = |queued: &&QueuedInput| {
        bytes += queued.weight;
        bytes <= MAX_BYTES
    };
    let count = ready.iter().take(MAX_INPUTS).take_while(fits).count().max(1);
    if *THREADS < 2 {
        return count;
    }
    let done: Vec<(usize, Redaction)> = {
        let large = ready.iter().take(count).enumerate();
        let jobs: Vec<Job<'_>> = large.filter_map(|(place, queued)| job(place, &queued.input, max_body)).collect();
        if jobs.len() < 2 {
            return count;
        }
        run(&jobs, redactor);
        jobs.into_iter().filter_map(|job| Some((job.place, job.redacted.into_inner()?))).collect()
    };
    for (place, redacted) in done {
        if let Some(queued) = ready.get_mut(place) {
            queued.redacted = Some(redacted);
        }
    }
    count
}

/// Returns the job for a large incoming message. The outgoing image is nearly always equal and redacted with it.
fn job(place: usize, input: &RecorderInput, max_body: usize) -> Option<Job<'_>> {
    let RecorderInput::Fact(Fact::Message(message)) = input else { return None };
    let came_in = matches!(message.point, Point::ClientIn | Point::BackendIn);
    let is_large = (LARGE..=max_body).contains(&message.bytes.len());
    (came_in && is_large).then(|| Job { place, bytes: &message.bytes, redacted: OnceLock::new() })
}

/// Runs all jobs, on this thread and on others.
fn run(jobs: &[Job<'_>], redactor: &Redactor) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let _ = job.redacted.set(redactor.message(job.bytes, None));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..(*THREADS).min(jobs.len()) {
            let thread = std::thread::Builder::new().name("tape-redact".to_owned());
            // If no thread can be started, this one does all jobs.
            let _ = thread.spawn_scoped(scope, work);
        }
        work();
    });
}
