//! The head of a tape with the store's totals, and the lookup of a tape by its id, a prefix of it, or `last`.

use signalbox_engine::record::{StoreError, TapeInfo};

/// Age of the last entry from which the writer of an unfinished tape counts as dead.
const STALE: u64 = 7 * 24 * 3_600 * 1_000_000_000;

/// Estimated size of an entry besides its stored bytes, index included.
pub const ENTRY_BYTES: u64 = 120;

/// Head of a tape, with the store's totals.
#[derive(Clone, Debug)]
pub struct TapeRow {
    /// Number of the tape in the store.
    pub number: i64,
    /// Head of the tape.
    pub info: TapeInfo,
    pub entries: u64,
    /// Time of the first entry, or of the beginning if there is none.
    pub first_at: u64,
    /// Time of the last entry, or of the beginning if there is none.
    pub last_at: u64,
    /// Position of the last entry.
    pub last_seq: u64,
    /// True if the clock went backwards.
    pub disordered: bool,
    /// Last position that the search index covers.
    pub indexed: u64,
    /// Stored size of the bodies of its messages.
    pub kept: u64,
    /// Stored size of other bodies, and of extra attributes.
    pub aside: u64,
    /// Stored size of its sessions and names, if the query counted it.
    pub rest: u64,
}

impl TapeRow {
    /// Returns the estimated size of its entries.
    pub fn of_entries(&self) -> u64 {
        self.kept + self.aside + ENTRY_BYTES * self.entries
    }

    /// Returns the estimated size of the tape.
    pub fn bytes(&self) -> u64 {
        self.of_entries() + self.rest
    }

    /// Returns true if the whole tape may be deleted. A tape that is being written stays, but not all of its entries.
    pub fn may_go(&self, now: u64) -> bool {
        self.info.ended.is_some() || self.last_at < now.saturating_sub(STALE)
    }
}

/// Name for the newest tape.
pub const LAST: &str = "last";

/// Number of tapes to fetch to detect an ambiguous prefix and to list the candidates.
pub const SHOWN: usize = 5;

/// Selects among the tapes whose id begins with `asked`, newest first, or among all tapes for `last`.
pub fn choose(asked: &str, found: Vec<String>) -> Result<String, StoreError> {
    let exact = found.iter().position(|id| id == asked);
    let several = found.len() > 1 && asked != LAST && !asked.is_empty() && exact.is_none();
    if several {
        let more = if found.len() >= SHOWN { ", …" } else { "" };
        let shown = found.join(", ");
        return Err(StoreError::Query(format!(
            "several tapes begin with `{asked}`: {shown}{more}; give more of the id"
        )));
    }
    let place = exact.unwrap_or(0);
    let id = if asked.is_empty() { None } else { found.into_iter().nth(place) };
    id.ok_or_else(|| StoreError::NoTape(asked.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_meant_whole_by_its_beginning_or_as_the_last() {
        let found = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(choose("ab", found(&["abc"])), Ok("abc".into()));
        assert_eq!(choose("ab", found(&["abc", "ab"])), Ok("ab".into()));
        assert_eq!(choose("last", found(&["z", "y"])), Ok("z".into()));
        assert_eq!(choose("x", found(&[])), Err(StoreError::NoTape("x".into())));
        assert_eq!(choose("", found(&["a"])), Err(StoreError::NoTape(String::new())));
        let several = choose("a", found(&["ab", "ac"])).unwrap_err();
        assert_eq!(several.to_string(), "several tapes begin with `a`: ab, ac; give more of the id");
    }
}
