//! The head of a tape, and what a store knows of the tape.

use signalbox_engine::record::TapeInfo;

/// A tape without an end whose last entry is older than this has lost its writer.
const STALE: u64 = 7 * 24 * 3_600 * 1_000_000_000;

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
    /// True where its clock went backwards.
    pub disordered: bool,
    /// The last place that the index knows.
    pub indexed: u64,
    /// Bytes of its bodies as they are kept.
    pub kept: u64,
}

impl TapeRow {
    /// A tape that is being written stays, but not all of its entries.
    pub fn may_go(&self, now: u64) -> bool {
        self.info.ended.is_some() || self.last_at < now.saturating_sub(STALE)
    }
}
