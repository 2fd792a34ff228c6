//! Copies bytes from a reader to a writer unchanged.

use crate::tap::{Chunk, Feed, TapSide};
use bytes::Bytes;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Size of a read, which is the capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// The end that ended a copy.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The reader has ended.
    Reader,
    /// The writer is closed.
    Writer,
}

impl End {
    pub(super) fn is_reader(self) -> bool {
        self == Self::Reader
    }
}

/// Progress of a copy.
#[derive(Debug, Default)]
pub(super) struct CopyProgress {
    moved: AtomicU64,
    writing: AtomicBool,
}

impl CopyProgress {
    /// Returns the number of reads.
    pub(super) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Acquire)
    }

    /// Returns `true` while a write is in progress.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.load(Ordering::Acquire)
    }
}

/// Copies until either end closes, and closes both. Each chunk is fed before it is written, so that its effects at the
/// other end are never recorded before it.
pub(super) fn copy(
    mut from: impl Read,
    mut to: impl Write,
    side: TapSide,
    feed: Option<&Feed<Chunk>>,
    progress: &CopyProgress,
) -> End {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return End::Reader,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return End::Reader,
        };
        let chunk = buffer.get(..read).unwrap_or_default();
        progress.writing.store(true, Ordering::Release);
        progress.moved.fetch_add(1, Ordering::AcqRel);
        if let Some(feed) = feed {
            feed.push(Instant::now(), Chunk { side, bytes: Bytes::copy_from_slice(chunk) });
        }
        if to.write_all(chunk).and_then(|()| to.flush()).is_err() {
            return End::Writer;
        }
        progress.writing.store(false, Ordering::Release);
    }
}
