//! Per-day counts of calls and costs by caller.

use serde::{Deserialize, Serialize};
use signalbox_engine::keys::TextMap;

/// Maximum number of callers, and of pairs of caller and tool. Beyond it, the smallest counts are dropped.
pub const MAX_COUNTED: usize = 100_000;

/// Counts of a single day.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DayCounts {
    /// Day number, counted from 1970.
    pub day: u64,
    /// Amount spent by each caller.
    #[serde(default)]
    pub spent: TextMap<Box<str>, u64>,
    /// Number of calls by caller and tool.
    #[serde(default)]
    pub calls: TextMap<Box<str>, u64>,
}

impl DayCounts {
    /// Adds the counts of another process. A later day replaces an earlier one.
    pub fn add(&mut self, other: &Self) {
        self.start(other.day.max(self.day));
        if other.day == self.day {
            for (mine, theirs) in [(&mut self.spent, &other.spent), (&mut self.calls, &other.calls)] {
                for (key, count) in theirs {
                    let place = mine.entry(key.clone()).or_default();
                    *place = place.saturating_add(*count);
                }
            }
        }
    }

    pub(crate) fn start(&mut self, day: u64) {
        if self.day != day {
            *self = Self { day, ..Self::default() };
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spent.is_empty() && self.calls.is_empty()
    }

    /// Evicts counts when the maximum is reached. A caller that returns afterwards starts from zero.
    pub(crate) fn evict(&mut self) {
        for counts in [&mut self.spent, &mut self.calls] {
            if counts.len() >= MAX_COUNTED {
                // The smallest counts carry the least information.
                counts.retain(|_, count| *count > 1);
            }
            if counts.len() >= MAX_COUNTED {
                counts.clear();
            }
        }
    }
}
