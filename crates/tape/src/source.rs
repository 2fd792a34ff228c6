//! A readable tape: one of the store, or a file.

mod read_ahead;

use crate::analysis::Pages;
use crate::seal::{Anchors, InclusionProof, NoProof, ProofMaker, SealReport, TapeVerifier};
use crate::{Bodies, Select, TapeFile, TapeFileError};
use read_ahead::read_ahead;
use signalbox_engine::record::{Entry, Query, SessionInfo, StoreError, TapeInfo, TapeStore};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of entries of one exchange that are read.
const MOST_OF_ONE: usize = 10_000;
/// Maximum number of bytes of bodies that are remembered while a file is verified, to restore later ones.
const MOST_VERIFIED: usize = 512 << 20;
/// First version of the file format that has seals.
const SEALED_VERSION: u32 = 3;

/// Returns true if a tape name refers to a file: it has a dot or a slash, or a file of that name exists.
#[must_use]
pub fn is_file(name: &str) -> bool {
    name.contains(['/', '.']) || Path::new(name).is_file()
}

/// A tape that can be read repeatedly from its beginning.
pub enum TapeSource {
    /// A tape of the store.
    Stored(Arc<dyn TapeStore>, TapeInfo),
    File(Box<TapeFile<BufReader<File>>>),
}

impl TapeSource {
    /// Opens a tape file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a tape.
    pub fn open(path: &Path) -> Result<Self, TapeFileError> {
        Ok(Self::File(Box::new(TapeFile::open(BufReader::new(File::open(path)?))?)))
    }

    /// Returns the head of the tape.
    #[must_use]
    pub fn info(&self) -> &TapeInfo {
        match self {
            Self::Stored(_, tape) => tape,
            Self::File(file) => file.info(),
        }
    }

    /// Returns the sessions of the tape.
    ///
    /// # Errors
    /// Returns the error of the store or the file.
    pub fn sessions(&mut self) -> Result<Vec<(u64, SessionInfo)>, StoreError> {
        match self {
            Self::Stored(store, tape) => store.sessions(&tape.id),
            Self::File(file) => Ok(file.all_sessions()?),
        }
    }

    /// Returns a message that says which part of a file is missing, if it is incomplete.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        match self {
            Self::Stored(..) => None,
            Self::File(file) => file.missing(),
        }
    }

    /// Iterates over all entries, or those of one session, in order and with their bodies restored.
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

    /// Verifies a sealed tape. Calls `progress` for every entry.
    pub fn verify(&mut self, progress: impl FnMut()) -> SealReport {
        self.verify_against(Anchors::default(), progress)
    }

    /// Verifies a sealed tape, and compares it with signed heads stored elsewhere. What readers are shown besides the
    /// entries, in the tables of a store or the head of a file, must be what the entries give.
    pub fn verify_against(&mut self, anchors: Anchors, mut progress: impl FnMut()) -> SealReport {
        let mut verifier = TapeVerifier::against(self.info(), anchors);
        match self {
            Self::Stored(store, tape) => {
                // Read before the entries, because a live tape goes on meanwhile.
                let tables = tape.seal.as_ref().map(|_| store.tables(&tape.id)).transpose();
                let unreadable = tables.as_ref().err().map(ToString::to_string);
                if let Ok(Some(tables)) = tables {
                    verifier = verifier.with_tables(tables);
                }
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
                    // One entry of the page is unreadable; reading them one by one finds it.
                    Ok(Err(Some(_))) => one_by_one(store, &tape.id, last, &mut verifier),
                    Ok(_) => {}
                    Err(error) => verifier.unreadable(error.to_string()),
                }
                if let Some(why) = unreadable {
                    verifier.unreadable(why);
                }
            }
            Self::File(file) => {
                verifier = verifier.with_sessions(file.sessions().to_vec());
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

    /// Builds a proof that this entry is on the tape, for a recipient without the tape.
    ///
    /// # Errors
    /// Fails if there is no proof, or the tape cannot be read.
    pub fn prove(&mut self, entry: u64) -> Result<InclusionProof, NoProof> {
        let mut maker = ProofMaker::new(self.info(), entry)?;
        for entry in self.entries(None) {
            if !maker.push(entry?)? {
                break;
            }
        }
        maker.finish()
    }

    /// Iterates over the entries after this position, with bodies as they are stored: a caller that reads in pieces
    /// must restore them across pieces ([`Bodies`]).
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

    /// Iterates over the entries after this position that were added since the tape was opened. A file has none.
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

    /// Returns true once no entries will be added any more.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub fn has_ended(&self) -> Result<bool, StoreError> {
        match self {
            Self::Stored(store, tape) => Ok(store.tape(&tape.id)?.ended.is_some()),
            Self::File(_) => Ok(true),
        }
    }

    /// Returns the entries of one exchange, with their bodies restored.
    ///
    /// # Errors
    /// Returns the error of the store or the file.
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

/// Maximum number of positions after the last readable entry that are tried.
const MOST_TRIED: u64 = 10_000;

/// Verifies the entries after this position, each read separately, up to the first unreadable one.
fn one_by_one(store: &dyn TapeStore, tape: &str, after: Option<u64>, verifier: &mut TapeVerifier) {
    let last = after.unwrap_or(0);
    for place in last + 1..=last.saturating_add(MOST_TRIED) {
        // Reads backwards: a store may also decode the entry beyond the last wanted one, which was read before.
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
