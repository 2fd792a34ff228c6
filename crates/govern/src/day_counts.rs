//! Counts of the calls and costs of callers in a day.

use serde::{Deserialize, Serialize};
use signalbox_engine::keys::TextMap;

/// Most callers, and pairs of caller and tool, that are counted. Beyond that the smallest counts are dropped.
pub const MAX_COUNTED: usize = 100_000;

/// Counts of one day.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DayCounts {
    /// The day, counted from 1970.
    pub day: u64,
    /// Amount that each caller spent.
    #[serde(default)]
    pub spent: TextMap<Box<str>, u64>,
    /// Number of calls of each caller at each tool.
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

    /// Makes room where too much is counted. A caller who comes back then starts anew.
    pub(crate) fn room(&mut self) {
        for counts in [&mut self.spent, &mut self.calls] {
            if counts.len() >= MAX_COUNTED {
                // The smallest counts say least.
                counts.retain(|_, count| *count > 1);
            }
            if counts.len() >= MAX_COUNTED {
                counts.clear();
            }
        }
    }
}
