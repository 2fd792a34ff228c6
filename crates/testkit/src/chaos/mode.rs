//! The ways in which the misbehaving server can be told to answer.

use std::fmt;
use std::str::FromStr;

/// A way to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChaosMode {
    /// As it should be.
    Fine,
    /// Rightly, but after a while.
    Slow,
    /// Rightly, but only after the caller has given up.
    Late,
    /// Not at all.
    Hang,
    /// Garbage, and on a pipe the right answer after it.
    Garbage,
    /// The first half of an answer, then the end of the connection.
    Half,
    /// The connection is reset.
    Reset,
    /// The right answer, and then another one.
    Twice,
    /// An answer to something that was never asked.
    WrongId,
    /// Some progress, then the end of the stream.
    Cut,
    /// An error.
    Error,
    /// A great many log messages before the right answer.
    Flood,
    /// No request of any kind is answered, not even the handshake.
    Mute,
    /// Every request of any kind is refused: over HTTP with status 503.
    Refuse,
}

impl ChaosMode {
    /// Every mode that is a fault.
    pub const FAULTS: [Self; 13] = [
        Self::Slow,
        Self::Late,
        Self::Hang,
        Self::Garbage,
        Self::Half,
        Self::Reset,
        Self::Twice,
        Self::WrongId,
        Self::Cut,
        Self::Error,
        Self::Flood,
        Self::Mute,
        Self::Refuse,
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Slow => "slow",
            Self::Late => "late",
            Self::Hang => "hang",
            Self::Garbage => "garbage",
            Self::Half => "half",
            Self::Reset => "reset",
            Self::Twice => "twice",
            Self::WrongId => "wrong-id",
            Self::Cut => "cut",
            Self::Error => "error",
            Self::Flood => "flood",
            Self::Mute => "mute",
            Self::Refuse => "refuse",
        }
    }
}

impl fmt::Display for ChaosMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for ChaosMode {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = Self::FAULTS.into_iter().chain([Self::Fine]).find(|mode| mode.word() == word);
        known.ok_or_else(|| anyhow::anyhow!("no such mode: {word}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_read_back_from_its_word() {
        for mode in ChaosMode::FAULTS {
            assert_eq!(mode.word().parse::<ChaosMode>().unwrap(), mode);
        }
    }
}
