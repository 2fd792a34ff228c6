//! Holds what readers are shown besides the entries of a tape against its verified entries: the tables of a store, and
//! the sessions that the head of a file lists.

use super::report::UncoveredRows;
use crate::file::MAX_SESSIONS;
use signalbox_engine::record::{
    Content, Entry, ExchangeRow, NotificationStats, SessionInfo, SessionRow, TapeTables, TapeTotals,
};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// First difference between what is shown and the entries, as a text for the user.
pub(super) type Difference = String;

/// State of the tape that decides which differences are legitimate.
#[derive(Copy, Clone, Debug)]
pub(super) struct TapeExtent {
    /// Number of the last entry that was pruned; 0 if none was.
    pub(super) pruned: u64,
    /// True if the tape ended before it was read.
    pub(super) ended: bool,
}

/// Tables of a store, beside those that the entries give.
#[derive(Debug)]
pub(super) struct StoredTables {
    shown: TapeTables,
    derived: TapeTables,
    /// Time of the first entry that is left.
    left_from: Option<u64>,
}

impl StoredTables {
    pub(super) fn new(shown: TapeTables) -> Self {
        Self { shown, derived: TapeTables::default(), left_from: None }
    }

    /// Adds a verified entry. Entries that were written after the tables were read do not count.
    pub(super) fn add(&mut self, entry: &Entry) {
        if entry.seq <= self.shown.totals.last_seq {
            self.left_from = self.left_from.or(Some(entry.at));
            self.derived.add(entry);
        }
    }

    /// Returns the first difference, and counts rows of pruned entries in `uncovered`.
    pub(super) fn compare(&self, extent: TapeExtent, uncovered: &mut UncoveredRows) -> Option<Difference> {
        let pruned = extent.pruned;
        self.sessions(pruned, uncovered)
            .or_else(|| self.exchanges(pruned, uncovered))
            .or_else(|| self.notifications())
            .or_else(|| self.totals(pruned))
    }

    fn sessions(&self, pruned: u64, uncovered: &mut UncoveredRows) -> Option<Difference> {
        for (number, row, derived) in merged(&self.shown.sessions, &self.derived.sessions) {
            let what = format!("session {number} in the table `sessions`");
            match (row, derived) {
                (Some(row), Some(derived)) => {
                    let member = session_member(&row.info, &derived.info).or_else(|| times(row, derived, pruned));
                    if let Some(member) = member {
                        return Some(changed(&what, member));
                    }
                }
                (Some(_), None) if pruned > 0 => uncovered.sessions += 1,
                (Some(_), None) => return Some(invented(&what)),
                // Pruning removes sessions that ended before the first entry that is left.
                (None, Some(derived)) if pruned > 0 && derived.ended < self.left_from && derived.ended.is_some() => {}
                (None, _) => return Some(missing(&what)),
            }
        }
        None
    }

    fn exchanges(&self, pruned: u64, uncovered: &mut UncoveredRows) -> Option<Difference> {
        for (number, row, derived) in merged(&self.shown.exchanges, &self.derived.exchanges) {
            let what = || format!("exchange {number} in the table `exchanges`");
            match (row, derived) {
                (Some(row), Some(derived)) => {
                    // Its beginning was pruned, and perhaps its end, before a last image.
                    let begun_before = row.first <= pruned;
                    let range =
                        [("first", row.first == derived.first || begun_before), ("last", row.last == derived.last)];
                    let member = first_unequal(&range);
                    match (member, end_member(row, derived)) {
                        (Some(member), _) => return Some(changed(&what(), member)),
                        (None, Some(_)) if begun_before && derived.outcome.is_none() => uncovered.exchanges += 1,
                        (None, Some(member)) => return Some(changed(&what(), member)),
                        (None, None) => {}
                    }
                }
                (Some(row), None) if row.last <= pruned => uncovered.exchanges += 1,
                (Some(_), None) => return Some(invented(&what())),
                (None, _) => return Some(missing(&what())),
            }
        }
        None
    }

    fn notifications(&self) -> Option<Difference> {
        merged(&self.shown.notifications, &self.derived.notifications).find_map(|(method, shown, derived)| {
            let count = |stats: Option<&NotificationStats>| stats.copied().unwrap_or_default();
            let (shown, derived) = (count(shown), count(derived));
            let member = [("came", shown.came == derived.came), ("went", shown.went == derived.went)];
            let member = first_unequal(&member)?;
            Some(changed(&format!("the count of `{method}` in the table `notifications`"), member))
        })
    }

    fn totals(&self, pruned: u64) -> Option<Difference> {
        let (shown, derived): (&TapeTotals, &TapeTotals) = (&self.shown.totals, &self.derived.totals);
        // Pruning leaves the times and the gaps of removed entries.
        let gone = pruned > 0;
        let earlier = derived.first_at.is_none() || shown.first_at <= derived.first_at || shown.disordered;
        let members = [
            ("entries", shown.entries == derived.entries),
            ("first_at", shown.first_at == derived.first_at || gone && earlier),
            ("last_at", shown.last_at == derived.last_at || gone && shown.last_at >= derived.last_at),
            ("last_seq", shown.last_seq == derived.last_seq.max(pruned)),
            ("disordered", shown.disordered == derived.disordered || gone && shown.disordered),
            ("messages of each kind", shown.messages == derived.messages),
            ("gaps", shown.gaps == derived.gaps || gone && shown.gaps >= derived.gaps),
            ("passed", shown.passed == derived.passed),
        ];
        Some(changed("the row of the tape in the table `tapes`", first_unequal(&members)?))
    }
}

/// Sessions that the head of a file lists, beside those that the entries describe.
#[derive(Debug)]
pub(super) struct ListedSessions {
    listed: Vec<(u64, SessionInfo)>,
    /// Descriptions of each session, in order.
    described: BTreeMap<u64, Vec<SessionInfo>>,
}

impl ListedSessions {
    pub(super) fn new(listed: Vec<(u64, SessionInfo)>) -> Self {
        Self { listed, described: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        let (Content::Session(info), Some(number)) = (&entry.content, entry.session) else { return };
        let known = self.described.entry(number).or_default();
        if known.last() != Some(info) {
            known.push(info.clone());
        }
    }

    /// Returns the first difference, and counts sessions of pruned entries in `uncovered`. The list of a tape that had
    /// not ended when it was copied may lag behind.
    pub(super) fn compare(&self, extent: TapeExtent, uncovered: &mut UncoveredRows) -> Option<Difference> {
        let mut seen = BTreeSet::new();
        for (number, info) in &self.listed {
            let what = format!("session {number} in the head");
            if !seen.insert(number) {
                return Some(format!("{what} stands there twice"));
            }
            match self.described.get(number).and_then(|all| Some((all, all.last()?))) {
                None if extent.pruned > 0 => uncovered.sessions += 1,
                None => return Some(invented(&what)),
                Some((all, _)) if !extent.ended && all.contains(info) => {}
                Some((_, last)) => {
                    if let Some(member) = session_member(info, last) {
                        return Some(changed(&what, member));
                    }
                }
            }
        }
        // Readers take the sessions from the entries if the head lists none.
        let whole = extent.ended && extent.pruned == 0 && !seen.is_empty() && seen.len() < MAX_SESSIONS;
        let left_out = self.described.keys().find(|number| !seen.contains(number)).filter(|_| whole)?;
        Some(missing(&format!("session {left_out} in the head")))
    }
}

/// Iterates over the keys of both maps in order, with what each has there.
fn merged<'a, K: Ord, V>(
    one: &'a BTreeMap<K, V>,
    other: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>, Option<&'a V>)> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (one.peek(), other.peek()) {
            (Some((left, _)), Some((right, _))) => left.cmp(right),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let left = if order.is_le() { one.next() } else { None };
        let right = if order.is_ge() { other.next() } else { None };
        let (key, _) = left.or(right)?;
        Some((key, left.map(|(_, value)| value), right.map(|(_, value)| value)))
    })
}

fn first_unequal(members: &[(&'static str, bool)]) -> Option<&'static str> {
    members.iter().find(|(_, equal)| !equal).map(|(member, _)| *member)
}

fn session_member(one: &SessionInfo, other: &SessionInfo) -> Option<&'static str> {
    first_unequal(&[
        ("external", one.external == other.external),
        ("client", one.client == other.client),
        ("client_version", one.client_version == other.client_version),
        ("revision", one.revision == other.revision),
        ("transport", one.transport == other.transport),
        ("proof", one.proof == other.proof),
        ("claims", one.claims == other.claims),
        ("address", one.address == other.address),
    ])
}

fn times(shown: &SessionRow, derived: &SessionRow, pruned: u64) -> Option<&'static str> {
    let gone = pruned > 0;
    first_unequal(&[
        ("began", shown.began == derived.began || gone && shown.began <= derived.began),
        ("ended", shown.ended == derived.ended || gone && derived.ended.is_none()),
    ])
}

fn end_member(one: &ExchangeRow, other: &ExchangeRow) -> Option<&'static str> {
    first_unequal(&[
        ("method", one.method == other.method),
        ("subject", one.subject == other.subject),
        ("outcome", one.outcome == other.outcome),
        ("well", one.well == other.well),
        ("took", one.took == other.took),
        ("bytes_in", one.bytes_in == other.bytes_in),
        ("bytes_out", one.bytes_out == other.bytes_out),
    ])
}

fn changed(what: &str, member: &str) -> Difference {
    format!("{what} is not as it was recorded: the entries have another `{member}`")
}

fn invented(what: &str) -> Difference {
    format!("{what} is not as it was recorded: no entry has it")
}

fn missing(what: &str) -> Difference {
    format!("{what} is not as it was recorded: entries have it, and it is missing")
}
