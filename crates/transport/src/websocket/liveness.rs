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
pub(super) struct Liveness {
    patience: Patience,
    silent: u32,
    unfinished: u32,
    seen: u64,
}

/// Result of a check.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum LivenessCheck {
    /// The peer is alive.
    Alive,
    /// The peer is silent and should be pinged.
    Ping,
    /// The peer was silent for too long.
    Gone,
    /// The peer takes too long for a message.
    Slow,
}

impl Liveness {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, silent: 0, unfinished: 0, seen: 0 }
    }

    /// Checks one tick. `moves` is the number of signs of life so far; `begun` is set if a message is unfinished.
    pub(super) fn check(&mut self, moves: u64, begun: bool) -> LivenessCheck {
        self.unfinished = if begun { self.unfinished + 1 } else { 0 };
        if self.unfinished >= self.patience.unfinished {
            return LivenessCheck::Slow;
        }
        if moves != self.seen {
            self.seen = moves;
            self.silent = 0;
            return LivenessCheck::Alive;
        }
        self.silent += 1;
        if self.silent < self.patience.silent { LivenessCheck::Ping } else { LivenessCheck::Gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_side_is_asked_and_given_up() {
        let mut liveness = Liveness::new(Patience { silent: 3, unfinished: 2 });
        let mut check = |moves| liveness.check(moves, false);
        assert_eq!(check(1), LivenessCheck::Alive);
        assert_eq!([check(1), check(1)], [LivenessCheck::Ping, LivenessCheck::Ping]);
        // A sign in the last moment counts.
        assert_eq!(check(2), LivenessCheck::Alive);
        assert_eq!([check(2), check(2), check(2)], [LivenessCheck::Ping, LivenessCheck::Ping, LivenessCheck::Gone]);
    }

    #[test]
    fn a_message_must_be_finished_in_time_though_bytes_keep_coming() {
        let mut liveness = Liveness::new(Patience { silent: 3, unfinished: 3 });
        assert_eq!([liveness.check(1, true), liveness.check(2, true)], [LivenessCheck::Alive, LivenessCheck::Alive]);
        assert_eq!(liveness.check(3, false), LivenessCheck::Alive);
        assert_eq!(
            [liveness.check(4, true), liveness.check(4, true), liveness.check(5, true)],
            [LivenessCheck::Alive, LivenessCheck::Ping, LivenessCheck::Slow]
        );
    }
}
