//! Copying bytes from one end to another, exactly as they come.

use crate::tap::{Chunk, Feed, Side};
use bytes::Bytes;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// What is read at once: as much as a pipe holds.
const CHUNK: usize = 64 * 1024;

/// Which end ended a copy.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// There is nothing more to read.
    Reader,
    /// Nobody takes what is written.
    Writer,
}

impl End {
    pub(super) fn is_reader(self) -> bool {
        self == Self::Reader
    }
}

/// How far a copy is.
#[derive(Debug, Default)]
pub(super) struct Pace {
    moved: AtomicU64,
    writing: AtomicBool,
}

impl Pace {
    /// How often something was read.
    pub(super) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Acquire)
    }

    /// True while the other end does not take what there is.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.load(Ordering::Acquire)
    }
}

/// Copies until one end ends, and closes both. Each chunk is fed before it is written: what it sets off at the other end
/// must not be heard of before it.
pub(super) fn copy(
    mut from: impl Read,
    mut to: impl Write,
    side: Side,
    feed: Option<&Feed<Chunk>>,
    pace: &Pace,
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
        pace.writing.store(true, Ordering::Release);
        pace.moved.fetch_add(1, Ordering::AcqRel);
        if let Some(feed) = feed {
            feed.push(Instant::now(), Chunk { side, bytes: Bytes::copy_from_slice(chunk) });
        }
        if to.write_all(chunk).and_then(|()| to.flush()).is_err() {
            return End::Writer;
        }
        pace.writing.store(false, Ordering::Release);
    }
}
