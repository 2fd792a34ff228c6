//! Liveness check of the peer.

/// Number of consecutive ticks that the peer may take.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Patience {
    /// Without any sign of life.
    pub silent: u32,
    /// With an unfinished message.
    pub unfinished: u32,
}

/// Checks at each tick whether the peer is alive.
#[derive(Debug)]
pub(super) struct Pulse {
    patience: Patience,
    silent: u32,
    unfinished: u32,
    seen: u64,
}

/// Result of a check.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Beat {
    /// The peer is alive.
    Moves,
    /// The peer is silent and should be pinged.
    Ping,
    /// The peer was silent for too long.
    Gone,
    /// The peer takes too long for a message.
    Slow,
}

impl Pulse {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, silent: 0, unfinished: 0, seen: 0 }
    }

    /// Checks one tick. `moves` is the number of signs of life so far; `begun` is set if a message is unfinished.
    pub(super) fn beat(&mut self, moves: u64, begun: bool) -> Beat {
        self.unfinished = if begun { self.unfinished + 1 } else { 0 };
        if self.unfinished >= self.patience.unfinished {
            return Beat::Slow;
        }
        if moves != self.seen {
            self.seen = moves;
            self.silent = 0;
            return Beat::Moves;
        }
        self.silent += 1;
        if self.silent < self.patience.silent { Beat::Ping } else { Beat::Gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_side_is_asked_and_given_up() {
        let mut pulse = Pulse::new(Patience { silent: 3, unfinished: 2 });
        let mut beat = |moves| pulse.beat(moves, false);
        assert_eq!(beat(1), Beat::Moves);
        assert_eq!([beat(1), beat(1)], [Beat::Ping, Beat::Ping]);
        // A sign in the last moment counts.
        assert_eq!(beat(2), Beat::Moves);
        assert_eq!([beat(2), beat(2), beat(2)], [Beat::Ping, Beat::Ping, Beat::Gone]);
    }

    #[test]
    fn a_message_must_be_finished_in_time_though_bytes_keep_coming() {
        let mut pulse = Pulse::new(Patience { silent: 3, unfinished: 3 });
        assert_eq!([pulse.beat(1, true), pulse.beat(2, true)], [Beat::Moves, Beat::Moves]);
        assert_eq!(pulse.beat(3, false), Beat::Moves);
        assert_eq!(
            [pulse.beat(4, true), pulse.beat(4, true), pulse.beat(5, true)],
            [Beat::Moves, Beat::Ping, Beat::Slow]
        );
    }
}
