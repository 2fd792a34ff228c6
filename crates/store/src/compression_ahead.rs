//! Compresses the large bodies of a batch on several threads before its transaction begins.

use crate::body_codec::{Contexts, EncodedBody, MAX_SMALL};
use bytes::Bytes;
use foldhash::HashMap;
use signalbox_engine::record::{Body, Content, Entry};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

/// Maximum number of threads, including the one that writes the tape.
const MAX_THREADS: usize = 4;

static THREADS: LazyLock<usize> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    cores.min(MAX_THREADS)
});

/// Address and length of a body in memory, which identify it while its batch is borrowed.
type Place = (usize, usize);

/// Compressed bodies of the batch that is being written.
#[derive(Default)]
pub struct CompressionAhead {
    /// Compression contexts of the other threads.
    contexts: Vec<Contexts>,
    done: HashMap<Place, EncodedBody>,
}

impl CompressionAhead {
    /// Compresses the large bodies of a batch, unless there are too few to share.
    pub fn run(&mut self, entries: &[Entry], own: &mut Contexts) {
        self.done.clear();
        let jobs: Vec<(&Bytes, OnceLock<EncodedBody>)> =
            entries.iter().filter_map(large).map(|body| (body, OnceLock::new())).collect();
        if jobs.len() < 2 || *THREADS < 2 {
            return;
        }
        self.contexts.resize_with(*THREADS - 1, Contexts::plain);
        let next = AtomicUsize::new(0);
        let work = |contexts: &mut Contexts| {
            while let Some((body, encoded)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let _ = encoded.set(contexts.encode_large(body));
            }
        };
        std::thread::scope(|scope| {
            for contexts in self.contexts.iter_mut().take(jobs.len() - 1) {
                let thread = std::thread::Builder::new().name("tape-compress".to_owned());
                // If no thread can be started, this one compresses everything.
                let _ = thread.spawn_scoped(scope, || work(contexts));
            }
            work(own);
        });
        self.done = jobs.into_iter().filter_map(|(body, encoded)| Some((place(body), encoded.into_inner()?))).collect();
    }

    /// Removes and returns the encoded form of a body, if it was compressed.
    pub fn take(&mut self, body: &Bytes) -> Option<EncodedBody> {
        if self.done.is_empty() { None } else { self.done.remove(&place(body)) }
    }

    /// Forgets the batch, whose bodies may be freed now.
    pub fn clear(&mut self) {
        self.done.clear();
    }
}

fn large(entry: &Entry) -> Option<&Bytes> {
    match &entry.content {
        Content::Message(message) => match &message.body {
            Body::Whole(bytes) if bytes.len() > MAX_SMALL => Some(bytes),
            _ => None,
        },
        _ => None,
    }
}

fn place(body: &Bytes) -> Place {
    (body.as_ptr() as usize, body.len())
}
