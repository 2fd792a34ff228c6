//! Joins text whose characters, or short groups of them, have the same separators in between.

use super::{Emit, MIN_PRINTABLE, TextEncoding};
use std::ops::{ControlFlow, Range};

/// Distances between separators that are recognised, in characters.
const PERIODS: std::ops::RangeInclusive<usize> = 2..=6;
/// Minimum number of equal separators at the same distance.
const MIN_SEPARATORS: usize = 3;

/// Row of equal separators at the same distance.
#[derive(Clone, Default)]
struct SeparatorRow {
    separator: char,
    count: usize,
    /// Index of the last separator.
    last: usize,
    /// Place from the first character of the first group to the end of the last separator.
    range: Range<usize>,
}

/// Search for the regions of one period.
struct PeriodSearch<'t> {
    text: &'t str,
    period: usize,
    /// Row of each phase, which is the place of a separator within the period.
    rows: Vec<SeparatorRow>,
    /// End of the last region that was emitted, without the group after it.
    emitted: usize,
}

/// Emits the joined text of each region.
pub(super) fn decode(text: &str, emit: &mut Emit<'_>) -> ControlFlow<()> {
    let new = |period| PeriodSearch { text, period, rows: vec![SeparatorRow::default(); period], emitted: 0 };
    let mut searches: Vec<PeriodSearch<'_>> = PERIODS.map(new).collect();
    // Places of the latest characters.
    let mut starts = [0; 8];
    for (index, (at, character)) in text.char_indices().enumerate() {
        if let Some(start) = starts.get_mut(index % 8) {
            *start = at;
        }
        if character.is_alphanumeric() {
            continue;
        }
        for search in &mut searches {
            let first = (index + 1).saturating_sub(search.period);
            let group = starts.get(first % 8).copied().unwrap_or(at);
            search.add(character, index, group..at + character.len_utf8(), emit)?;
        }
    }
    searches.iter_mut().try_for_each(|search| search.finish_all(emit))
}

impl PeriodSearch<'_> {
    /// Adds a separator, with the place of its group and itself.
    fn add(&mut self, separator: char, index: usize, place: Range<usize>, emit: &mut Emit<'_>) -> ControlFlow<()> {
        let phase = index % self.period;
        let Some(row) = self.rows.get_mut(phase) else { return ControlFlow::Continue(()) };
        if row.count > 0 && row.separator == separator && row.last + self.period == index {
            (row.count, row.last, row.range.end) = (row.count + 1, index, place.end);
            return ControlFlow::Continue(());
        }
        let row = std::mem::replace(row, SeparatorRow { separator, count: 1, last: index, range: place });
        self.finish(&row, emit)
    }

    fn finish_all(&mut self, emit: &mut Emit<'_>) -> ControlFlow<()> {
        let rows = std::mem::take(&mut self.rows);
        rows.iter().try_for_each(|row| self.finish(row, emit))
    }

    /// Emits the text of a row that is long enough, unless a row of another phase gave it already.
    fn finish(&mut self, row: &SeparatorRow, emit: &mut Emit<'_>) -> ControlFlow<()> {
        if row.count < MIN_SEPARATORS || row.range.start < self.emitted {
            return ControlFlow::Continue(());
        }
        let (joined, end) = join(self.text, &row.range, self.period);
        if joined.chars().filter(|character| character.is_alphanumeric()).take(MIN_PRINTABLE).count() < MIN_PRINTABLE {
            return ControlFlow::Continue(());
        }
        self.emitted = row.range.end;
        emit(joined, TextEncoding::Spaced, row.range.start..end)
    }
}

/// Joins the groups of a region and of the unfinished group after it. Returns the text and the end of that group.
fn join(text: &str, range: &Range<usize>, period: usize) -> (String, usize) {
    let characters: Vec<char> = text.get(range.clone()).unwrap_or_default().chars().collect();
    let mut common: Vec<Option<char>> = vec![None; period];
    for (phase, common) in common.iter_mut().enumerate() {
        // The region ends with a separator, so that phases count from its end.
        let mut column = characters.iter().rev().skip(phase).step_by(period);
        let first = column.next().copied().filter(|first| !first.is_alphanumeric());
        *common = first.filter(|first| column.all(|other| other == first));
    }
    let total = characters.len();
    let is_common = |index: usize| common.get((total - 1 - index) % period).is_some_and(Option::is_some);
    let kept = characters.iter().enumerate().filter(|(index, _)| !is_common(*index));
    let mut joined: String = kept.map(|(_, character)| *character).collect();
    let mut end = range.end;
    for (index, character) in text.get(end..).unwrap_or_default().chars().take(period - 1).enumerate() {
        // Characters after the last separator have the phases of a group that begins there.
        let phase = (period - 1 - index) % period;
        match common.get(phase).copied().flatten() {
            Some(separator) if separator == character => {}
            Some(_) => break,
            None => joined.push(character),
        }
        end += character.len_utf8();
    }
    (joined, end)
}
