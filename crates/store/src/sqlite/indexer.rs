//! Indexes appended entries on a thread and a connection of its own.
//!
//! Reading entries and splitting words needs no lock. Only the transactions that add to the index block the writer, and
//! they are short (`index::slice`). The indexer starts none while the writer waits: SQLite would let the writer sleep
//! for up to 100 ms at a time, and the next short transaction would be under way when it wakes.

use super::SqliteFailure;
use super::connection::{SqliteFile, open};
use super::index::{self, Extent};
use crate::body_codec::BodyCodec;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::record::StoreError;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Maximum number of tapes of dead writers that one indexer adopts.
const MAX_OTHERS: i64 = 100;

/// Handle of the indexer thread.
pub struct Indexer {
    shared: Arc<IndexerState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct IndexerState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// True if there may be entries to index.
    woken: bool,
    closed: bool,
    /// True while the writer is in a transaction, or about to begin one.
    writing: bool,
    /// Error of the last run, until the writer has reported it.
    failure: Option<StoreError>,
    /// Last indexed position of the writer's tape.
    indexed: u64,
}

impl IndexerState {
    fn is_closed(&self) -> bool {
        self.state.lock().unpoisoned().closed
    }

    /// Waits until the writer needs no lock.
    fn give_way(&self) {
        let state = self.state.lock().unpoisoned();
        drop(self.changed.wait_while(state, |state| state.writing && !state.closed).unpoisoned());
    }
}

/// Guard that keeps the indexer from starting a transaction.
pub struct WriteTurn(Arc<IndexerState>);

impl Drop for WriteTurn {
    fn drop(&mut self) {
        self.0.state.lock().unpoisoned().writing = false;
        self.0.changed.notify_all();
    }
}

impl Indexer {
    /// Starts the thread for a tape.
    pub fn start(place: SqliteFile, tape: i64) -> std::io::Result<Self> {
        let shared = Arc::new(IndexerState::default());
        let task = Task { place, tape, shared: Arc::clone(&shared), orphans: None };
        let thread = std::thread::Builder::new().name("tape-index".to_owned()).spawn(move || task.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Wakes the thread to look for entries to index.
    pub fn wake(&self) {
        self.shared.state.lock().unpoisoned().woken = true;
        self.shared.changed.notify_all();
    }

    /// Reports the error of the last run, once.
    ///
    /// # Errors
    /// If the last run failed.
    pub fn check(&self) -> Result<(), StoreError> {
        self.shared.state.lock().unpoisoned().failure.take().map_or(Ok(()), Err)
    }

    /// Returns the last indexed position of the tape.
    pub fn indexed(&self) -> u64 {
        self.shared.state.lock().unpoisoned().indexed
    }

    /// Makes the indexer yield to a transaction of the writer.
    pub fn write_turn(&self) -> WriteTurn {
        self.shared.state.lock().unpoisoned().writing = true;
        WriteTurn(Arc::clone(&self.shared))
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.shared.state.lock().unpoisoned().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// State of the indexer thread.
struct Task {
    place: SqliteFile,
    tape: i64,
    shared: Arc<IndexerState>,
    /// Tapes whose writers died before they were indexed; `None` until they have been looked up.
    orphans: Option<Vec<i64>>,
}

impl Task {
    fn run(mut self) {
        while self.wait() {
            if let Err(failure) = self.index() {
                let failure = self.place.with_place::<()>(Err(failure)).err();
                self.shared.state.lock().unpoisoned().failure = failure;
            }
        }
    }

    /// Waits for work. Returns false if the writer is gone.
    fn wait(&self) -> bool {
        let state = self.shared.state.lock().unpoisoned();
        let idle = |state: &mut State| !state.woken && !state.closed;
        let mut state = self.shared.changed.wait_while(state, idle).unpoisoned();
        state.woken = false;
        !state.closed
    }

    /// Indexes until it has caught up. Opens a new connection each time, so that an idle tape holds none.
    fn index(&mut self) -> Result<(), SqliteFailure> {
        let mut connection = open(&self.place)?;
        let mut codec = BodyCodec::new();
        loop {
            let progress = index::progress(&connection, self.tape)?;
            self.shared.state.lock().unpoisoned().indexed = progress.indexed;
            if progress.behind() < index::WORTH || self.shared.is_closed() {
                break;
            }
            index::slice(&mut connection, &mut codec, self.tape, Extent::Groups(&|| self.shared.give_way()))?;
        }
        let orphans = match &mut self.orphans {
            Some(orphans) => orphans,
            none => none.insert(index::waiting(&connection, self.tape, MAX_OTHERS)?),
        };
        while let Some(orphan) = orphans.last()
            && !self.shared.is_closed()
        {
            if !index::slice(&mut connection, &mut codec, *orphan, Extent::Groups(&|| self.shared.give_way()))? {
                orphans.pop();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use bytes::Bytes;
    use signalbox_engine::fact::Point;
    use signalbox_engine::record::{
        Body, Content, Entry, MessageEntry, MessageKind, TapeInfo, TapeKind, TapeStore as _,
    };
    use std::path::Path;
    use std::time::Duration;

    const TAPE: i64 = 1;

    /// Makes a store with one tape of so many messages, none of them indexed.
    fn unindexed(folder: &Path, messages: u64) -> SqliteFile {
        let path = folder.join("tapes.db");
        let store = SqliteStore::open(&path).unwrap();
        let info = TapeInfo {
            id: "tape".into(),
            kind: TapeKind::Serve,
            target: "signalbox.toml".into(),
            started: 0,
            ended: None,
            program: "0.1.0".into(),
            redaction: Vec::new(),
            sampling: "all".into(),
            parent: None,
            seal: None,
        };
        let message = |seq: u64| {
            let body = Body::Whole(Bytes::from(format!("message number {seq}")));
            let message = MessageEntry::new(Point::ClientIn, MessageKind::Raw, 0, body);
            Entry::new(seq, seq, "local".into(), Content::Message(message))
        };
        let entries: Vec<Entry> = (1..=messages).map(message).collect();
        store.begin(&info).unwrap().append(&entries, false).unwrap();
        SqliteFile::new(&path, Duration::from_secs(5))
    }

    /// Waits until the index has come this far.
    fn await_indexed(place: &SqliteFile, least: u64) {
        let connection = open(place).unwrap();
        let begun = std::time::Instant::now();
        while index::progress(&connection, TAPE).unwrap().indexed < least {
            assert!(begun.elapsed() < Duration::from_secs(60), "the tape is not indexed");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    #[test]
    fn an_indexer_catches_up_on_a_connection_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let place = unindexed(folder.path(), 3 * index::WORTH);
        let indexer = Indexer::start(place.clone(), TAPE).unwrap();
        indexer.wake();
        await_indexed(&place, 2 * index::WORTH);
        indexer.check().unwrap();
    }

    #[test]
    fn an_indexer_begins_no_transaction_during_the_turn_of_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let place = unindexed(folder.path(), 3 * index::WORTH);
        let indexer = Indexer::start(place.clone(), TAPE).unwrap();
        let turn = indexer.write_turn();
        indexer.wake();
        std::thread::park_timeout(Duration::from_millis(300));
        assert_eq!(index::progress(&open(&place).unwrap(), TAPE).unwrap().indexed, 0);
        drop(turn);
        await_indexed(&place, 2 * index::WORTH);
    }

    #[test]
    fn an_indexer_ends_during_the_turn_of_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let place = unindexed(folder.path(), 3 * index::WORTH);
        let indexer = Indexer::start(place.clone(), TAPE).unwrap();
        let _turn = indexer.write_turn();
        indexer.wake();
        std::thread::park_timeout(Duration::from_millis(50));
        drop(indexer);
    }
}
