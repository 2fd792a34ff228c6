//! Decides what to delete so that a store keeps to its retention, oldest first.

use crate::tape_row::{ENTRY_BYTES, TapeRow};
use signalbox_engine::record::{Content, Gap};

/// Fewer entries are not forgotten at a time, so that every round gets on.
const MIN_CUT: u64 = 100;

/// Why entries at the beginning of a tape are missing: there was no room for them.
const PRUNED: &str = "pruned";

/// One thing to forget.
pub struct Removal {
    /// Of this tape.
    pub tape: TapeRow,
    /// Everything below this place; none for the whole tape.
    pub below: Option<u64>,
    /// True if the tape says afterwards that its beginning is missing. What is too old is not missed.
    pub marked: bool,
    /// How many entries that are.
    pub entries: u64,
    /// About how many bytes.
    pub bytes: u64,
}

/// What a store can tell of the inside of a tape.
pub trait Measure {
    /// What can go wrong.
    type Error;

    /// The first place at or after a time. Asked only where the clock of the tape does not go backwards.
    fn place_of(&mut self, tape: &TapeRow, time: u64) -> Result<u64, Self::Error>;

    /// The place after the first entries that are so many and take so many bytes; the one after the last where all are less.
    fn place_behind(&mut self, tape: &TapeRow, entries: u64, bytes: u64) -> Result<u64, Self::Error>;

    /// How many entries lie below a place, and how many bytes they keep.
    fn below(&mut self, tape: &TapeRow, place: u64) -> Result<(u64, u64), Self::Error>;
}

/// Relates bodies to bytes of the whole store.
pub struct Scale {
    used: u64,
    weight: u64,
}

impl Scale {
    /// A scale for these tapes, all there are, that take `used` bytes together.
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

/// The marks of earlier cuts among entries that are forgotten; see [`Removal::marked`].
#[derive(Default, Debug)]
pub struct Marks {
    /// How many.
    pub count: u64,
    facts: u64,
}

impl Marks {
    /// One more gap that is forgotten, which may be no such mark.
    pub fn add(&mut self, content: &Content) {
        if let Content::Gap(Gap { facts, reason }) = content
            && reason == PRUNED
        {
            self.count += 1;
            self.facts = self.facts.saturating_add(*facts);
        }
    }

    /// The mark that takes the place of so many entries, these marks included; none if nothing else is forgotten.
    pub fn next(&self, entries: u64) -> Option<Content> {
        let more = entries.saturating_sub(self.count);
        let gap = Gap { facts: self.facts.saturating_add(more), reason: PRUNED.to_owned() };
        (more > 0).then_some(Content::Gap(gap))
    }
}

/// About how many bytes these tapes take.
pub fn weight(tapes: &[TapeRow]) -> u64 {
    tapes.iter().map(TapeRow::bytes).sum()
}

/// What is older than `cutoff`. The tapes come newest first.
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

/// What makes room for `excess` bytes, apart from tapes that go anyway. The tapes come newest first.
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
        // A little more, so that one round is enough as a rule.
        let part = part.saturating_add(part / 20).max(1);
        let all = part >= of_entries;
        let step = if all && tape.may_go(now) {
            scale.whole(tape)
        } else {
            let least = MIN_CUT.min(tape.entries / 10);
            let end = if all { tape.last_seq + 1 } else { measure.place_behind(&tape, least, part)? };
            // Where a part is less than it seemed, the next round takes more of it, before anything newer goes.
            left = if all { left } else { 0 };
            Removal { marked: true, ..scale.below(measure, tape, end)? }
        };
        left = left.saturating_sub(step.bytes.max(1));
        steps.push(step);
    }
    Ok(steps)
}
