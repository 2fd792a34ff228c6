//! Answers of the gateway in a backend's place, for calls that were about to leave.

use crate::chain::Ruling;

/// Source of an answer that a call gets although it does not leave for its backend.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LocalAnswer {
    /// A result that the backend gave before and allowed to be kept.
    CachedRead,
    /// An end of a subscription that another session still has on the same connection.
    SharedSubscription,
}

impl LocalAnswer {
    /// Verdict of the ruling that records such an answer.
    pub const VERDICT: &'static str = "kept";

    /// Returns the author of the ruling.
    #[must_use]
    pub fn author(self) -> &'static str {
        match self {
            Self::CachedRead => "reads",
            Self::SharedSubscription => "subscriptions",
        }
    }

    /// Returns the reason in the ruling.
    #[must_use]
    pub fn detail(self) -> &'static str {
        match self {
            Self::CachedRead => "answered with what the backend said before",
            Self::SharedSubscription => "another session on the connection still follows it",
        }
    }

    /// Returns true for the ruling of such an answer.
    #[must_use]
    pub fn is_ruling(by: &str, ruling: &Ruling) -> bool {
        ruling.verdict == Self::VERDICT
            && [Self::CachedRead, Self::SharedSubscription].iter().any(|source| source.author() == by)
    }
}
