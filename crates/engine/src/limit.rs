//! Limits at which input is refused before it becomes a request.

/// Limit of the gateway. Its name is a label of `signalbox_refused_total`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The head of a request did not come in time, or the first byte of a connection.
    HeadTime,
    /// The head of a request is too large, or has too many lines.
    HeadSize,
    /// A message did not arrive completely in time.
    MessageTime,
    /// A message is too large.
    MessageSize,
    /// The client read nothing for too long.
    SlowReader,
    /// The session has too many event streams open.
    Streams,
    /// The session has too many requests in flight.
    InFlight,
    /// The client posts and does not read the answers.
    Behind,
    /// Too many questions of backends wait for the client.
    Questions,
    /// A listen request names too many resources; the rest are not followed.
    Subscriptions,
    /// The memory budget for messages is exhausted.
    Memory,
    /// A message is too large for a caller that can only be authenticated by its signature.
    UnknownCaller,
    /// An idle connection made room for another one.
    Idle,
    /// A connection made room for another one, since its caller or address had more than its share.
    ConnectionShare,
    /// A webhook was not asked, since its caller or all callers had too many questions in flight.
    Webhooks,
}

impl Limit {
    /// All limits, in the order of [`Limit::number`].
    pub const ALL: [Self; 15] = [
        Self::HeadTime,
        Self::HeadSize,
        Self::MessageTime,
        Self::MessageSize,
        Self::SlowReader,
        Self::Streams,
        Self::InFlight,
        Self::Behind,
        Self::Questions,
        Self::Subscriptions,
        Self::Memory,
        Self::UnknownCaller,
        Self::Idle,
        Self::ConnectionShare,
        Self::Webhooks,
    ];

    /// Returns the label in metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::HeadTime => "head_time",
            Self::HeadSize => "head_size",
            Self::MessageTime => "message_time",
            Self::MessageSize => "message_size",
            Self::SlowReader => "slow_reader",
            Self::Streams => "streams",
            Self::InFlight => "in_flight",
            Self::Behind => "behind",
            Self::Questions => "questions",
            Self::Subscriptions => "subscriptions",
            Self::Memory => "memory",
            Self::UnknownCaller => "unknown_caller",
            Self::Idle => "idle",
            Self::ConnectionShare => "connection_share",
            Self::Webhooks => "webhooks",
        }
    }

    /// Returns the index in [`Limit::ALL`].
    #[must_use]
    pub fn number(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_at_its_number_and_has_a_word_of_its_own() {
        for (number, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(limit.number(), number);
            assert_eq!(Limit::ALL.iter().filter(|other| other.word() == limit.word()).count(), 1);
        }
    }
}
