//! Finds the present counterpart of a recorded value by its context.
//!
//! | the new answer has | with the same around it | then |
//! |---|---|---|
//! | the value | yes | it is kept |
//! | the value | no, and something else has | doubt: it may be another object's now |
//! | the value, which is no serial number | no | it is kept: the object changed |
//! | a serial number | no | doubt: it may be another object's now |
//! | other values of the list again, but not this one | | doubt: the object is gone |
//! | none of the values of the list | yes, exactly one on both sides | the new value takes its place |
//! | none of the values of the list | otherwise | doubt |
//!
//! A list read page by page is treated as one answer. While pages are missing, a value may be on one of them. A new
//! value then replaces it only if the pages read so far have the same contexts as in the recording.

use super::answer_values::{AnswerValue, AnswerValues, IN_LINE};
use super::paged_lists::{PagedList, tells_of_further_page};
use super::references::{is_id_like, is_serial};
use crate::paths::Paths;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Reason why a recorded value has no certain counterpart.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// Another item has the value, or its item has another value.
    Moved,
    /// Its item changed, and a serial number may have been reused.
    Changed,
    /// Other items of its list are unchanged, but its own is missing.
    Gone,
    /// Only this value distinguishes several items of the recorded answer.
    Twins,
    /// Several items of the new answer match.
    Several,
    /// No item of the new answer matches.
    Unknown,
    /// The value may be on a page that was not read.
    Unread,
}

impl Doubt {
    /// Returns a description to follow the value.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Moved => "stands beside other values now, so that it may name another object",
            Self::Changed => "stands beside other values now, and such a number may be given to another object",
            Self::Gone => "is gone from a list whose other ids are as recorded",
            Self::Twins => "is all that told two recorded items apart",
            Self::Several => "may be any of several items of the new answer",
            Self::Unknown => "came with an item that the new answer does not have",
            Self::Unread => "may be on a page of its list that was not read",
        }
    }

    /// Returns `true` if the new answer contradicts every reading, so that no other answer can resolve the doubt.
    pub(super) fn is_contrary(self) -> bool {
        matches!(self, Self::Moved | Self::Changed | Self::Gone)
    }
}

/// Evidence of two answers about one value.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pairing {
    pub value: String,
    /// First place of the value.
    pub place: String,
    pub outcome: Result<String, Doubt>,
    /// Set if the value looks like an id, by its form or its member's name.
    pub is_id_like: bool,
    /// Set if the value occurs only as a pointer to the next page, which names a position and no object.
    is_of_page: bool,
}

impl Pairing {
    /// Merges the evidence of another place.
    fn add(&mut self, other: &Self) {
        self.outcome = match (&self.outcome, &other.outcome) {
            // A short number may name two objects in one answer.
            (Err(doubt), _) | (_, Err(doubt)) if self.is_of_page != other.is_of_page || is_serial(&self.value) => {
                Err(*doubt)
            }
            (one, other) => combine_outcomes(one, other),
        };
        self.is_id_like |= other.is_id_like;
        self.is_of_page &= other.is_of_page;
    }
}

/// Recorded answer and new answer, prepared for pairing.
pub(super) struct AnswerPair {
    then: AnswerValues,
    places: HashMap<String, Sides>,
    all_now: HashSet<String>,
    /// Not set if pages of the list are missing.
    is_complete: bool,
}

/// Values at one place in both answers.
#[derive(Default)]
struct Sides {
    then: Vec<ValueContext>,
    now: Vec<ValueContext>,
}

/// Value with the digest of its context.
struct ValueContext {
    value: String,
    signature: u64,
    /// Set if its page was also read in this run.
    is_read: bool,
}

impl AnswerPair {
    /// Pairs two results. `wanted` selects the recorded values to look up. `current` returns the counterpart of a value
    /// so far.
    pub(super) fn new(
        then: &Value,
        now: &Value,
        ignored: &Paths,
        wanted: impl Fn(&AnswerValue) -> bool,
        current: impl Fn(&str) -> String,
    ) -> Self {
        let mut then = AnswerValues::of(then, ignored);
        then.translate(current);
        Self::of(then, AnswerValues::of(now, ignored), true, |_| true, wanted)
    }

    /// Pairs all recorded pages of a list with the pages read in this run.
    pub(super) fn of_pages(
        list: &PagedList,
        ignored: &Paths,
        wanted: impl Fn(&AnswerValue) -> bool,
        current: impl Fn(&str) -> String,
    ) -> Self {
        let mut then = AnswerValues::of_pages(list.pages.values().map(|page| &page.recorded).enumerate(), ignored);
        then.translate(current);
        let read = || list.pages.values().enumerate().filter_map(|(number, page)| Some((number, page.new.as_ref()?)));
        let now = AnswerValues::of_pages(read(), ignored);
        let numbers: HashSet<usize> = read().map(|(number, _)| number).collect();
        let is_complete = numbers.len() == list.pages.len() && !now.goes_on;
        Self::of(then, now, is_complete, |page| numbers.contains(&page), wanted)
    }

    fn of(
        mut then: AnswerValues,
        mut now: AnswerValues,
        is_complete: bool,
        is_read: impl Fn(usize) -> bool,
        wanted: impl Fn(&AnswerValue) -> bool,
    ) -> Self {
        let volatile = volatile_places(&then, &now, wanted);
        then.sum_up(&volatile);
        now.sum_up(&volatile);
        let mut places: HashMap<String, Sides> = HashMap::new();
        let seen = |values: &AnswerValues, value: &AnswerValue| ValueContext {
            value: value.value.clone(),
            signature: values.signature(value),
            is_read: is_read(value.page),
        };
        for value in &then.values {
            places.entry(value.place.clone()).or_default().then.push(seen(&then, value));
        }
        for value in &now.values {
            places.entry(value.place.clone()).or_default().now.push(seen(&now, value));
        }
        let all_now = now.values.iter().map(|value| value.value.clone()).collect();
        Self { then, places, all_now, is_complete }
    }

    /// Pairs each wanted value. `current` returns the counterpart of a value so far.
    pub(super) fn pairings(
        &self,
        wanted: impl Fn(&AnswerValue) -> bool,
        current: impl Fn(&str) -> String,
        is_kept_place: impl Fn(&str) -> bool,
    ) -> Vec<Pairing> {
        let mut found: Vec<Pairing> = Vec::new();
        let mut index: HashMap<&str, usize> = HashMap::new();
        let mut looked_at = HashSet::new();
        for value in self.then.values.iter().filter(|value| wanted(value)) {
            if !looked_at.insert((&*value.place, &*value.value)) {
                continue;
            }
            let pairing = Pairing {
                value: value.value.clone(),
                place: value.place.clone(),
                outcome: self.outcome(value, &current(&value.value), is_kept_place(&value.place)),
                is_id_like: is_id_like(&value.value, &value.member),
                is_of_page: tells_of_further_page(&value.member),
            };
            match index.get(&*value.value).and_then(|at| found.get_mut(*at)) {
                Some(one) => one.add(&pairing),
                None => {
                    index.insert(&value.value, found.len());
                    found.push(pairing);
                }
            }
        }
        found
    }

    fn outcome(&self, value: &AnswerValue, current: &str, is_kept_place: bool) -> Result<String, Doubt> {
        let none = Sides::default();
        let Sides { then, now } = self.places.get(&value.place).unwrap_or(&none);
        let own: HashSet<u64> = then.iter().filter(|one| one.value == value.value).map(|one| one.signature).collect();
        let mut kept = now.iter().filter(|one| one.value == current).peekable();
        let alike: HashSet<&str> = now
            .iter()
            .filter(|one| own.contains(&one.signature) && one.value != current)
            .map(|one| &*one.value)
            .collect();
        let others = || then.iter().filter(|one| one.value != value.value);
        if kept.peek().is_some() {
            let kept: HashSet<u64> = kept.map(|one| one.signature).collect();
            // The head and the lines of a text share their places, so a number may name an object in each of them.
            let has_moved = is_serial(current)
                && value.place.contains(IN_LINE)
                && !own.is_subset(&kept)
                && (!alike.is_empty() || !kept.is_subset(&own));
            return match () {
                () if has_moved => Err(Doubt::Moved),
                // A short number that replaced another one may be part of a new count from one.
                () if current != value.value && is_serial(current) && !kept.is_disjoint(&own) => {
                    let has_twin = others().any(|one| own.contains(&one.signature));
                    match (alike.is_empty(), has_twin) {
                        (true, false) => Ok(current.to_owned()),
                        (true, true) => Err(Doubt::Twins),
                        (false, _) => Err(Doubt::Several),
                    }
                }
                () if !kept.is_disjoint(&own) => Ok(current.to_owned()),
                // A value shared by several items identifies none of them.
                () if own.len() > 1 && !is_serial(current) => Ok(current.to_owned()),
                () if !alike.is_empty() || others().any(|one| kept.contains(&one.signature)) => Err(Doubt::Moved),
                () if is_serial(current) => Err(Doubt::Changed),
                () => Ok(current.to_owned()),
            };
        }
        if !is_serial(current) && self.all_now.contains(current) {
            return if alike.is_empty() { Ok(current.to_owned()) } else { Err(Doubt::Moved) };
        }
        let is_there_again =
            |one: &ValueContext| is_id_like(&one.value, "") && now.iter().any(|new| new.value == one.value);
        if is_kept_place || others().any(is_there_again) {
            return Err(if self.is_complete { Doubt::Gone } else { Doubt::Unread });
        }
        if others().any(|one| own.contains(&one.signature)) {
            return Err(Doubt::Twins);
        }
        let mut alike = alike.into_iter();
        match (alike.next(), alike.next()) {
            (Some(_), None) if !self.is_complete && !are_alike(then, now) => Err(Doubt::Unread),
            (Some(new), None) if is_id_like(&value.value, &value.member) => Ok(new.to_owned()),
            (Some(_), Some(_)) => Err(Doubt::Several),
            _ => Err(Doubt::Unknown),
        }
    }
}

/// Returns `true` if the values read so far have the same contexts, equally often.
fn are_alike(then: &[ValueContext], now: &[ValueContext]) -> bool {
    let sorted = |values: &[ValueContext]| {
        let mut signatures: Vec<u64> = values.iter().filter(|one| one.is_read).map(|one| one.signature).collect();
        signatures.sort_unstable();
        signatures
    };
    sorted(then) == sorted(now)
}

/// Merges the evidence of further places.
pub(super) fn merge(pairings: &mut Vec<Pairing>, others: Vec<Pairing>) {
    for other in others {
        match pairings.iter_mut().find(|pairing| pairing.value == other.value) {
            Some(pairing) => pairing.add(&other),
            None => pairings.push(other),
        }
    }
}

/// Returns the places where the server generates new values: those of wanted values and tokens, if no old value is left
/// there.
fn volatile_places(then: &AnswerValues, now: &AnswerValues, wanted: impl Fn(&AnswerValue) -> bool) -> HashSet<String> {
    let (before, after) = (then.by_place(), now.by_place());
    let wanted = then.values.iter().filter(|value| wanted(value));
    let candidates: HashSet<&str> =
        wanted.flat_map(|value| then.word_places(value)).chain(then.token_places()).collect();
    let is_new = |place: &&str| match (before.get(place), after.get(place)) {
        (Some(before), Some(after)) => before.is_disjoint(after),
        _ => false,
    };
    candidates.into_iter().filter(is_new).map(ToOwned::to_owned).collect()
}

/// Combines the evidence of two places in one answer.
fn combine_outcomes(one: &Result<String, Doubt>, other: &Result<String, Doubt>) -> Result<String, Doubt> {
    match (one, other) {
        (Err(doubt), _) | (_, Err(doubt)) if doubt.is_contrary() => Err(*doubt),
        (Ok(one), Ok(other)) if one != other => Err(Doubt::Moved),
        (Ok(new), _) | (_, Ok(new)) => Ok(new.clone()),
        (Err(doubt), Err(_)) => Err(*doubt),
    }
}
