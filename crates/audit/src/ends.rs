//! Compares the end of each chain with the state beside the records. Only that state reveals records missing at the end
//! of a log.

use crate::journal::{Cursor, HEAD_FILE, JournalReader, UntoldLoss, chains, segments};
use crate::place::SinkPlace;
use crate::record::AuditRecord;
use crate::signed::{HEAD, SignedPlace};
use crate::verify::AuditVerifier;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// Bounds of what is read of a journal at once.
const BATCH: usize = 1_024;
const BATCH_BYTES: usize = 4 << 20;

/// End of one chain, as the data folder knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct End {
    chain: String,
    /// Last signed head of the chain.
    head: SignedPlace,
    /// Last record that the sink has acknowledged.
    acked: u64,
    /// Last record that the sink had acknowledged before verification read the records.
    taken: u64,
    /// True if the log still writes to this place.
    current: bool,
    /// First record that may still wait in the journal.
    waiting_from: u64,
}

/// Last acknowledged record of each chain, taken before the records are read. All records up to these must be present.
#[derive(Default, Debug)]
pub struct TakenRecords(HashMap<String, u64>);

impl TakenRecords {
    /// Reads the cursors of all chains of a folder of journals.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn read(folder: &Path, sink: &SinkPlace) -> io::Result<Self> {
        let taken = |chain: String| Cursor::read(&folder.join(&chain), sink).map(|taken| (chain, taken));
        Ok(Self(chains_of(folder)?.into_iter().filter_map(taken).collect()))
    }
}

fn chains_of(folder: &Path) -> io::Result<Vec<String>> {
    match chains(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        known => known,
    }
}

/// Compares the ends of all chains in a folder of journals with the records of one sink that `verifier` has read.
/// Chains without a record since `since`, in milliseconds since 1970, may have been deleted.
///
/// # Errors
/// If the folder cannot be read.
pub fn compare(
    verifier: &mut AuditVerifier<'_>,
    folder: &Path,
    sink: &SinkPlace,
    since: u64,
    taken: &TakenRecords,
) -> io::Result<()> {
    verifier.in_place();
    for chain in chains_of(folder)? {
        let own = folder.join(&chain);
        let first = segments(&own)?.first().copied();
        let acked = Cursor::read(&own, sink).unwrap_or(0);
        confirm(verifier, &own, &chain, JournalRange { first, acked })?;
        let taken = taken.0.get(&chain).copied().unwrap_or(0);
        let current = Cursor::is_current(&own, sink);
        if current {
            wait(verifier, &own, verifier.reached(&chain).max(taken), acked)?;
        }
        let place = own.join(HEAD_FILE).display().to_string();
        let text = match std::fs::read_to_string(own.join(HEAD_FILE)) {
            Ok(text) => text,
            // Either nothing is signed yet or the head was removed. What the sink acknowledged must be there in any
            // case.
            Err(_) => {
                verifier.came_to(&place, &chain, taken);
                continue;
            }
        };
        let read = serde_json::from_str(&text).ok().and_then(|value| SignedPlace::read(&value));
        let Some((head, key)) = read.filter(|(head, _)| head.kind == HEAD && head.chain == chain) else {
            verifier.bad_head(&place, &chain);
            continue;
        };
        if head.at < since && verifier.reached(&chain) == 0 {
            continue;
        }
        verifier.signer(&place, &chain, head.to, &key, head.at);
        let end = End { chain, head, acked, taken, current, waiting_from: first.unwrap_or(u64::MAX) };
        if let Some(missing) = missing(&end, verifier.reached(&end.chain)) {
            verifier.came_to(&place, &end.chain, missing);
        }
    }
    Ok(())
}

/// Returns true if a sink ever wrote to this place, for any chain in a folder of journals.
///
/// # Errors
/// If the folder cannot be read.
pub fn is_known(folder: &Path, place: &SinkPlace) -> io::Result<bool> {
    Ok(chains_of(folder)?.iter().any(|chain| Cursor::read(&folder.join(chain), place).is_some()))
}

/// Records of a chain that a journal still has, and those that a sink had from it.
#[derive(Copy, Clone, Debug)]
struct JournalRange {
    /// First record of the journal, if it has any.
    first: Option<u64>,
    /// Last record that the sink has acknowledged.
    acked: u64,
}

/// Compares the last record of a chain with the journal that it came from, because it may not be signed yet.
fn confirm(verifier: &mut AuditVerifier<'_>, journal: &Path, chain: &str, range: JournalRange) -> io::Result<()> {
    let Some(reached) = verifier.place_of(chain) else { return Ok(()) };
    reached.journaled = true;
    let (seq, hash) = (reached.seq, reached.hash);
    let Some(first) = range.first else { return Ok(()) };
    // The journal no longer needs this record, so the chain is longer than the records read here. A sink that lags
    // behind never had the records after those that it has acknowledged, so they were invented.
    if seq < first {
        reached.confirmed = seq <= range.acked;
        return Ok(());
    }
    let found = JournalReader::new(journal).read(seq, seq, 1, 1)?;
    let own = found.first().and_then(|line| AuditRecord::read(&line.text).ok()?.hashes());
    reached.confirmed = own.is_some_and(|(_, own)| own == hash);
    Ok(())
}

/// Counts the records of a journal behind `seen` that are not in the log, and those that could not be written. The
/// sink has everything up to `acked` by now.
fn wait(verifier: &mut AuditVerifier<'_>, journal: &Path, seen: u64, acked: u64) -> io::Result<()> {
    // Before the records: the one that states the loss may be written meanwhile, and must not count twice.
    let loss = UntoldLoss::read(journal);
    let first = segments(journal)?.first().copied().unwrap_or(0);
    let (mut last, mut reader) = (seen.max(first.saturating_sub(1)), JournalReader::new(journal));
    loop {
        let lines = reader.read(last + 1, u64::MAX, BATCH, BATCH_BYTES)?;
        let Some(newest) = lines.last().map(|line| line.seq) else { break };
        for record in lines.iter().filter_map(|line| AuditRecord::read(&line.text).ok()) {
            verifier.journaled(&record, record.seq > acked);
        }
        last = newest;
    }
    verifier.lose(loss.behind(last));
    Ok(())
}

/// Returns the last record that should be present and is not.
fn missing(end: &End, reached: u64) -> Option<u64> {
    let taken = end.head.to.min(end.acked).max(end.taken);
    if reached < taken {
        return Some(taken);
    }
    // Records that the sink has yet to acknowledge wait in the journal, unless the log moved to another place.
    (end.current && reached < end.head.to && reached + 1 < end.waiting_from).then_some(end.head.to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was taken and is gone is missing; what still waits is not.
    #[test]
    fn only_what_the_sink_had_or_nobody_has_is_missing() {
        let head = SignedPlace { kind: HEAD, chain: "c".into(), from: 9, to: 9, hash: [0; 32], at: 1, sink: None };
        let of = |acked, waiting_from, current| {
            let (chain, head) = ("c".into(), head.clone());
            End { chain, head, acked, taken: 0, current, waiting_from }
        };
        let end = |acked, waiting_from| of(acked, waiting_from, true);
        let behind_the_head = End { taken: 12, ..end(12, 5) };
        assert_eq!((missing(&behind_the_head, 12), missing(&behind_the_head, 9)), (None, Some(12)));
        assert_eq!(missing(&end(10, 5), 10), None);
        assert_eq!(missing(&end(10, 5), 7), Some(9));
        assert_eq!(missing(&end(7, 5), 7), None);
        assert_eq!(missing(&end(7, 9), 7), Some(9));
        assert_eq!(missing(&of(7, 9, false), 7), None, "the rest went to another place");
    }
}
