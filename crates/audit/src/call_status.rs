//! Outcome of a call, in the words of the audit log.

use signalbox_engine::fact::Outcome;

/// Status of a call: those of NO-7, and two more.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum CallStatus {
    /// The call returned a result.
    Success,
    /// The tool or the backend returned an error.
    Error,
    /// The caller lacks permission.
    Denied,
    /// A kill switch is on.
    Killed,
    /// A rate limit was exceeded.
    RateLimited,
    /// The arguments do not match the schema.
    InvalidArgs,
    /// The circuit breaker of the backend is open.
    CircuitOpen,
    /// The client cancelled the call.
    Cancelled,
    /// The call could not be recorded, and so was not forwarded.
    NotRecorded,
}

impl CallStatus {
    /// All statuses, in declaration order.
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

    /// Returns its name in records.
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

    /// Returns the status with this name.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    /// Returns the status of a call with this outcome.
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

    /// Returns true if the gateway rejected the call.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Denied | Self::Killed | Self::RateLimited | Self::InvalidArgs)
    }
}
