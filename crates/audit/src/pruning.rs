//! Deletes records by age. A signed checkpoint replaces deleted records, so that the rest still verifies and a missing
//! start shows. Only the times of records that verify are trusted; records that were tampered with are evidence, and
//! stay until an operator moves them away.

use crate::files;
use crate::journal::JournalReader;
use crate::log::unix_ms;
use crate::place::SinkPlace;
use crate::record::AuditRecord;
use crate::signed::{MissingReason, SignedPlace};
use crate::verify::{AuditFault, AuditFaultKind, AuditVerifier, ChainEnd, MAX_FAULTS};
use signalbox_engine::record::StoreError;
use signalbox_seal::{ChainHash, KeyRole, KeySet, SigningKey, TrustedKey};
use signalbox_store::audit::StoredRecord;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Deletes expired records and signs the checkpoints that stand for them.
#[derive(Clone, Debug)]
pub struct Pruner {
    key: SigningKey,
    keys: KeySet,
    /// Folder of the journals, which hold the records that are not signed yet.
    journals: PathBuf,
}

/// Result of checking the start of a chain for expiry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    /// The start of the chain may be deleted, and this line replaces it.
    Checkpoint(String),
    /// Nothing has expired, or no signature of this gateway covers it yet.
    Stays,
    /// The row of this record disagrees with the record.
    Misfiled(u64),
    /// Old records do not verify.
    Faulty(AuditFault),
}

/// Position up to which a chain is deleted.
#[derive(Clone, Debug)]
struct Cut {
    seq: u64,
    hash: ChainHash,
    /// True if the start of the chain was missing, or did not verify when it was deleted.
    unproved: bool,
    /// True if a signature covers it already, or the journal has the record.
    proved: bool,
}

impl Pruner {
    /// Creates a pruner with this key for the chains of these journals. It trusts `keys` and its own key.
    #[must_use]
    pub fn new(key: SigningKey, mut keys: KeySet, journals: &Path) -> Self {
        // If `keys` has it already, that entry takes precedence.
        let _ =
            keys.add(TrustedKey::new(key.verifying_key().clone(), "gateway", &[KeyRole::Gateway, KeyRole::Recorder]));
        Self { key, keys, journals: journals.to_owned() }
    }

    /// Returns the place of a file sink that writes to this path.
    pub(crate) fn file_place(&self, path: &Path) -> SinkPlace {
        SinkPlace::file(path, &self.journals)
    }

    /// Returns the place of a database sink with this address.
    pub(crate) fn database_place(&self, url: &str) -> Result<SinkPlace, StoreError> {
        SinkPlace::database(url, &self.journals)
    }

    /// Returns a verifier that trusts the same keys.
    pub(crate) fn verifier(&self) -> AuditVerifier<'_> {
        AuditVerifier::new(&self.keys)
    }

    /// Deletes the files of days before `before`. A file stays until a signature covers all of it, if it does not
    /// verify, or if any of its records is newer, because names and times of files are easy to change.
    pub(crate) fn prune_files(&self, path: &Path, before: u64) -> io::Result<()> {
        let (mut old, mut newer): (Vec<PathBuf>, Vec<PathBuf>) = Default::default();
        for (day, file) in files::earlier(path)? {
            let named_old = u64::try_from(day).map_or(true, |day| day < before);
            let expired = newer.is_empty() && named_old && files::newest_day(&file)?.is_none_or(|day| day < before);
            if expired { old.push(file) } else { newer.push(file) }
        }
        let Some(oldest) = old.first() else { return Ok(()) };
        let lock = File::open(oldest)?;
        lock.lock()?;
        // Another process may have deleted it meanwhile, and the rest with it.
        let own = lock.metadata()?;
        if !std::fs::metadata(oldest).is_ok_and(|there| there.ino() == own.ino() && there.dev() == own.dev()) {
            return Ok(());
        }
        let checkpoints = files::checkpoints(path);
        let place = self.file_place(path);
        let (mut verifier, good) = self.follow_old(&place, &checkpoints, &old)?;
        let faulty = old.split_off(good);
        if old.is_empty() {
            return Ok(());
        }
        let current = Some(path.to_owned()).filter(|path| path.is_file());
        let Some(text) = self.stand_ins(&place, &mut verifier, faulty.iter().chain(&newer).chain(&current))? else {
            let (file, fault) = (old[0].display(), fault(&verifier).map(ToString::to_string));
            match fault {
                Some(fault) => tracing::warn!(%file, fault, "an old audit log stays: what follows it does not verify"),
                None => tracing::info!(%file, "an old audit log stays: no signature covers its end yet"),
            }
            return Ok(());
        };
        if !text.is_empty() {
            replace(&checkpoints, &text)?;
        }
        for file in old {
            tracing::info!(file = %file.display(), "deleted an old audit log");
            std::fs::remove_file(file)?;
        }
        Ok(())
    }

    /// Verifies the checkpoints and then old files up to the first faulty one. Returns the verifier before that one,
    /// and the number of good files.
    fn follow_old(
        &self,
        place: &SinkPlace,
        checkpoints: &Path,
        old: &[PathBuf],
    ) -> io::Result<(AuditVerifier<'_>, usize)> {
        let mut verifier = self.verifier().of_place(place);
        if checkpoints.exists() {
            follow(&mut verifier, checkpoints, &mut |_| true)?;
        }
        for (good, file) in old.iter().enumerate() {
            let before = verifier.clone();
            follow(&mut verifier, file, &mut |verifier| fault(verifier).is_none())?;
            if let Some(fault) = fault(&verifier) {
                let files = old.len() - good;
                tracing::warn!(file = %file.display(), files, %fault, "old audit logs stay: this one does not verify");
                return Ok((before, good));
            }
        }
        Ok((verifier, old.len()))
    }

    /// Returns the checkpoints for everything that a verifier has read, once signatures in the files after it cover
    /// that.
    fn stand_ins<'f>(
        &self,
        place: &SinkPlace,
        verifier: &mut AuditVerifier<'_>,
        behind: impl Iterator<Item = &'f PathBuf>,
    ) -> io::Result<Option<String>> {
        let cuts = self.cuts(verifier);
        let is_covered = |verifier: &AuditVerifier<'_>| cuts.iter().all(|(chain, cut)| is_proved(verifier, chain, cut));
        let open = |verifier: &AuditVerifier<'_>| !is_covered(verifier) && fault(verifier).is_none();
        for file in behind {
            if !open(verifier) {
                break;
            }
            follow(verifier, file, &mut |verifier| open(verifier))?;
        }
        if !is_covered(verifier) {
            return Ok(None);
        }
        let lines = cuts.iter().map(|(chain, cut)| self.checkpoint(place, chain, cut));
        Ok(lines.map(|line| line.map(|line| line + "\n")).collect())
    }

    /// Decides whether the start of a chain from before `before`, in milliseconds since 1970, can be deleted. `rows`
    /// are all rows of the chain. The age comes from the records, which the chain covers: any user with write access to
    /// the database can change a column.
    pub(crate) fn expire_chain(
        &self,
        place: &SinkPlace,
        chain: &str,
        before: u64,
        rows: impl FnOnce(&mut dyn FnMut(&StoredRecord<'_>) -> bool) -> Result<(), StoreError>,
    ) -> Result<Expiry, StoreError> {
        let mut verifier = self.verifier().of_place(place);
        let (mut any_old, mut any_young, mut cut, mut misfiled) = (false, false, None, None);
        rows(&mut |row| {
            let record = AuditRecord::read(row.record);
            if let Ok(record) = &record {
                if !record.is_filed_in(row) {
                    misfiled = Some(record.seq);
                    return false;
                }
                let (aged, young) = (!record.is_checkpoint(), record.at >= before);
                if aged && young && !any_young {
                    (any_young, cut) = (true, self.cuts(&verifier).remove(chain));
                }
                any_old |= aged && !any_young;
            }
            verifier.record("row", row.record, record);
            let uncovered = any_old && cut.as_ref().is_some_and(|cut| !is_proved(&verifier, chain, cut));
            fault(&verifier).is_none() && (!any_young || uncovered)
        })?;
        if let Some(seq) = misfiled {
            return Ok(Expiry::Misfiled(seq));
        }
        match fault(&verifier) {
            // Several gateways may share a database. Each deletes what it can verify.
            Some(AuditFault { kind: AuditFaultKind::Untrusted(..), .. }) => return Ok(Expiry::Stays),
            Some(fault) => return Ok(Expiry::Faulty(fault.clone())),
            None => {}
        }
        if !any_young {
            cut = self.cuts(&verifier).remove(chain);
        }
        let cut = cut.filter(|cut| any_old && is_proved(&verifier, chain, cut));
        Ok(cut.and_then(|cut| self.checkpoint(place, chain, &cut)).map_or(Expiry::Stays, Expiry::Checkpoint))
    }

    fn checkpoint(&self, place: &SinkPlace, chain: &str, cut: &Cut) -> Option<String> {
        let absence = if cut.unproved { MissingReason::PrunedUnproved } else { MissingReason::Pruned };
        let (kind, chain, sink) = (absence.kind(place.sink), chain.to_owned(), Some(place.name.clone()));
        SignedPlace { kind, chain, from: 1, to: cut.seq, hash: cut.hash, at: unix_ms(), sink }.sign(&self.key)
    }

    /// Returns the present end of each chain.
    fn cuts(&self, verifier: &AuditVerifier<'_>) -> BTreeMap<String, Cut> {
        let unproved = |chain: &str| verifier.troubles().any(|fault| fault.chain == chain);
        let cut = |(chain, reached): (&String, &ChainEnd)| {
            let &ChainEnd { seq, hash, signed, .. } = reached;
            let proved = signed >= seq || self.is_journaled(chain, seq, &hash);
            (chain.clone(), Cut { seq, hash, unproved: unproved(chain), proved })
        };
        verifier.places().map(cut).collect()
    }

    /// Returns true if the journal has this record. A killed process leaves its last records unsigned until its chain
    /// resumes.
    fn is_journaled(&self, chain: &str, seq: u64, hash: &ChainHash) -> bool {
        // The name comes from the log and must not lead out of the folder.
        let is_name = chain.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let found = is_name.then(|| JournalReader::new(&self.journals.join(chain)).read(seq, seq, 1, 1));
        let lines = found.and_then(Result::ok).unwrap_or_default();
        let hashes = lines.first().and_then(|line| AuditRecord::read(&line.text).ok()?.hashes());
        hashes.is_some_and(|(_, own)| own == *hash)
    }
}

/// Returns true if a chain is proved up to its cut.
fn is_proved(verifier: &AuditVerifier<'_>, chain: &str, cut: &Cut) -> bool {
    cut.proved || verifier.places().any(|(name, reached)| name == chain && reached.signed >= cut.seq)
}

/// Returns the first fault, except for a missing start of a chain: the next signature proves what follows, and the
/// records before expired ones were older.
fn fault<'v>(verifier: &'v AuditVerifier<'_>) -> Option<&'v AuditFault> {
    let faults = verifier.faults();
    let full = faults.get(MAX_FAULTS - 1);
    faults.iter().find(|fault| !matches!(fault.kind, AuditFaultKind::Missing(1, _))).or(full)
}

/// Feeds the lines of a file to a verifier, until `more` returns false.
fn follow(
    verifier: &mut AuditVerifier<'_>,
    file: &Path,
    more: &mut dyn FnMut(&AuditVerifier<'_>) -> bool,
) -> io::Result<()> {
    let shown = file.display().to_string();
    files::lines(file, &mut |_, line| {
        verifier.line(&shown, line);
        more(verifier)
    })
}

/// Replaces a file atomically, and syncs it to disk before anything is deleted.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(draft, path)
}

#[cfg(test)]
mod tests;
