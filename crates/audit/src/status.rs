//! How a call ended, in the words of the audit log.

use signalbox_engine::fact::Outcome;

/// The statuses of NO-7, and two more.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// A result.
    Success,
    /// An error of the tool or the backend.
    Error,
    /// The caller may not.
    Denied,
    /// A kill switch is on.
    Killed,
    /// Too often.
    RateLimited,
    /// The arguments do not fit.
    InvalidArgs,
    /// The backend's breaker is open.
    CircuitOpen,
    /// The client took it back.
    Cancelled,
    /// It could not be written down, and so did not leave.
    NotRecorded,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Success,
        Self::Error,
        Self::Denied,
        Self::Killed,
        Self::RateLimited,
        Self::InvalidArgs,
        Self::CircuitOpen,
        Self::Cancelled,
        Self::NotRecorded,
    ];

    /// Its name in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Killed => "killed",
            Self::RateLimited => "rate_limited",
            Self::InvalidArgs => "invalid_args",
            Self::CircuitOpen => "circuit_open",
            Self::Cancelled => "cancelled",
            Self::NotRecorded => "not_recorded",
        }
    }

    /// The status of this name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    /// The status of a call that ended so.
    #[must_use]
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Success,
            Outcome::ToolError | Outcome::BackendError => Self::Error,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Fault(reason) => match reason {
                "rate_limited" => Self::RateLimited,
                "invalid_params" => Self::InvalidArgs,
                "breaker_open" => Self::CircuitOpen,
                "not_recorded" => Self::NotRecorded,
                "killed" | "quarantined" => Self::Killed,
                reason if crate::violation::of(reason).is_some() => Self::Denied,
                _ => Self::Error,
            },
        }
    }

    /// True if the gateway did not let the call pass.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Denied | Self::Killed | Self::RateLimited | Self::InvalidArgs)
    }
}
