//! The head of a tape, with what a store counts for it.

use signalbox_engine::record::TapeInfo;

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
