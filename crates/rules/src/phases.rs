//! Sets of message phases.

use signalbox_engine::chain::Phase;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Phases(u8);

impl Phases {
    /// Empty set. A rule with it never matches.
    pub const NONE: Self = Self(0);
    pub const REQUEST: Self = Self(1);
    pub const RESPONSE: Self = Self(2);
    pub const FROM_CLIENT: Self = Self(4);
    pub const FROM_BACKEND: Self = Self(8);
    /// Notifications from either side.
    pub const NOTIFICATIONS: Self = Self(12);
    /// Phases that a rule can evaluate without naming one: requests, answers and notifications.
    pub const USUAL: Self = Self(15);
    /// Requests from backends to clients.
    pub const QUESTION: Self = Self(16);
    /// Client answers to these requests.
    pub const ANSWER: Self = Self(32);
    /// Requests that the gateway answers itself.
    pub const TO_GATEWAY: Self = Self(64);
    /// Answers from the gateway itself.
    pub const FROM_GATEWAY: Self = Self(128);
    pub const EVERY: Self = Self(255);
    /// Phases whose messages carry a result or an error.
    pub const RESULTS: Self = Self(2 | 32 | 128);

    /// Returns the set with a single phase.
    #[must_use]
    pub fn of(phase: Phase) -> Self {
        Self(1 << place(phase))
    }

    /// Returns `true` if the set contains the phase.
    #[must_use]
    pub fn has(self, phase: Phase) -> bool {
        self.meets(Self::of(phase))
    }

    /// Returns `true` if the sets have a phase in common.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns `true` if `other` is a subset.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn others(self) -> Self {
        Self(!self.0)
    }

    /// Describes the set for listings and errors.
    #[must_use]
    pub fn words(self) -> String {
        let mut words = Vec::new();
        if self.meets(Self::REQUEST) {
            words.push("requests");
        }
        if self.meets(Self::RESPONSE) {
            words.push("answers");
        }
        match self.and(Self::NOTIFICATIONS) {
            Self::NOTIFICATIONS => words.push("notifications"),
            Self::FROM_CLIENT => words.push("notifications from clients"),
            Self::FROM_BACKEND => words.push("notifications from backends"),
            _ => {}
        }
        let others = [
            (Self::QUESTION, "questions from backends"),
            (Self::ANSWER, "answers from clients"),
            (Self::TO_GATEWAY, "requests to the gateway"),
            (Self::FROM_GATEWAY, "answers from the gateway"),
        ];
        words.extend(others.into_iter().filter(|(phase, _)| self.meets(*phase)).map(|(_, word)| word));
        if words.is_empty() { "nothing".to_owned() } else { words.join(" and ") }
    }
}

/// Returns the index of a phase in tables.
pub(crate) fn place(phase: Phase) -> usize {
    match phase {
        Phase::Request => 0,
        Phase::Response => 1,
        Phase::FromClient => 2,
        Phase::FromBackend => 3,
        Phase::ServerAsks => 4,
        Phase::ClientAnswers => 5,
        Phase::ToGateway => 6,
        Phase::FromGateway => 7,
    }
}
