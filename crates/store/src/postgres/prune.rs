//! Deletes what exceeds the retention by age or size, oldest first.

use super::find::place_of;
use super::forget::{self, PostgresCut};
use super::row::BYTES;
use super::{Failure, tapes};
use crate::retention::{self, Measure, Removal, Scale, weight};
use crate::tape_row::{ENTRY_BYTES, TapeRow};
use ::postgres::Client;
use signalbox_engine::record::{PruneReport, Retention};
use signalbox_seal::SigningKey;

/// Age from which an unfinished import counts as abandoned.
const LOST_IMPORT: u64 = 24 * 3_600 * 1_000_000_000;

/// Maximum number of rounds of deleting by size and measuring again.
const MAX_ROUNDS: usize = 12;

/// Deletes what exceeds the retention. A dry run only reports it. A database cannot tell the disk usage of one schema
/// after a deletion, so sizes are those of bodies plus an estimate for the rest.
pub fn prune(
    client: &mut Client,
    retention: &Retention,
    now: u64,
    key: Option<&SigningKey>,
) -> Result<PruneReport, Failure> {
    let mut pruned = PruneReport::default();
    if !retention.dry_run {
        sweep(client, now)?;
    }
    if let Some(age) = retention.max_age {
        let cutoff = now.saturating_sub(age.as_nanos().min(u128::from(u64::MAX)) as u64);
        let tapes = tapes::weighed(client)?;
        let scale = Scale::new(weight(&tapes), &tapes);
        for step in retention::by_age(&mut TapeMeasure(client), &scale, tapes, cutoff, now)? {
            take(client, &step, retention.dry_run, key, &mut pruned)?;
        }
    }
    match retention.max_bytes {
        Some(most) if retention.dry_run => {
            let tapes = tapes::weighed(client)?;
            let used = weight(&tapes);
            let excess = used.saturating_sub(pruned.bytes).saturating_sub(most);
            let scale = Scale::new(used, &tapes);
            for step in retention::by_size(&mut TapeMeasure(client), &scale, tapes, excess, now, &pruned.tapes)? {
                take(client, &step, true, key, &mut pruned)?;
            }
        }
        Some(most) => shrink_to(client, most, key, now, &mut pruned)?,
        None => {}
    }
    if pruned.entries > 0 && !retention.dry_run {
        // The server vacuums sooner or later by itself. It may not permit us to.
        for table in ["tape_entries", "tape_words", "exchanges"] {
            let _ = client.batch_execute(&format!("VACUUM {table}"));
        }
    }
    Ok(pruned)
}

/// Deletes the oldest entries until tapes take at most `most` bytes.
pub fn shrink_to(
    client: &mut Client,
    most: u64,
    key: Option<&SigningKey>,
    now: u64,
    pruned: &mut PruneReport,
) -> Result<(), Failure> {
    for _ in 0..MAX_ROUNDS {
        let tapes = tapes::weighed(client)?;
        let used = weight(&tapes);
        let scale = Scale::new(used, &tapes);
        let excess = used.saturating_sub(most);
        let steps = retention::by_size(&mut TapeMeasure(client), &scale, tapes, excess, now, &[])?;
        if steps.is_empty() {
            break;
        }
        for step in steps {
            take(client, &step, false, key, pruned)?;
        }
    }
    Ok(())
}

/// Deletes the remains of interrupted removals and imports.
fn sweep(client: &mut Client, now: u64) -> Result<(), Failure> {
    let since = now.saturating_sub(LOST_IMPORT) as i64;
    for row in client.query("SELECT number FROM tapes WHERE hidden_since <= $1", &[&since])? {
        forget::forget_number(client, row.get(0))?;
    }
    Ok(())
}

fn take(
    client: &mut Client,
    step: &Removal,
    dry_run: bool,
    key: Option<&SigningKey>,
    pruned: &mut PruneReport,
) -> Result<(), Failure> {
    pruned.entries += match (dry_run, step.below) {
        (true, _) => step.entries,
        (false, None) => forget::forget_number(client, step.tape.number)?,
        (false, Some(below)) => {
            forget::forget_below(client, PostgresCut { tape: step.tape.number, below, marked: step.marked, key })?
        }
    };
    pruned.bytes += step.bytes;
    if step.below.is_none() {
        pruned.tapes.push(step.tape.info.id.clone());
    }
    Ok(())
}

/// Measures tapes with queries to the database.
struct TapeMeasure<'a>(&'a mut Client);

impl Measure for TapeMeasure<'_> {
    type Error = Failure;

    fn place_of(&mut self, tape: &TapeRow, time: u64) -> Result<u64, Failure> {
        place_of(self.0, tape, time)
    }

    fn place_behind(&mut self, tape: &TapeRow, entries: u64, bytes: u64) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT seq FROM (SELECT seq, {BYTES} + {ENTRY_BYTES} AS own, sum({BYTES} + {ENTRY_BYTES}) OVER so_far AS bytes,
            row_number() OVER so_far AS number FROM tape_entries WHERE tape = $1 WINDOW so_far AS (ORDER BY seq)) AS walked
            WHERE number > $2 AND bytes - own >= $3 ORDER BY seq LIMIT 1"
        );
        let bytes = bytes.min(i64::MAX as u64) as i64;
        let place = self.0.query_opt(&sql, &[&tape.number, &(entries as i64), &bytes])?;
        Ok(place.map_or(tape.last_seq + 1, |row| row.get::<_, i64>(0) as u64))
    }

    fn below(&mut self, tape: &TapeRow, place: u64) -> Result<(u64, u64), Failure> {
        let sql = format!(
            "SELECT count(*), coalesce(sum({BYTES}), 0)::bigint FROM tape_entries WHERE tape = $1 AND seq < $2"
        );
        let row = self.0.query_one(&sql, &[&tape.number, &(place as i64)])?;
        Ok((row.get::<_, i64>(0) as u64, row.get::<_, i64>(1) as u64))
    }
}
