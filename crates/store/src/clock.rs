//! The wall clock of the store.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the nanoseconds since 1970; 0 if the clock is set to a time before 1970.
pub fn unix_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
