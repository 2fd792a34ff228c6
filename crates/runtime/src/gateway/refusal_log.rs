//! Refusals before there is a session. A fixed number of them is recorded in each second, and the others are counted.

use crate::allowance::PerSecond;
use signalbox_engine::fact::RefusedFact;
use signalbox_engine::lock::LockResultExt as _;
use std::sync::Mutex;

/// Decides which refusals are recorded one by one.
#[derive(Debug)]
pub struct RefusalLog {
    allowance: PerSecond,
    left_out: Mutex<Option<LeftOut>>,
}

/// Refusals that were not recorded since the last one that was.
#[derive(Debug)]
struct LeftOut {
    count: u64,
    last: RefusedFact,
}

impl RefusalLog {
    /// Records `each` in each second.
    pub fn new(each: u32) -> Self {
        Self { allowance: PerSecond::new(each), left_out: Mutex::default() }
    }

    /// Returns the refusal if it is to be recorded, with the number of those that were left out before it.
    pub fn admit(&self, mut refused: RefusedFact) -> Option<RefusedFact> {
        let mut left_out = self.left_out.lock().unpoisoned();
        if !self.allowance.take(refused.at) {
            let count = left_out.as_ref().map_or(0, |left_out| left_out.count) + 1;
            *left_out = Some(LeftOut { count, last: refused });
            return None;
        }
        if let Some(LeftOut { count, .. }) = left_out.take() {
            refused.detail.push_str(&format!(" ({count} other refusals before it were not recorded)"));
        }
        Some(refused)
    }

    /// Returns the last refusal that was left out, with the number of them, if no recorded one has told of it yet.
    pub fn take_left_out(&self) -> Option<RefusedFact> {
        let LeftOut { count, mut last } = self.left_out.lock().unpoisoned().take()?;
        last.detail.push_str(&format!(" (the last of {count} refusals that were not recorded one by one)"));
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::{Caller, SessionKey};
    use std::time::{Duration, Instant};

    /// Issue 31, point 15: refusals beyond the allowance are told of without another refusal, once.
    #[test]
    fn refusals_that_were_left_out_are_told_by_the_next_one_or_without_it() {
        let (log, start) = (RefusalLog::new(2), Instant::now());
        let refused = |at: Instant| RefusedFact {
            at,
            caller: Caller::anonymous("http"),
            session: SessionKey::GATEWAY,
            status: Some(401),
            reason: "unauthenticated",
            detail: "no key".to_owned(),
            exchange: None,
            unreached: None,
        };
        let admitted: Vec<bool> = (0..5).map(|_| log.admit(refused(start)).is_some()).collect();
        assert_eq!(admitted, [true, true, false, false, false]);
        let told = log.take_left_out().unwrap();
        assert_eq!((told.reason, told.status), ("unauthenticated", Some(401)));
        assert_eq!(told.detail, "no key (the last of 3 refusals that were not recorded one by one)");
        assert!(log.take_left_out().is_none());
        assert!(log.admit(refused(start)).is_none());
        let next = log.admit(refused(start + Duration::from_secs(2))).unwrap();
        assert_eq!(next.detail, "no key (1 other refusals before it were not recorded)");
        assert!(log.take_left_out().is_none());
    }
}
