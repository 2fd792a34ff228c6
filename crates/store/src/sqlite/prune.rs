//! Deletes what exceeds the retention by age or size, oldest first.

use super::connection::SqliteReader;
use super::find::place_of;
use super::forget::{self, SqliteCut};
use super::row::{BYTES, key, seq_of};
use super::{SqliteFailure, tapes};
use crate::body_codec::BodyCodec;
use crate::retention::{self, Measure, Removal, Scale};
use crate::tape_row::{ENTRY_BYTES, TapeRow};
use rusqlite::Connection;
use signalbox_engine::record::{PruneReport, Retention};
use signalbox_seal::SigningKey;

/// Age from which an unfinished import counts as abandoned.
const LOST_IMPORT: u64 = 24 * 3_600 * 1_000_000_000;

/// Maximum number of rounds of deleting by size and measuring again.
const MAX_ROUNDS: usize = 12;

/// Deletes what exceeds the retention. A dry run only reports it.
pub fn prune(
    reader: &mut SqliteReader,
    retention: &Retention,
    now: u64,
    key: Option<&SigningKey>,
) -> Result<PruneReport, SqliteFailure> {
    let mut pruner = SqlitePruner { connection: &mut reader.connection, codec: &mut reader.codec, key };
    let mut pruned = PruneReport::default();
    let before = forget::used(pruner.connection)?;
    if !retention.dry_run {
        sweep(pruner.connection, now)?;
    }
    let mut freed = 0;
    if let Some(age) = retention.max_age {
        let cutoff = now.saturating_sub(age.as_nanos().min(u128::from(u64::MAX)) as u64);
        for step in by_age(pruner.connection, cutoff, now)? {
            freed += step.bytes;
            pruner.take(&step, retention.dry_run, &mut pruned)?;
        }
    }
    if let Some(most) = retention.max_bytes {
        if retention.dry_run {
            let excess = before.saturating_sub(freed).saturating_sub(most);
            for step in by_size(pruner.connection, excess, now, &pruned.tapes)? {
                freed += step.bytes;
                pruner.take(&step, true, &mut pruned)?;
            }
        } else {
            pruner.shrink_to(most, now, &mut pruned)?;
        }
    }
    pruned.bytes = freed;
    if !retention.dry_run {
        forget::shrink(pruner.connection)?;
        pruned.bytes = before.saturating_sub(forget::used(pruner.connection)?);
    }
    Ok(pruned)
}

/// Deletes the beginning of tapes to free space.
pub struct SqlitePruner<'a> {
    /// Connection to the file.
    pub connection: &'a mut Connection,
    /// Codec for bodies that are made whole.
    pub codec: &'a mut BodyCodec,
    /// Key that signs checkpoints of sealed tapes.
    pub key: Option<&'a SigningKey>,
}

impl SqlitePruner<'_> {
    /// Deletes the oldest entries until at most `most` bytes are in use.
    pub fn shrink_to(&mut self, most: u64, now: u64, pruned: &mut PruneReport) -> Result<(), SqliteFailure> {
        for _ in 0..MAX_ROUNDS {
            forget::shrink(self.connection)?;
            let excess = forget::used(self.connection)?.saturating_sub(most);
            let steps = if excess == 0 { Vec::new() } else { by_size(self.connection, excess, now, &[])? };
            if steps.is_empty() {
                break;
            }
            for step in steps {
                self.take(&step, false, pruned)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, step: &Removal, dry_run: bool, pruned: &mut PruneReport) -> Result<(), SqliteFailure> {
        let entries = match (dry_run, step.below) {
            (true, _) => step.entries,
            (false, None) => forget::forget_number(self.connection, step.tape.number)?,
            (false, Some(below)) => {
                let cut = SqliteCut { tape: step.tape.number, below, marked: step.marked, key: self.key };
                forget::forget_below(self.connection, self.codec, cut)?
            }
        };
        pruned.entries += entries;
        if step.below.is_none() {
            pruned.tapes.push(step.tape.info.id.clone());
        }
        Ok(())
    }
}

/// Deletes the remains of interrupted removals and imports.
fn sweep(connection: &mut Connection, now: u64) -> Result<(), SqliteFailure> {
    let mut select = connection.prepare("SELECT number FROM tapes WHERE hidden_since <= ?1")?;
    let since = now.saturating_sub(LOST_IMPORT) as i64;
    let lost = select.query_map([since], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    drop(select);
    for tape in lost {
        forget::forget_number(connection, tape)?;
    }
    Ok(())
}

/// Measures tapes by reading the file.
struct TapeMeasure<'a>(&'a Connection);

impl Measure for TapeMeasure<'_> {
    type Error = SqliteFailure;

    fn place_of(&mut self, tape: &TapeRow, time: u64) -> Result<u64, SqliteFailure> {
        place_of(self.0, tape, time)
    }

    fn place_behind(&mut self, tape: &TapeRow, entries: u64, bytes: u64) -> Result<u64, SqliteFailure> {
        let sql = format!("SELECT id, {BYTES} FROM tape_entries WHERE id BETWEEN ?1 AND ?2 ORDER BY id");
        let mut select = self.0.prepare_cached(&sql)?;
        let mut rows = select.query([key(tape.number, 0), key(tape.number, tape.last_seq)])?;
        let mut before = (0, 0);
        while let Some(row) = rows.next()? {
            if before.0 >= entries && before.1 >= bytes {
                return Ok(seq_of(row.get(0)?));
            }
            before = (before.0 + 1, before.1 + row.get::<_, i64>(1)? as u64 + ENTRY_BYTES);
        }
        Ok(tape.last_seq + 1)
    }

    fn below(&mut self, tape: &TapeRow, place: u64) -> Result<(u64, u64), SqliteFailure> {
        let sql = format!("SELECT count(*), coalesce(sum({BYTES}), 0) FROM tape_entries WHERE id >= ?1 AND id < ?2");
        let keys = [key(tape.number, 0), key(tape.number, place)];
        let (entries, kept): (i64, i64) = self.0.query_row(&sql, keys, |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((entries as u64, kept as u64))
    }
}

fn by_age(connection: &Connection, cutoff: u64, now: u64) -> Result<Vec<Removal>, SqliteFailure> {
    let tapes = tapes::weighed(connection)?;
    let scale = Scale::new(forget::used(connection)?, &tapes);
    retention::by_age(&mut TapeMeasure(connection), &scale, tapes, cutoff, now)
}

fn by_size(connection: &Connection, excess: u64, now: u64, gone: &[String]) -> Result<Vec<Removal>, SqliteFailure> {
    let tapes = tapes::weighed(connection)?;
    let scale = Scale::new(forget::used(connection)?, &tapes);
    retention::by_size(&mut TapeMeasure(connection), &scale, tapes, excess, now, gone)
}
