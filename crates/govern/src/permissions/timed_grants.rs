//! Grants that expire: they give a caller the use of some entries for a while, or break the glass.
//!
//! A grant makes up for a missing role or `permit`, and counts as consent where approval is needed. It does not lift
//! what a role denies or a policy forbids. A break-glass grant allows everything that is not switched off.

use signalbox_engine::catalog::EntryRef;
use signalbox_engine::chain::{EntryNames, EntryPattern};
use std::sync::Arc;

/// Prefix of the name of a break-glass grant.
pub const BREAK_GLASS: &str = "break_glass:";

/// Permission with an end, for one principal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimedGrant {
    /// Name in decisions: `grant:ID`, or `break_glass:ID`.
    pub name: Arc<str>,
    /// Principal that holds it.
    pub to: Box<str>,
    /// Entries that it allows. Ignored if it breaks the glass.
    pub entries: Vec<EntryPattern>,
    /// End of the grant, in milliseconds since 1970.
    pub until_ms: u64,
    /// True if it allows everything that is not switched off.
    pub breaks_glass: bool,
}

impl TimedGrant {
    fn covers(&self, principal: &str, entry: &EntryNames<'_>) -> bool {
        *self.to == *principal && (self.breaks_glass || self.entries.iter().any(|pattern| pattern.covers(entry)))
    }
}

/// Grants of all principals that are in force.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TimedGrants(pub Vec<Arc<TimedGrant>>);

impl TimedGrants {
    /// Returns the grant that lets this principal use this entry. Prefers a break-glass grant, then the one that lasts
    /// longest.
    #[must_use]
    pub fn of(&self, principal: &str, entry: &EntryRef<'_>) -> Option<&Arc<TimedGrant>> {
        let names = EntryNames::of(entry);
        let all = self.0.iter().filter(|grant| grant.covers(principal, &names));
        all.max_by_key(|grant| (grant.breaks_glass, grant.until_ms))
    }

    /// Returns true if this principal is granted anything of this backend.
    #[must_use]
    pub fn shows_backend(&self, principal: &str, backend: &str) -> bool {
        let shows = |grant: &TimedGrant| {
            grant.breaks_glass || grant.entries.iter().any(|pattern| pattern.fits_backend(backend))
        };
        self.0.iter().any(|grant| *grant.to == *principal && shows(grant))
    }

    /// Returns true if this principal has a break-glass grant.
    #[must_use]
    pub fn breaks_glass(&self, principal: &str) -> bool {
        self.0.iter().any(|grant| grant.breaks_glass && *grant.to == *principal)
    }

    /// Returns the time at which the next grant ends, in milliseconds since 1970.
    #[must_use]
    pub fn next_end(&self) -> Option<u64> {
        self.0.iter().map(|grant| grant.until_ms).min()
    }

    /// Returns the grants that end after this time.
    #[must_use]
    pub fn after(&self, unix_ms: u64) -> Self {
        Self(self.0.iter().filter(|grant| grant.until_ms > unix_ms).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::catalog::ListKind;

    fn grant(name: &str, to: &str, entries: &[&str], until_ms: u64) -> Arc<TimedGrant> {
        let entries = entries.iter().map(|text| EntryPattern::new(text)).collect();
        Arc::new(TimedGrant { name: name.into(), to: to.into(), entries, until_ms, breaks_glass: false })
    }

    #[test]
    fn a_grant_is_for_one_principal_and_its_entries_and_ends() {
        let glass = TimedGrant { breaks_glass: true, ..(*grant("g", "eve", &[], 5)).clone() };
        let all = TimedGrants(vec![
            grant("a", "ada", &["files/write"], 10),
            grant("b", "ada", &["files"], 20),
            Arc::new(glass),
        ]);
        let named = |who: &str, backend, name| {
            let entry = EntryRef { kind: ListKind::Tools, backend, name, definition: None };
            all.of(who, &entry).map(|grant| grant.name.to_string())
        };
        assert_eq!(named("ada", "files", "write").as_deref(), Some("b"), "the one that lasts longest");
        assert_eq!((named("ada", "db", "get"), named("bob", "files", "write")), (None, None));
        assert_eq!(named("eve", "db", "get").as_deref(), Some("g"));
        assert!(all.shows_backend("ada", "files") && !all.shows_backend("ada", "db") && all.shows_backend("eve", "db"));
        assert!(all.breaks_glass("eve") && !all.breaks_glass("ada"));
        assert_eq!((all.next_end(), all.after(10).0.len(), all.after(20).next_end()), (Some(5), 1, None));
    }
}
