//! Decisions about entries whose URI servers read in several ways: policies have to permit every reading.

use super::{Circumstances, EntityAttributes, Policies, PolicyVerdict, PreparedPolicies};
use signalbox_engine::Caller;
use signalbox_engine::catalog::{EntryRef, NameStyle};
use signalbox_engine::subject_names::SubjectNames;

/// Maximum number of readings of an entry whose preparation is cached.
const MAX_KEPT: usize = 4;

/// Policies prepared for a caller and an entry, for every reading of the entry's URI, before the arguments are known.
#[derive(Debug)]
pub struct PreparedReadings {
    written: PreparedPolicies,
    /// The entry itself with another `uri`. A policy that names the entry as written applies to all of its readings.
    read: Vec<PreparedPolicies>,
    /// Entries that other policies may name by a reading. It is no denial if no policy permits them.
    named: Vec<PreparedPolicies>,
}

impl PreparedReadings {
    /// Returns true if the caller finds the entry in lists.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.written.is_listed()
            && self.read.iter().all(PreparedPolicies::is_listed)
            && !self.named.iter().any(PreparedPolicies::is_barred)
    }

    /// Returns true if no grant can show the entry: a policy forbids a reading of it, whatever the arguments.
    #[must_use]
    pub fn is_barred(&self) -> bool {
        self.all().any(PreparedPolicies::is_barred)
    }

    /// Returns true if it is small enough to be cached per caller and entry.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.read.len() <= MAX_KEPT
    }

    fn all(&self) -> impl Iterator<Item = &PreparedPolicies> {
        std::iter::once(&self.written).chain(&self.read).chain(&self.named)
    }
}

impl Policies {
    /// Selects the policies that could apply when this caller uses this entry, under every reading. `None` if Cedar
    /// cannot represent its names, or if its readings cannot be determined.
    #[must_use]
    pub fn prepare_readings(
        &self,
        caller: &Caller,
        entry: &EntryRef<'_>,
        known: &EntityAttributes<'_>,
    ) -> Option<PreparedReadings> {
        let mut all = PreparedReadings {
            written: self.prepare(caller, entry, entry.name, known)?,
            read: Vec::new(),
            named: Vec::new(),
        };
        if entry.kind.style() != NameStyle::Uri {
            return Some(all);
        }
        let named = |uri: &str| self.prepare(caller, &EntryRef { name: uri, ..*entry }, uri, known);
        let names = SubjectNames::new(NameStyle::Uri, entry.name.into(), None);
        for uri in names.readings()? {
            all.read.push(self.prepare(caller, entry, uri, known)?);
            all.named.push(named(uri)?);
        }
        // Some servers cut off a trailing slash.
        for uri in std::iter::once(entry.name).chain(names.readings()?).filter_map(|uri| uri.strip_suffix('/')) {
            all.named.push(named(uri)?);
        }
        Some(all)
    }

    /// Decides about a use of a prepared entry with these arguments, a JSON object. Returns the worst verdict over all
    /// readings.
    #[must_use]
    pub fn decide_readings(
        &self,
        prepared: &PreparedReadings,
        arguments: Option<&[u8]>,
        around: &Circumstances,
    ) -> PolicyVerdict {
        let mut worst = self.decide(&prepared.written, arguments, around);
        for one in &prepared.read {
            worst = worst.max(self.decide(one, arguments, around));
        }
        for one in &prepared.named {
            let verdict = self.decide(one, arguments, around);
            if !matches!(&verdict, PolicyVerdict::Forbid(grounds) if grounds.is_lack()) {
                worst = worst.max(verdict);
            }
        }
        worst
    }
}

impl PolicyVerdict {
    /// Returns the worse of the two verdicts; `self` if they rank the same.
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
