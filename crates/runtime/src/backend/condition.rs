//! Health of a backend, as seen from pings, restarts and stray messages.
//!
//! A [`Condition`] is a plain value behind the backend lock. Invariants:
//!
//! - A backend that comes up has no last error and no remembered standard error.
//! - Calls are held back only after a restart.
//! - A request for an immediate attempt is consumed once.

use signalbox_engine::health::Health;
use signalbox_engine::pacing;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Default)]
pub(crate) struct Condition {
    /// Health according to pings. `None` if the backend is not pinged.
    health: Option<Health>,
    /// Set once a ping has been answered.
    answers_pings: bool,
    pings_failed: u64,
    restarts: u64,
    /// Start of the slow start, during which few calls are allowed.
    ramp: Option<Instant>,
    /// Makes the next attempt immediate, even if the backend has failed permanently.
    retry_now: bool,
    /// Set if the server died of the era probe, so that the next handshake starts with `initialize`.
    skip_probe: bool,
    last_error: Option<String>,
    /// Last lines that an ended child process wrote to its standard error.
    stderr_tail: Vec<String>,
    strays: BTreeMap<&'static str, u64>,
    /// Last line on a child's standard output that is not a message. Safe to display.
    stray_line: Option<String>,
}

impl Condition {
    /// Creates the condition of an unknown backend. The backend is pinged if there is a `health`.
    pub fn new(health: Option<Health>) -> Self {
        Self { health, ..Self::default() }
    }

    /// Records that the home connection is ready.
    pub fn came_up(&mut self, now: Instant) {
        if self.restarts > 0 {
            self.ramp = Some(now);
        }
        self.last_error = None;
        self.stderr_tail.clear();
    }

    /// Records the outcome of a ping. Returns whether the backend has just become unwell, and its state. `None` if it
    /// is not pinged.
    pub fn pinged(&mut self, answered: bool) -> Option<(bool, &'static str)> {
        self.answers_pings |= answered;
        self.pings_failed += u64::from(!answered);
        let health = self.health.as_mut()?;
        Some((health.pinged(answered), health.as_str()))
    }

    /// Returns the delay before the next ping. `None` if the backend is not pinged.
    pub fn ping_wait(&self) -> Option<Duration> {
        self.health.as_ref().map(Health::wait)
    }

    /// Returns true once a ping has been answered.
    pub fn answers_pings(&self) -> bool {
        self.answers_pings
    }

    /// Returns the number of unanswered pings.
    pub fn pings_failed(&self) -> u64 {
        self.pings_failed
    }

    /// Returns the health as a word. `None` if the backend is not pinged.
    pub fn health(&self) -> Option<&'static str> {
        self.health.as_ref().map(Health::as_str)
    }

    /// Returns true unless pings have shown the backend to be unwell.
    pub fn is_well(&self) -> bool {
        self.health.as_ref().is_none_or(Health::is_well)
    }

    /// Returns true during the slow start after a restart.
    pub fn was_restarted_lately(&self) -> bool {
        self.ramp.is_some()
    }

    /// Returns the maximum number of calls in flight. `None` if there is no limit because no restart was recent.
    /// `slow_start` is the duration of the limit.
    pub fn most_calls(&self, now: Instant, slow_start: Duration) -> Option<usize> {
        pacing::slow_start_limit(now.saturating_duration_since(self.ramp?), slow_start)
    }

    /// Ends the slow start once its time is over.
    pub fn end_slow_start(&mut self, now: Instant, slow_start: Duration) {
        if self.most_calls(now, slow_start).is_none() {
            self.ramp = None;
        }
    }

    pub fn restarted(&mut self) {
        self.restarts += 1;
    }

    /// Returns the number of restarts.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Makes the next attempt to start the backend immediate.
    pub fn retry_now(&mut self) {
        self.retry_now = true;
    }

    /// Returns true if the next attempt is to be immediate, and resets the flag.
    pub fn take_retry_now(&mut self) -> bool {
        std::mem::take(&mut self.retry_now)
    }

    /// Sets whether the next attempt starts with `initialize`.
    pub fn set_skip_probe(&mut self, skip_probe: bool) {
        self.skip_probe = skip_probe;
    }

    /// Returns true if the next attempt starts with `initialize`, and resets the flag.
    pub fn take_skip_probe(&mut self) -> bool {
        std::mem::take(&mut self.skip_probe)
    }

    /// Sets the last error.
    pub fn set_error(&mut self, text: String) {
        self.last_error = Some(text);
    }

    /// Returns the last error since the backend was up.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Sets the last lines that an ended child process wrote to its standard error.
    pub fn set_stderr_tail(&mut self, lines: Vec<String>) {
        self.stderr_tail = lines;
    }

    /// Returns the last lines that an ended child process wrote to its standard error.
    pub fn stderr_tail(&self) -> &[String] {
        &self.stderr_tail
    }

    /// Counts a message that matches nothing.
    pub fn count_stray(&mut self, what: &'static str) {
        *self.strays.entry(what).or_default() += 1;
    }

    /// Counts and stores a line that is not a message.
    pub fn set_stray_line(&mut self, line: String) {
        self.count_stray("not_json");
        self.stray_line = Some(line);
    }

    /// Returns the number of unmatched messages by kind.
    pub fn strays(&self) -> &BTreeMap<&'static str, u64> {
        &self.strays
    }

    /// Returns the last line that was not a message.
    pub fn stray_line(&self) -> Option<&str> {
        self.stray_line.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::health::PingRules;

    const SLOW_START: Duration = Duration::from_secs(3);

    #[test]
    fn what_went_wrong_is_forgotten_once_it_is_up() {
        let mut condition = Condition::default();
        condition.set_error("exit status 1".to_owned());
        condition.set_stderr_tail(vec!["no such file".to_owned()]);
        condition.came_up(Instant::now());
        assert_eq!((condition.last_error(), condition.stderr_tail()), (None, &[][..]));
    }

    #[test]
    fn calls_are_held_back_for_a_while_after_a_restart_and_not_after_the_first_start() {
        let (mut condition, now) = (Condition::default(), Instant::now());
        condition.came_up(now);
        assert_eq!(condition.most_calls(now, SLOW_START), None);
        assert!(!condition.was_restarted_lately());
        condition.restarted();
        condition.came_up(now);
        assert!(condition.most_calls(now, SLOW_START).is_some());
        condition.end_slow_start(now, SLOW_START);
        assert!(condition.was_restarted_lately());
        condition.end_slow_start(now + SLOW_START, SLOW_START);
        assert!(!condition.was_restarted_lately());
    }

    #[test]
    fn a_request_to_hurry_is_taken_up_once() {
        let mut condition = Condition::default();
        condition.retry_now();
        assert!(condition.take_retry_now());
        assert!(!condition.take_retry_now());
    }

    #[test]
    fn unanswered_pings_make_it_unwell_only_where_it_is_pinged() {
        let mut unasked = Condition::new(None);
        assert_eq!(unasked.pinged(false), None);
        assert!(unasked.is_well() && unasked.ping_wait().is_none());
        let rules = PingRules { failures: 1, ..PingRules::default() };
        let mut condition = Condition::new(Some(Health::new(rules)));
        assert_eq!(condition.pinged(false).map(|(fell, _)| fell), Some(true));
        assert!(!condition.is_well() && !condition.answers_pings());
        assert_eq!(condition.pings_failed(), 1);
    }
}
