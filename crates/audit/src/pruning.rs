//! Deletes records by age. A signed checkpoint takes the place of what is deleted, so that the rest still verifies and a missing
//! start shows. Records are verified before they go: a checkpoint never vouches for what somebody else has cut or added.

use crate::files;
use crate::log::unix_ms;
use crate::record::Record;
use crate::signed::{PRUNED, PRUNED_UNPROVED, SignedPlace};
use crate::verify::{AuditFault, AuditVerifier, FaultKind, Reached};
use signalbox_engine::record::StoreError;
use signalbox_seal::{ChainHash, KeySet, Role, SigningKey, TrustedKey};
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
}

/// What may be deleted of a chain, and what then stands for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    /// It may go, and this line takes its place.
    Checkpoint(String),
    /// It stays: it is signed by somebody else, or not signed yet.
    Stays,
    /// It stays: the row of this record disagrees with the record.
    Misfiled(u64),
}

/// Where a chain is cut.
#[derive(Clone, Debug)]
struct Cut {
    seq: u64,
    hash: ChainHash,
    faulty: bool,
}

impl Pruner {
    /// A pruner with this key, which trusts itself and these.
    #[must_use]
    pub fn new(key: SigningKey, mut keys: KeySet) -> Self {
        // If it is among them already, that one counts.
        let _ = keys.add(TrustedKey::new(key.verifying_key().clone(), "gateway", &[Role::Gateway, Role::Recorder]));
        Self { key, keys }
    }

    /// A verifier that trusts the same keys.
    pub(crate) fn verifier(&self) -> AuditVerifier<'_> {
        AuditVerifier::new(&self.keys)
    }

    fn line(&self, kind: &'static str, chain: &str, (to, hash): (u64, ChainHash)) -> Option<String> {
        SignedPlace { kind, chain: chain.to_owned(), from: 1, to, hash, at: unix_ms() }.sign(&self.key)
    }

    /// Deletes the files of days before this one. They stay until a signature covers all that is in them, and if any of their
    /// records is newer: whoever can write to the folder can give a file another name and another time.
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
        let mut verifier = self.verifier();
        let checkpoints = files::checkpoints(path);
        for file in Some(&checkpoints).into_iter().filter(|file| file.exists()).chain(&old) {
            follow(&mut verifier, file, &mut |_| true)?;
        }
        let cuts = cuts(&verifier);
        let newer = newer.into_iter().chain(Some(path.to_owned()).filter(|path| path.is_file()));
        for file in newer {
            if is_covered(&verifier, &cuts) {
                break;
            }
            follow(&mut verifier, &file, &mut |verifier| !is_covered(verifier, &cuts))?;
        }
        let mut text = String::new();
        for (chain, cut) in &cuts {
            let Expiry::Checkpoint(line) = self.expiry(&verifier, chain, cut) else {
                tracing::info!(file = %oldest.display(), chain, "an old audit log stays: no signature covers its end yet");
                return Ok(());
            };
            text.push_str(&line);
            text.push('\n');
        }
        if !text.is_empty() {
            replace(&checkpoints, &text)?;
        }
        for file in old {
            tracing::info!(file = %file.display(), "deleted an old audit log");
            std::fs::remove_file(file)?;
        }
        Ok(())
    }

    /// Decides what becomes of the start of a chain that is from before this time, in milliseconds since 1970. `rows`
    /// are all that there are of the chain. Its age is that of its records, which the chain covers: a column can be
    /// changed by everyone who can write to the database.
    pub(crate) fn expire_chain(
        &self,
        chain: &str,
        before: u64,
        rows: impl FnOnce(&mut dyn FnMut(&StoredRecord<'_>) -> bool) -> Result<(), StoreError>,
    ) -> Result<Expiry, StoreError> {
        let mut verifier = self.verifier();
        let (mut any_old, mut any_young, mut cut, mut misfiled) = (false, false, None, None);
        rows(&mut |row| {
            let record = Record::read(row.record);
            if let Ok(record) = &record {
                if !record.is_filed_in(row) {
                    misfiled = Some(record.seq);
                    return false;
                }
                let (aged, young) = (!record.is_checkpoint(), record.at >= before);
                if aged && young && !any_young {
                    (any_young, cut) = (true, cuts(&verifier).remove(chain));
                }
                any_old |= aged && !any_young;
            }
            verifier.record("row", row.record, record);
            !any_young || any_old && cut.as_ref().is_some_and(|cut| signed(&verifier, chain) < cut.seq)
        })?;
        if let Some(seq) = misfiled {
            return Ok(Expiry::Misfiled(seq));
        }
        // Several gateways may share a database. Each deletes what it can verify.
        let foreign = |fault: &AuditFault| matches!(fault.kind, FaultKind::Untrusted(..)) && fault.chain == chain;
        if !any_old || verifier.faults().iter().any(foreign) {
            return Ok(Expiry::Stays);
        }
        if !any_young {
            cut = cuts(&verifier).remove(chain);
        }
        Ok(cut.map_or(Expiry::Stays, |cut| self.expiry(&verifier, chain, &cut)))
    }

    fn expiry(&self, verifier: &AuditVerifier<'_>, chain: &str, cut: &Cut) -> Expiry {
        let ended = verifier.reached(chain) == cut.seq;
        let kind = match (cut.faulty, signed(verifier, chain) >= cut.seq) {
            (false, true) => PRUNED,
            // The chain goes on, and its next signature is to come.
            (false, false) if !ended => return Expiry::Stays,
            _ => PRUNED_UNPROVED,
        };
        self.line(kind, chain, (cut.seq, cut.hash)).map_or(Expiry::Stays, Expiry::Checkpoint)
    }
}

fn signed(verifier: &AuditVerifier<'_>, chain: &str) -> u64 {
    verifier.places().find(|(name, _)| *name == chain).map_or(0, |(_, reached)| reached.signed)
}

/// Where all chains are now.
fn cuts(verifier: &AuditVerifier<'_>) -> BTreeMap<String, Cut> {
    let faulty = |chain: &str| verifier.troubles().any(|fault| fault.chain.is_empty() || fault.chain == chain);
    let cut = |(chain, reached): (&String, &Reached)| {
        (chain.clone(), Cut { seq: reached.seq, hash: reached.hash, faulty: faulty(chain) })
    };
    verifier.places().map(cut).collect()
}

/// True if signatures cover every chain up to its cut.
fn is_covered(verifier: &AuditVerifier<'_>, cuts: &BTreeMap<String, Cut>) -> bool {
    cuts.iter().all(|(chain, cut)| cut.faulty || signed(verifier, chain) >= cut.seq)
}

/// Shows a verifier the lines of a file, until `more` says false.
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

/// Puts a file in the place of another, on the disk before anything is deleted.
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
