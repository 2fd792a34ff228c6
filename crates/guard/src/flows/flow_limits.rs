use std::time::Duration;

/// Limits of a tracker: the lengths it looks for, and how much it remembers for how long.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlowLimits {
    /// Length from which a common run is always found, 8 to 1024 characters.
    pub min_chars: usize,
    /// Minimum length of a token with letters and digits that is found as a whole, 8 to 128 characters.
    pub min_value: usize,
    /// Minimum number of digits of a number that is found as a whole, 6 to 64.
    pub min_digits: usize,
    /// Time after which a recorded text is forgotten.
    pub max_age: Duration,
    /// Memory that the tracker uses at most, from 16 KiB.
    pub max_bytes: usize,
}

impl FlowLimits {
    /// Returns the limits, each within its range.
    pub(super) fn clamped(self) -> Self {
        Self {
            min_chars: self.min_chars.clamp(8, 1024),
            min_value: self.min_value.clamp(8, 128),
            min_digits: self.min_digits.clamp(6, 64),
            max_age: self.max_age,
            max_bytes: self.max_bytes.clamp(16 << 10, 1 << 30),
        }
    }
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self { min_chars: 24, min_value: 12, min_digits: 6, max_age: Duration::from_secs(3600), max_bytes: 1 << 20 }
    }
}
