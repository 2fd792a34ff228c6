//! The head of a tape, with what a store counts for it, and how a tape is found by its id, a prefix of it, or `last`.

use signalbox_engine::record::{StoreError, TapeInfo};

/// A tape without an end whose last entry is older than this has lost its writer.
const STALE: u64 = 7 * 24 * 3_600 * 1_000_000_000;

/// About how many bytes an entry takes besides what it keeps, index included.
pub const ENTRY_BYTES: u64 = 120;

/// A head, and what the store knows of the tape.
#[derive(Clone, Debug)]
pub struct TapeRow {
    /// Its number in the store.
    pub number: i64,
    /// Its head.
    pub info: TapeInfo,
    /// How many entries it has.
    pub entries: u64,
    /// The time of its first entry, or when it began where it has none.
    pub first_at: u64,
    /// The time of its last entry, or when it began where it has none.
    pub last_at: u64,
    /// Its last place.
    pub last_seq: u64,
    /// True if its clock went backwards.
    pub disordered: bool,
    /// The last place that the index knows.
    pub indexed: u64,
    /// Bytes of the bodies of its messages as they are kept.
    pub kept: u64,
    /// Bytes of what its entries keep besides: other bodies, heads of messages.
    pub aside: u64,
    /// Bytes of what it keeps besides its entries, where that was asked for: sessions, names.
    pub rest: u64,
}

impl TapeRow {
    /// About how many bytes its entries take.
    pub fn of_entries(&self) -> u64 {
        self.kept + self.aside + ENTRY_BYTES * self.entries
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> u64 {
        self.of_entries() + self.rest
    }

    /// A tape that is being written stays, but not all of its entries.
    pub fn may_go(&self, now: u64) -> bool {
        self.info.ended.is_some() || self.last_at < now.saturating_sub(STALE)
    }
}

/// The word for the newest tape.
pub const LAST: &str = "last";

/// How many tapes are looked at to tell that a beginning is ambiguous, and to name them.
pub const SHOWN: usize = 5;

/// Chooses among the tapes whose name begins with what was asked for, the newest first; all of them for `last`.
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
