//! What policies say of an entry whose URI servers read in several ways: they have to permit all of them.

use super::{Circumstances, Known, Policies, Prepared, Verdict};
use signalbox_engine::Caller;
use signalbox_engine::catalog::{EntryRef, Style};
use signalbox_engine::subject_names::SubjectNames;

/// Most readings with which what is prepared is worth keeping.
const MAX_KEPT: usize = 4;

/// What is known of a caller and an entry before there are arguments, for every reading of the entry's URI.
#[derive(Debug)]
pub struct PreparedReadings {
    written: Prepared,
    /// The entry itself with another `uri`. A policy that names the entry as it is written is for all of its readings.
    read: Vec<Prepared>,
    /// The entry that other policies may name so. Nothing is lacking if none does.
    named: Vec<Prepared>,
}

impl PreparedReadings {
    /// True if the caller finds the entry in lists.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.written.is_listed()
            && self.read.iter().all(Prepared::is_listed)
            && !self.named.iter().any(Prepared::is_barred)
    }

    /// True if no grant can show it: a policy forbids a reading of it, whatever the arguments.
    #[must_use]
    pub fn is_barred(&self) -> bool {
        self.all().any(Prepared::is_barred)
    }

    /// True if it is small enough to be kept for each caller and entry.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.read.len() <= MAX_KEPT
    }

    fn all(&self) -> impl Iterator<Item = &Prepared> {
        std::iter::once(&self.written).chain(&self.read).chain(&self.named)
    }
}

impl Policies {
    /// Picks the policies that could apply when this caller uses this entry, however it is read. `None` if Cedar cannot hold its
    /// names, or it cannot be told how servers read it.
    #[must_use]
    pub fn prepare_readings(
        &self,
        caller: &Caller,
        entry: &EntryRef<'_>,
        known: &Known<'_>,
    ) -> Option<PreparedReadings> {
        let mut all = PreparedReadings {
            written: self.prepare(caller, entry, entry.name, known)?,
            read: Vec::new(),
            named: Vec::new(),
        };
        if entry.kind.style() != Style::Uri {
            return Some(all);
        }
        let named = |uri: &str| self.prepare(caller, &EntryRef { name: uri, ..*entry }, uri, known);
        let names = SubjectNames::new(Style::Uri, entry.name.into(), None);
        for uri in names.readings()? {
            all.read.push(self.prepare(caller, entry, uri, known)?);
            all.named.push(named(uri)?);
        }
        // Some servers cut a slash at the end off.
        for uri in std::iter::once(entry.name).chain(names.readings()?).filter_map(|uri| uri.strip_suffix('/')) {
            all.named.push(named(uri)?);
        }
        Some(all)
    }

    /// What the policies say about a use of a prepared entry with these arguments, a JSON object: the worst that they say of any
    /// reading.
    #[must_use]
    pub fn decide_readings(
        &self,
        prepared: &PreparedReadings,
        arguments: Option<&[u8]>,
        around: &Circumstances,
    ) -> Verdict {
        let mut worst = self.decide(&prepared.written, arguments, around);
        for one in &prepared.read {
            worst = worst.max(self.decide(one, arguments, around));
        }
        for one in &prepared.named {
            let verdict = self.decide(one, arguments, around);
            if !matches!(&verdict, Verdict::Forbid(grounds) if grounds.is_lack()) {
                worst = worst.max(verdict);
            }
        }
        worst
    }
}

impl Verdict {
    /// The worse of the two; this one if they are alike.
    fn max(self, other: Self) -> Self {
        let rank = |verdict: &Self| match verdict {
            Self::Permit(_) => 0,
            Self::Ask(_) => 1,
            Self::Forbid(grounds) if grounds.is_lack() => 2,
            Self::Forbid(_) => 3,
        };
        if rank(&other) > rank(&self) { other } else { self }
    }
}
