//! Compares the messages of aligned calls.

use super::alignment::AlignmentStep;
use super::names::{Name, Names};
use super::tape_index::{Call, Message, TapeIndex};
use super::{CallChange, Fate, FieldChange, MAX_FIELDS, Part, TapeDiff, TapeDiffError, TapeDiffSettings};
use crate::contract::Tier;
use crate::diff::{DiffSide, Difference, Differences, Masks};
use serde_json::Value;

/// Maximum size of a value included in full, in bytes of JSON.
const MAX_VALUE: usize = 2000;

/// State of a comparison.
pub(super) struct Comparer<'a> {
    pub settings: &'a TapeDiffSettings,
    /// Masks of the old and the new tape.
    pub masks: &'a [Masks; 2],
    pub names: &'a Names,
    pub found: TapeDiff,
}

impl Comparer<'_> {
    /// Compares one step of the alignment and records the differences.
    pub fn step(&mut self, step: AlignmentStep, old: &mut TapeIndex, new: &mut TapeIndex) -> Result<(), TapeDiffError> {
        let (fate, i, j) = match step {
            AlignmentStep::Paired(i, j) => (Fate::Paired, Some(i), Some(j)),
            AlignmentStep::Moved(i, j) => (Fate::Moved, Some(i), Some(j)),
            AlignmentStep::Rewritten(i, j) => (Fate::Rewritten, Some(i), Some(j)),
            AlignmentStep::Removed(i) => (Fate::Removed, Some(i), None),
            AlignmentStep::Added(j) => (Fate::Added, None, Some(j)),
        };
        let before = i.and_then(|i| old.calls.get(i)).cloned();
        let now = j.and_then(|j| new.calls.get(j)).cloned();
        let Some(named) = before.as_ref().or(now.as_ref()) else { return Ok(()) };
        let Name { method, subject } = self.names.name(named.name);
        let mut change = CallChange {
            fate,
            old: before.as_ref().map(|call| call.number),
            new: now.as_ref().map(|call| call.number),
            method: method.to_string(),
            subject: subject.map(|subject| subject.to_string()),
            outcome: None,
            slower: None,
            fields: Vec::new(),
            more: 0,
            tier: Tier::Compatible,
        };
        if let (Some(before), Some(now)) = (&before, &now) {
            self.found.counts.paired += 1;
            self.pair(&mut change, before, old, now, new)?;
        }
        self.note(change);
        Ok(())
    }

    fn pair(
        &mut self,
        change: &mut CallChange,
        before: &Call,
        old: &mut TapeIndex,
        now: &Call,
        new: &mut TapeIndex,
    ) -> Result<(), TapeDiffError> {
        if change.fate == Fate::Rewritten {
            self.messages(change, Part::Request, &before.request, old, &now.request, new)?;
            if change.fields.is_empty() {
                // The requests differ only in redacted parts.
                change.fate = Fate::Paired;
            }
        }
        let mut is_left = before.request.is_left() || now.request.is_left();
        if let (Some(was), Some(is)) = (&before.answer, &now.answer) {
            is_left |= was.is_left() || is.is_left();
            let is_equal = was.digest.is_some() && was.digest == is.digest;
            if !is_equal {
                self.messages(change, Part::Answer, was, old, is, new)?;
            }
        }
        self.found.counts.not_comparable += u64::from(is_left);
        if before.outcome != now.outcome {
            change.outcome = Some((before.outcome.to_string(), now.outcome.to_string()));
            let worse = &*before.outcome == "success" && !matches!(&*now.outcome, "cancelled" | "open");
            change.tier = change.tier.max(if worse { Tier::Breaking } else { Tier::Changed });
        }
        if let Some(timing) = self.settings.timing {
            let slower = now.took > before.took.saturating_add(timing.budget)
                && now.took as f64 > before.took as f64 * timing.factor;
            change.slower = slower.then_some((before.took, now.took));
        }
        Ok(())
    }

    fn messages(
        &mut self,
        change: &mut CallChange,
        part: Part,
        was: &Message,
        old: &mut TapeIndex,
        is: &Message,
        new: &mut TapeIndex,
    ) -> Result<(), TapeDiffError> {
        let (Some(recorded), Some(now)) = (old.message(was)?, new.message(is)?) else { return Ok(()) };
        let recorded = DiffSide { message: &recorded, masks: was.redacted.then_some(&self.masks[0]) };
        let now = DiffSide { message: &now, masks: is.redacted.then_some(&self.masks[1]) };
        let Differences { list, more, masked, worst } = self.settings.comparison.compare_messages(recorded, now);
        self.found.counts.masked += masked;
        // A different request is a different call, which breaks no client.
        let tier = worst.map(|worst| if part == Part::Request { Tier::Changed } else { worst });
        change.tier = change.tier.max(tier.unwrap_or(Tier::Compatible));
        let room = MAX_FIELDS.saturating_sub(change.fields.len());
        change.more += more + list.len().saturating_sub(room) as u64;
        change.fields.extend(list.into_iter().take(room).map(|one| field(part, one)));
        Ok(())
    }

    fn note(&mut self, mut change: CallChange) {
        let counts = &mut self.found.counts;
        match change.fate {
            Fate::Moved => counts.moved += 1,
            Fate::Removed => counts.removed += 1,
            Fate::Added => counts.added += 1,
            Fate::Paired | Fate::Rewritten => {}
        }
        counts.slower += u64::from(change.slower.is_some());
        let is_place = match change.fate {
            Fate::Paired => false,
            Fate::Moved => !self.settings.any_order,
            Fate::Rewritten | Fate::Removed | Fate::Added => true,
        };
        let is_change = change.outcome.is_some() || !change.fields.is_empty() || change.slower.is_some();
        if !is_place && !is_change {
            return;
        }
        if is_place || change.slower.is_some() {
            change.tier = change.tier.max(Tier::Changed);
        }
        counts.differing += 1;
        counts.breaking += u64::from(change.tier == Tier::Breaking);
        if self.found.calls.len() < self.settings.limit {
            self.found.calls.push(change);
        }
    }
}

fn field(part: Part, one: Difference) -> FieldChange {
    let shown = one.shown();
    let tier = if part == Part::Request { Tier::Changed } else { one.tier() };
    let small = |value: Option<Value>| value.filter(|value| value.to_string().len() <= MAX_VALUE);
    FieldChange {
        part,
        pointer: one.pointer,
        kind: one.kind,
        tier,
        recorded: shown.recorded,
        new: shown.new,
        values: [small(one.recorded), small(one.new)],
    }
}
