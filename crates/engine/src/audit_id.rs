//! Names of calls in audit records, which are also shown to clients.

use crate::keys::ExchangeId;
use std::fmt::Write as _;

/// One run of a process. It is the first part of every audit id that the process assigns.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct AuditRun(u64);

impl AuditRun {
    /// Creates the run of a process that started at this time, in milliseconds since 1970. The randomness distinguishes
    /// processes that start together.
    #[must_use]
    pub fn new(unix_ms: u64, random: u16) -> Self {
        Self((unix_ms << 16) | u64::from(random))
    }

    /// Returns the audit id of an exchange: the same in its intent, in its outcome and in the answer to its client.
    #[must_use]
    pub fn id(self, exchange: ExchangeId) -> String {
        let mut id = String::new();
        self.push_id(exchange, &mut id);
        id
    }

    /// Appends the audit id of an exchange.
    pub fn push_id(self, exchange: ExchangeId, out: &mut String) {
        // Writing to a `String` never fails.
        let _ = write!(out, "audit-{:x}-{:x}", self.0, exchange.0);
    }

    /// Returns the execution id of the tool call that an exchange runs (G-7).
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
