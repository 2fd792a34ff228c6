//! The names under which calls stand in audit records, and under which clients are told of them.

use crate::keys::ExchangeId;
use std::fmt::Write as _;

/// One run of a process, as the first part of every audit id that it gives out.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct AuditRun(u64);

impl AuditRun {
    /// The run of a process that started at this time, in milliseconds since 1970, with some randomness that keeps two processes
    /// apart that start together.
    #[must_use]
    pub fn new(unix_ms: u64, random: u16) -> Self {
        Self((unix_ms << 16) | u64::from(random))
    }

    /// The audit id of an exchange: the same in its intent, in its outcome and in what its client is told.
    #[must_use]
    pub fn id(self, exchange: ExchangeId) -> String {
        let mut id = String::new();
        self.push_id(exchange, &mut id);
        id
    }

    /// Appends the audit id of an exchange.
    pub fn push_id(self, exchange: ExchangeId, out: &mut String) {
        // A text takes everything.
        let _ = write!(out, "audit-{:x}-{:x}", self.0, exchange.0);
    }

    /// The name of the one execution of a tool that an exchange is (G-7).
    #[must_use]
    pub fn execution(self, exchange: ExchangeId) -> String {
        format!("exec-{:x}-{:x}", self.0, exchange.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_two_runs_and_of_two_exchanges_differ() {
        let (one, other) = (AuditRun::new(1_700_000_000_000, 7), AuditRun::new(1_700_000_000_000, 8));
        let ids = [one.id(ExchangeId(1)), one.id(ExchangeId(2)), other.id(ExchangeId(1))];
        assert_eq!(ids[0], "audit-18bcfe568000007-1");
        assert!(ids[0] != ids[1] && ids[0] != ids[2]);
        assert_eq!(one.execution(ExchangeId(1)), "exec-18bcfe568000007-1");
    }
}
