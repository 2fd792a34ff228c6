//! Selects what to delete so that a store respects its retention, oldest first.

use crate::tape_row::{ENTRY_BYTES, TapeRow};
use signalbox_engine::record::{Content, Gap};

/// Minimum number of entries to delete at a time, so that every round makes progress.
const MIN_CUT: u64 = 100;

/// Reason of a gap at the beginning of a tape: its entries were deleted to make room.
const PRUNED: &str = "pruned";

/// Tape, or beginning of a tape, to delete.
pub struct Removal {
    /// Tape to delete from.
    pub tape: TapeRow,
    /// Position below which entries are deleted; `None` for the whole tape.
    pub below: Option<u64>,
    /// True to leave a mark that the beginning is missing. Expiry by age leaves no mark.
    pub marked: bool,
    /// Number of entries to delete.
    pub entries: u64,
    /// Estimated number of bytes to free.
    pub bytes: u64,
}

/// Access to the entries of a tape, for measuring them.
pub trait Measure {
    /// Error of the database.
    type Error;

    /// Returns the first position at or after a time. Called only for tapes whose clock does not go backwards.
    fn place_of(&mut self, tape: &TapeRow, time: u64) -> Result<u64, Self::Error>;

    /// Returns the position after the first entries that reach both this count and this size; that after the last entry
    /// if all of them do not.
    fn place_behind(&mut self, tape: &TapeRow, entries: u64, bytes: u64) -> Result<u64, Self::Error>;

    /// Returns the number of entries below a position, and the bytes that they store.
    fn below(&mut self, tape: &TapeRow, place: u64) -> Result<(u64, u64), Self::Error>;
}

/// Converts stored bytes to a share of the whole store's size.
pub struct Scale {
    used: u64,
    weight: u64,
}

impl Scale {
    /// Creates a scale. `tapes` must be all tapes, which take `used` bytes together.
    pub fn new(used: u64, tapes: &[TapeRow]) -> Self {
        Self { used, weight: weight(tapes) }
    }

    fn bytes(&self, weight: u64) -> u64 {
        (u128::from(self.used) * u128::from(weight) / u128::from(self.weight.max(1))) as u64
    }

    fn whole(&self, tape: TapeRow) -> Removal {
        Removal { below: None, marked: false, entries: tape.entries, bytes: self.bytes(tape.bytes()), tape }
    }

    fn below<M: Measure>(&self, measure: &mut M, tape: TapeRow, place: u64) -> Result<Removal, M::Error> {
        let (entries, kept) = measure.below(&tape, place)?;
        Ok(Removal {
            below: Some(place),
            marked: false,
            entries,
            bytes: self.bytes(kept + ENTRY_BYTES * entries),
            tape,
        })
    }
}

/// Marks of earlier deletions among the entries to delete; see [`Removal::marked`].
#[derive(Default, Debug)]
pub struct Marks {
    pub count: u64,
    facts: u64,
}

impl Marks {
    /// Counts a deleted gap if it is such a mark.
    pub fn add(&mut self, content: &Content) {
        if let Content::Gap(Gap { facts, reason }) = content
            && reason == PRUNED
        {
            self.count += 1;
            self.facts = self.facts.saturating_add(*facts);
        }
    }

    /// Returns the mark that replaces `entries` entries, these marks included; `None` if only marks would be deleted.
    pub fn next(&self, entries: u64) -> Option<Content> {
        let more = entries.saturating_sub(self.count);
        let gap = Gap { facts: self.facts.saturating_add(more), reason: PRUNED.to_owned() };
        (more > 0).then_some(Content::Gap(gap))
    }
}

/// Returns the estimated size of these tapes.
pub fn weight(tapes: &[TapeRow]) -> u64 {
    tapes.iter().map(TapeRow::bytes).sum()
}

/// Selects entries older than `cutoff`. The tapes come newest first.
pub fn by_age<M: Measure>(
    measure: &mut M,
    scale: &Scale,
    tapes: Vec<TapeRow>,
    cutoff: u64,
    now: u64,
) -> Result<Vec<Removal>, M::Error> {
    let mut steps = Vec::new();
    for tape in tapes.into_iter().rev() {
        let all_old = tape.last_at < cutoff;
        if all_old && tape.may_go(now) {
            steps.push(scale.whole(tape));
        } else if all_old && tape.entries > 0 {
            let end = tape.last_seq + 1;
            steps.push(scale.below(measure, tape, end)?);
        } else if tape.first_at < cutoff && !tape.disordered {
            let end = measure.place_of(&tape, cutoff)?;
            steps.push(scale.below(measure, tape, end)?);
        }
    }
    steps.retain(|step| step.below.is_none() || step.entries > 0);
    Ok(steps)
}

/// Selects entries whose deletion frees `excess` bytes, apart from the tapes in `gone`. The tapes come newest first.
pub fn by_size<M: Measure>(
    measure: &mut M,
    scale: &Scale,
    mut tapes: Vec<TapeRow>,
    excess: u64,
    now: u64,
    gone: &[String],
) -> Result<Vec<Removal>, M::Error> {
    tapes.retain(|tape| tape.entries > 0 && !gone.contains(&tape.info.id));
    let mut left = excess;
    let mut steps = Vec::new();
    for tape in tapes.into_iter().rev() {
        if left == 0 {
            break;
        }
        let size = scale.bytes(tape.bytes());
        let of_entries = tape.of_entries();
        let part = (u128::from(of_entries) * u128::from(left) / u128::from(size.max(1))) as u64;
        // Take a little more, so that one round is usually enough.
        let part = part.saturating_add(part / 20).max(1);
        let all = part >= of_entries;
        let step = if all && tape.may_go(now) {
            scale.whole(tape)
        } else {
            let least = MIN_CUT.min(tape.entries / 10);
            let end = if all { tape.last_seq + 1 } else { measure.place_behind(&tape, least, part)? };
            // If the part frees less than estimated, let the next round take more of it before anything newer is
            // deleted.
            left = if all { left } else { 0 };
            Removal { marked: true, ..scale.below(measure, tape, end)? }
        };
        left = left.saturating_sub(step.bytes.max(1));
        steps.push(step);
    }
    Ok(steps)
}
