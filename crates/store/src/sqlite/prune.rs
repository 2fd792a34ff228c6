//! Forgetting what is older or more than what is to be kept, oldest first.

use super::failure::Failure;
use super::find::place_of;
use super::forget;
use super::key::key;
use super::reader::Reader;
use super::tapes::{self, TapeRow};
use rusqlite::Connection;
use signalbox_engine::record::{Pruned, Retention};

/// A tape without an end whose last entry is older than this has lost its writer.
const STALE: u64 = 7 * 24 * 3_600 * 1_000_000_000;

/// An import that has not come to its end for so long never will.
const LOST_IMPORT: u64 = 24 * 3_600 * 1_000_000_000;

/// About how many bytes an entry takes besides its body, index included.
const ENTRY_BYTES: u64 = 120;

/// How often what is free is measured again after forgetting by size.
const MAX_ROUNDS: usize = 12;

/// Fewer entries are not forgotten at a time, so that every round gets on.
const MIN_CUT: u64 = 100;

/// One thing to forget.
struct Step {
    tape: TapeRow,
    /// Everything below this place; none for the whole tape.
    below: Option<u64>,
    entries: u64,
    bytes: u64,
}

/// Forgets what is not to be kept, or says what that would be.
pub fn prune(reader: &mut Reader, retention: &Retention, now: u64) -> Result<Pruned, Failure> {
    let mut pruned = Pruned::default();
    let before = forget::used(&reader.connection)?;
    if !retention.dry_run {
        sweep(&mut reader.connection, now)?;
    }
    let mut freed = 0;
    if let Some(age) = retention.max_age {
        let cutoff = now.saturating_sub(age.as_nanos().min(u128::from(u64::MAX)) as u64);
        for step in by_age(&reader.connection, cutoff, now)? {
            freed += step.bytes;
            take(reader, &step, retention.dry_run, &mut pruned)?;
        }
    }
    if let Some(most) = retention.max_bytes {
        if retention.dry_run {
            let excess = before.saturating_sub(freed).saturating_sub(most);
            for step in by_size(&reader.connection, excess, now, &pruned.tapes)? {
                freed += step.bytes;
                take(reader, &step, true, &mut pruned)?;
            }
        } else {
            shrink_to(reader, most, now, &mut pruned)?;
        }
    }
    pruned.bytes = freed;
    if !retention.dry_run {
        forget::shrink(&mut reader.connection)?;
        pruned.bytes = before.saturating_sub(forget::used(&reader.connection)?);
    }
    Ok(pruned)
}

fn shrink_to(reader: &mut Reader, most: u64, now: u64, pruned: &mut Pruned) -> Result<(), Failure> {
    for _ in 0..MAX_ROUNDS {
        forget::shrink(&mut reader.connection)?;
        let excess = forget::used(&reader.connection)?.saturating_sub(most);
        let steps = if excess == 0 { Vec::new() } else { by_size(&reader.connection, excess, now, &[])? };
        if steps.is_empty() {
            break;
        }
        for step in steps {
            take(reader, &step, false, pruned)?;
        }
    }
    Ok(())
}

/// What removals and imports that were interrupted have left.
fn sweep(connection: &mut Connection, now: u64) -> Result<(), Failure> {
    let mut select = connection.prepare("SELECT number FROM tapes WHERE hidden_since <= ?1")?;
    let since = now.saturating_sub(LOST_IMPORT) as i64;
    let lost = select.query_map([since], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    drop(select);
    for tape in lost {
        forget::forget_number(connection, tape)?;
    }
    Ok(())
}

fn take(reader: &mut Reader, step: &Step, dry_run: bool, pruned: &mut Pruned) -> Result<(), Failure> {
    let entries = match (dry_run, step.below) {
        (true, _) => step.entries,
        (false, None) => forget::forget_number(&mut reader.connection, step.tape.number)?,
        (false, Some(below)) => {
            forget::forget_below(&mut reader.connection, &mut reader.squeezer, step.tape.number, below)?
        }
    };
    pruned.entries += entries;
    if step.below.is_none() {
        pruned.tapes.push(step.tape.info.id.clone());
    }
    Ok(())
}

/// A tape that is being written stays, but not all of its entries.
fn may_go(tape: &TapeRow, now: u64) -> bool {
    tape.info.ended.is_some() || tape.last_at < now.saturating_sub(STALE)
}

fn by_age(connection: &Connection, cutoff: u64, now: u64) -> Result<Vec<Step>, Failure> {
    let tapes = tapes::all(connection)?;
    let scale = Scale::of(connection, &tapes)?;
    let mut steps = Vec::new();
    for tape in tapes.into_iter().rev() {
        let all_old = tape.last_at < cutoff;
        if all_old && may_go(&tape, now) {
            steps.push(scale.whole(tape));
        } else if all_old && tape.entries > 0 {
            let end = tape.last_seq + 1;
            steps.push(scale.below(connection, tape, end)?);
        } else if tape.first_at < cutoff && !tape.disordered {
            let end = place_of(connection, &tape, cutoff)?;
            steps.push(scale.below(connection, tape, end)?);
        }
    }
    steps.retain(|step| step.below.is_none() || step.entries > 0);
    Ok(steps)
}

fn by_size(connection: &Connection, excess: u64, now: u64, but: &[String]) -> Result<Vec<Step>, Failure> {
    let mut tapes = tapes::all(connection)?;
    let scale = Scale::of(connection, &tapes)?;
    tapes.retain(|tape| tape.entries > 0 && !but.contains(&tape.info.id));
    let mut left = excess;
    let mut steps = Vec::new();
    for tape in tapes.into_iter().rev() {
        if left == 0 {
            break;
        }
        let size = scale.bytes(tape.kept, tape.entries);
        let step = if size <= left && may_go(&tape, now) {
            scale.whole(tape)
        } else {
            let part = (u128::from(tape.entries) * u128::from(left) / u128::from(size.max(1))) as u64;
            let end = place_behind(connection, &tape, part.max(MIN_CUT))?;
            scale.below(connection, tape, end)?
        };
        left = left.saturating_sub(step.bytes.max(1));
        steps.push(step);
    }
    Ok(steps)
}

/// The place behind the first so many entries.
fn place_behind(connection: &Connection, tape: &TapeRow, entries: u64) -> Result<u64, Failure> {
    if entries >= tape.entries {
        return Ok(tape.last_seq + 1);
    }
    let sql = "SELECT id FROM tape_entries WHERE id >= ?1 ORDER BY id LIMIT 1 OFFSET ?2";
    let id: i64 = connection.query_row(sql, [key(tape.number, 0), entries as i64], |row| row.get(0))?;
    Ok(super::key::seq_of(id))
}

/// About how many bytes of the file things take.
struct Scale {
    used: u64,
    weight: u64,
}

impl Scale {
    fn of(connection: &Connection, tapes: &[TapeRow]) -> Result<Self, Failure> {
        let weight = tapes.iter().map(|tape| tape.kept + ENTRY_BYTES * tape.entries).sum();
        Ok(Self { used: forget::used(connection)?, weight })
    }

    fn bytes(&self, kept: u64, entries: u64) -> u64 {
        let weight = u128::from(kept + ENTRY_BYTES * entries);
        (u128::from(self.used) * weight / u128::from(self.weight.max(1))) as u64
    }

    fn whole(&self, tape: TapeRow) -> Step {
        Step { below: None, entries: tape.entries, bytes: self.bytes(tape.kept, tape.entries), tape }
    }

    fn below(&self, connection: &Connection, tape: TapeRow, end: u64) -> Result<Step, Failure> {
        let sql = "SELECT count(*), coalesce(sum(length(body)), 0) FROM tape_entries WHERE id >= ?1 AND id < ?2";
        let keys = [key(tape.number, 0), key(tape.number, end)];
        let (entries, kept): (i64, i64) = connection.query_row(sql, keys, |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Step { below: Some(end), entries: entries as u64, bytes: self.bytes(kept as u64, entries as u64), tape })
    }
}
