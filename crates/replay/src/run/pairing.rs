//! Finds what stands now for a value of a recorded answer, by what stands around it.
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

use super::answer_values::{AnswerValue, AnswerValues};
use super::references::{is_id_like, is_serial};
use crate::paths::Paths;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The reason why no value certainly stands for a recorded one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// Another item has it, or its item has another one.
    Moved,
    /// Its item has changed, and a serial number may be another object's now.
    Changed,
    /// Other items of its list are there again, and its own is not.
    Gone,
    /// The recorded answer has several items that only this value tells apart.
    Twins,
    /// The new answer has several items that may be its own.
    Several,
    /// The new answer has no item like its own.
    Unknown,
}

impl Doubt {
    /// The doubt in words, after the value.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Moved => "stands beside other values now, so that it may name another object",
            Self::Changed => "stands beside other values now, and such a number may be given to another object",
            Self::Gone => "is gone from a list whose other ids are as recorded",
            Self::Twins => "is all that told two recorded items apart",
            Self::Several => "may be any of several items of the new answer",
            Self::Unknown => "came with an item that the new answer does not have",
        }
    }

    /// True if the new answer speaks against every reading, so that no other answer settles it.
    pub(super) fn is_contrary(self) -> bool {
        matches!(self, Self::Moved | Self::Changed | Self::Gone)
    }
}

/// The evidence of two answers about one value.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pairing {
    pub value: String,
    /// Its first place.
    pub place: String,
    pub outcome: Result<String, Doubt>,
    /// True for a name by form or by member.
    pub is_id_like: bool,
}

/// A recorded answer beside the new one.
pub(super) struct AnswerPair {
    then: AnswerValues,
    places: HashMap<String, Sides>,
    all_now: HashSet<String>,
}

/// The values of one place in both answers.
#[derive(Default)]
struct Sides {
    then: Vec<ValueContext>,
    now: Vec<ValueContext>,
}

/// A value at some place, with the digest of what is around it.
struct ValueContext {
    value: String,
    signature: u64,
}

impl AnswerPair {
    /// Pairs two results. `wanted` says which recorded values are looked for.
    pub(super) fn new(then: &Value, now: &Value, ignored: &Paths, wanted: impl Fn(&AnswerValue) -> bool) -> Self {
        let (mut then, mut now) = (AnswerValues::of(then, ignored), AnswerValues::of(now, ignored));
        let volatile = volatile_places(&then, &now, wanted);
        then.sum_up(&volatile);
        now.sum_up(&volatile);
        let mut places: HashMap<String, Sides> = HashMap::new();
        let seen = |values: &AnswerValues, value: &AnswerValue| ValueContext {
            value: value.value.clone(),
            signature: values.signature(value),
        };
        for value in &then.values {
            places.entry(value.place.clone()).or_default().then.push(seen(&then, value));
        }
        for value in &now.values {
            places.entry(value.place.clone()).or_default().now.push(seen(&now, value));
        }
        let all_now = now.values.iter().map(|value| value.value.clone()).collect();
        Self { then, places, all_now }
    }

    /// Pairs each wanted value. `current` returns the value that stood for it until now.
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
            let outcome = self.outcome(value, &current(&value.value), is_kept_place(&value.place));
            let is_id_like = is_id_like(&value.value, &value.member);
            match index.get(&*value.value).and_then(|at| found.get_mut(*at)) {
                Some(pairing) => {
                    pairing.outcome = combined(&pairing.outcome, &outcome);
                    pairing.is_id_like |= is_id_like;
                }
                None => {
                    index.insert(&value.value, found.len());
                    let (value, place) = (value.value.clone(), value.place.clone());
                    found.push(Pairing { value, place, outcome, is_id_like });
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
            return match () {
                () if !kept.is_disjoint(&own) => Ok(current.to_owned()),
                // A value that several items share names none of them.
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
            return Err(Doubt::Gone);
        }
        if others().any(|one| own.contains(&one.signature)) {
            return Err(Doubt::Twins);
        }
        let mut alike = alike.into_iter();
        match (alike.next(), alike.next()) {
            (Some(new), None) if is_id_like(&value.value, &value.member) => Ok(new.to_owned()),
            (Some(_), Some(_)) => Err(Doubt::Several),
            _ => Err(Doubt::Unknown),
        }
    }
}

/// Places whose values a server makes up anew: those of wanted values and tokens, if no value is there again.
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

/// Combines the evidence of two places of one answer.
fn combined(one: &Result<String, Doubt>, other: &Result<String, Doubt>) -> Result<String, Doubt> {
    match (one, other) {
        (Err(doubt), _) | (_, Err(doubt)) if doubt.is_contrary() => Err(*doubt),
        (Ok(one), Ok(other)) if one != other => Err(Doubt::Moved),
        (Ok(new), _) | (_, Ok(new)) => Ok(new.clone()),
        (Err(doubt), Err(_)) => Err(*doubt),
    }
}
