//! A tape to read: one of the store, or a file.

mod read_ahead;

use crate::analysis::Pages;
use crate::seal::{Anchors, InclusionProof, NoProof, ProofMaker, Report, Verifier};
use crate::{Bodies, Select, TapeFile, TapeFileError};
use read_ahead::read_ahead;
use signalbox_engine::record::{Entry, Query, SessionInfo, StoreError, TapeInfo, TapeStore};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Most entries of one exchange that are read.
const MOST_OF_ONE: usize = 10_000;
/// Most bytes of bodies that are remembered to verify a file, in which others may be like them.
const MOST_VERIFIED: usize = 512 << 20;
/// The first version of files that are sealed.
const SEALED_VERSION: u32 = 3;

/// True if what the user calls a tape is a file: a name with a dot or a slash, or of a file that is there.
#[must_use]
pub fn is_file(name: &str) -> bool {
    name.contains(['/', '.']) || Path::new(name).is_file()
}

/// A tape that can be read from its beginning, again and again.
pub enum TapeSource {
    /// In the store.
    Stored(Arc<dyn TapeStore>, TapeInfo),
    /// A file.
    File(Box<TapeFile<BufReader<File>>>),
}

impl TapeSource {
    /// Opens a tape file.
    ///
    /// # Errors
    /// If it cannot be read or is not a tape.
    pub fn open(path: &Path) -> Result<Self, TapeFileError> {
        Ok(Self::File(Box::new(TapeFile::open(BufReader::new(File::open(path)?))?)))
    }

    /// Its head.
    #[must_use]
    pub fn info(&self) -> &TapeInfo {
        match self {
            Self::Stored(_, tape) => tape,
            Self::File(file) => file.info(),
        }
    }

    /// Its sessions.
    ///
    /// # Errors
    /// If the store or the file fails.
    pub fn sessions(&mut self) -> Result<Vec<(u64, SessionInfo)>, StoreError> {
        match self {
            Self::Stored(store, tape) => store.sessions(&tape.id),
            Self::File(file) => Ok(file.all_sessions()?),
        }
    }

    /// What is missing of a file that is not whole.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        match self {
            Self::Stored(..) => None,
            Self::File(file) => file.missing(),
        }
    }

    /// Its entries in order, or those of one session, with their bodies whole.
    pub fn entries(&mut self, session: Option<u64>) -> Box<dyn Iterator<Item = Result<Entry, StoreError>> + '_> {
        match self {
            Self::Stored(store, tape) => {
                let query = Query { tape: Some(tape.id.clone()), session, ..Query::default() };
                Box::new(Pages::new(&**store, query))
            }
            Self::File(file) => {
                let mut bodies = Bodies::default();
                let read = file.entries(Select { session, ..Select::default() });
                Box::new(read.map(move |entry| entry.map(|entry| bodies.whole(entry)).map_err(StoreError::from)))
            }
        }
    }

    /// Makes the chain of a sealed tape again, and says what it proves. Progress is told entry by entry.
    pub fn verify(&mut self, progress: impl FnMut()) -> Report {
        self.verify_against(Anchors::default(), progress)
    }

    /// The same, compared with signed heads of the tape that were kept elsewhere.
    pub fn verify_against(&mut self, anchors: Anchors, mut progress: impl FnMut()) -> Report {
        let mut verifier = Verifier::against(self.info(), anchors);
        match self {
            Self::Stored(store, tape) => {
                let query = Query { tape: Some(tape.id.clone()), ..Query::default() };
                let (mut last, store) = (None, &**store);
                let read = |give: &mut dyn FnMut(Entry) -> bool| {
                    Pages::new(store, query).try_for_each(|entry| match entry {
                        Ok(entry) => {
                            if give(entry) {
                                Ok(())
                            } else {
                                Err(None)
                            }
                        }
                        Err(error) => Err(Some(error)),
                    })
                };
                let read = read_ahead(read, |entry| {
                    progress();
                    last = Some(entry.seq);
                    verifier.push(entry)
                });
                match read {
                    // Which of the page cannot be read?
                    Ok(Err(Some(_))) => one_by_one(store, &tape.id, last, &mut verifier),
                    Ok(_) => {}
                    Err(error) => verifier.unreadable(error.to_string()),
                }
            }
            Self::File(file) => {
                let mut bodies = Bodies::remembering(MOST_VERIFIED);
                let version = file.version();
                let read = |give: &mut dyn FnMut(Entry) -> bool| file.audit(&mut |entry| give(bodies.whole(entry)));
                let read = read_ahead(read, |entry| {
                    progress();
                    verifier.push(entry)
                });
                match read {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => verifier.unreadable(error.to_string()),
                    Err(error) => verifier.unreadable(error.to_string()),
                }
                if version < SEALED_VERSION {
                    verifier.unreadable("no file of this version is sealed");
                }
            }
        }
        verifier.finish()
    }

    /// The proof that this entry is on the tape, for somebody who does not get the tape.
    ///
    /// # Errors
    /// If there is none, or the tape cannot be read.
    pub fn prove(&mut self, entry: u64) -> Result<InclusionProof, NoProof> {
        let mut maker = ProofMaker::new(self.info(), entry)?;
        for entry in self.entries(None) {
            if !maker.push(entry?)? {
                break;
            }
        }
        maker.finish()
    }

    /// The entries after this place, with bodies as they are kept: a caller that reads in pieces makes them whole across the
    /// pieces ([`Bodies`]).
    pub fn kept_after(&mut self, after: u64) -> Box<dyn Iterator<Item = Result<Entry, StoreError>> + '_> {
        match self {
            Self::Stored(store, tape) => {
                let query = Query { tape: Some(tape.id.clone()), after: Some(after), ..Query::default() };
                Box::new(Pages::new(&**store, query))
            }
            Self::File(file) => {
                let select = Select { after: Some(after), ..Select::default() };
                Box::new(file.entries(select).map(|entry| entry.map_err(StoreError::from)))
            }
        }
    }

    /// The entries after this place that were added since the tape was opened. A file gets none.
    pub fn later(
        &mut self,
        session: Option<u64>,
        after: Option<u64>,
    ) -> Box<dyn Iterator<Item = Result<Entry, StoreError>> + '_> {
        match self {
            Self::Stored(store, tape) => {
                let query = Query { tape: Some(tape.id.clone()), session, after, ..Query::default() };
                Box::new(Pages::new(&**store, query))
            }
            Self::File(_) => Box::new(std::iter::empty()),
        }
    }

    /// True once nothing is added any more.
    ///
    /// # Errors
    /// If the store fails.
    pub fn has_ended(&self) -> Result<bool, StoreError> {
        match self {
            Self::Stored(store, tape) => Ok(store.tape(&tape.id)?.ended.is_some()),
            Self::File(_) => Ok(true),
        }
    }

    /// The entries of one exchange, with their bodies whole.
    ///
    /// # Errors
    /// If the store or the file fails.
    pub fn exchange(&mut self, number: u64) -> Result<Vec<Entry>, StoreError> {
        match self {
            Self::Stored(store, tape) => {
                let query = Query {
                    tape: Some(tape.id.clone()),
                    exchange: Some(number),
                    limit: Some(MOST_OF_ONE),
                    ..Query::default()
                };
                Ok(store.find(&query)?.hits.into_iter().map(|hit| hit.entry).collect())
            }
            Self::File(_) => {
                let all = self.entries(None);
                let of = all.filter(|entry| entry.as_ref().map_or(true, |entry| entry.exchange == Some(number)));
                of.take(MOST_OF_ONE).collect()
            }
        }
    }
}

/// Most places after the last entry that could be read at which others are looked for.
const MOST_TRIED: u64 = 10_000;

/// Verifies the entries after this place, each read alone, up to one that cannot be read.
fn one_by_one(store: &dyn TapeStore, tape: &str, after: Option<u64>, verifier: &mut Verifier) {
    let last = after.unwrap_or(0);
    for place in last + 1..=last.saturating_add(MOST_TRIED) {
        // Backwards: a store may look at the entry behind the last one that is wanted, and that one was read before.
        let (tape, after) = (Some(tape.to_owned()), Some(place + 1));
        let query = Query { tape, after, limit: Some(1), newest_first: true, ..Query::default() };
        match store.find(&query).map(|page| page.hits.into_iter().next()) {
            Err(error) => return verifier.unreadable(error.to_string()),
            Ok(Some(hit)) if hit.entry.seq == place => {
                if !verifier.push(hit.entry) {
                    return;
                }
            }
            Ok(_) => {}
        }
    }
}
