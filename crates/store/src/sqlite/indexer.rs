//! Indexes what a writer has appended, on a thread and a connection of its own.
//!
//! Reading entries and cutting words needs no lock. Only the transactions that add to the index keep the writer waiting, and
//! these are short (`index::slice`).

use super::connection::{SqliteFile, open};
use super::{Failure, index};
use crate::body_codec::BodyCodec;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::record::StoreError;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// How many other tapes are looked after by one writer that finds them not indexed.
const MAX_OTHERS: i64 = 100;

/// The thread, and what it and its writer tell each other.
pub struct Indexer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// There is something to look at.
    woken: bool,
    closed: bool,
    /// Why indexing failed; told to the writer once.
    failure: Option<StoreError>,
    behind: u64,
}

impl Indexer {
    /// Starts the thread for a tape.
    pub fn start(place: SqliteFile, tape: i64) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let task = Task { place, tape, shared: Arc::clone(&shared), orphans: None };
        let thread = std::thread::Builder::new().name("tape-index".to_owned()).spawn(move || task.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Has the thread look for entries to index.
    pub fn wake(&self) {
        self.shared.state.lock().unpoisoned().woken = true;
        self.shared.changed.notify_all();
    }

    /// Reports, once, why the last look failed.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self) -> Result<(), StoreError> {
        self.shared.state.lock().unpoisoned().failure.take().map_or(Ok(()), Err)
    }

    /// How many entries it was behind when it looked last.
    pub fn behind(&self) -> u64 {
        self.shared.state.lock().unpoisoned().behind
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

/// What the thread works on.
struct Task {
    place: SqliteFile,
    tape: i64,
    shared: Arc<Shared>,
    /// Tapes whose writers died before they were indexed; `None` until they have been looked up.
    orphans: Option<Vec<i64>>,
}

impl Task {
    fn run(mut self) {
        while self.wait() {
            if let Err(failure) = self.index() {
                let failure = self.place.told::<()>(Err(failure)).err();
                self.shared.state.lock().unpoisoned().failure = failure;
            }
        }
    }

    /// Waits until there is something to look at. False if the writer has gone.
    fn wait(&self) -> bool {
        let state = self.shared.state.lock().unpoisoned();
        let idle = |state: &mut State| !state.woken && !state.closed;
        let mut state = self.shared.changed.wait_while(state, idle).unpoisoned();
        state.woken = false;
        !state.closed
    }

    fn is_closed(&self) -> bool {
        self.shared.state.lock().unpoisoned().closed
    }

    /// Indexes until it has caught up. The connection is opened anew each time, so that an idle tape holds none.
    fn index(&mut self) -> Result<(), Failure> {
        let mut connection = open(&self.place)?;
        let mut codec = BodyCodec::new();
        loop {
            let behind = index::behind(&connection, self.tape)?;
            self.shared.state.lock().unpoisoned().behind = behind;
            if behind < index::WORTH || self.is_closed() {
                break;
            }
            index::slice(&mut connection, &mut codec, self.tape, false)?;
        }
        let orphans = match &mut self.orphans {
            Some(orphans) => orphans,
            none => none.insert(index::waiting(&connection, self.tape, MAX_OTHERS)?),
        };
        while let Some(orphan) = orphans.last()
            && !self.shared.state.lock().unpoisoned().closed
        {
            if !index::slice(&mut connection, &mut codec, *orphan, false)? {
                orphans.pop();
            }
        }
        Ok(())
    }
}
