//! How a backend is doing: what pings, restarts and stray messages have shown of it.
//!
//! A [`Condition`] is a plain value behind the backend's lock. These hold after every method:
//!
//! - A backend that comes up has no last error and no last words.
//! - Calls are held back only after a restart.
//! - A request to be tried at once is taken up once.

use signalbox_engine::health::Health;
use signalbox_engine::pacing;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The condition of a backend.
#[derive(Default)]
pub(crate) struct Condition {
    /// What pings tell; `None` if it is not pinged.
    health: Option<Health>,
    /// It has answered a ping at least once.
    answers_pings: bool,
    pings_failed: u64,
    restarts: u64,
    /// Since when it gets few calls at a time.
    ramp: Option<Instant>,
    /// The next attempt to start it is made at once, even if it has failed for good.
    hurry: bool,
    /// It died of the question which era it speaks, so it gets the old greeting at once.
    greet_old: bool,
    last_error: Option<String>,
    /// What a child that has ended wrote to its standard error last.
    last_words: Vec<String>,
    strays: BTreeMap<&'static str, u64>,
    /// The last line on a child's standard output that is not a message. It is safe to show.
    stray_line: Option<String>,
}

impl Condition {
    /// A backend that nothing is known of yet. It is pinged if there is a `health`.
    pub fn new(health: Option<Health>) -> Self {
        Self { health, ..Self::default() }
    }

    /// The home connection is ready.
    pub fn came_up(&mut self, now: Instant) {
        if self.restarts > 0 {
            self.ramp = Some(now);
        }
        self.last_error = None;
        self.last_words.clear();
    }

    /// Notes the outcome of a ping. Returns whether the backend has become unwell by it, and its state; `None` if it is not
    /// pinged.
    pub fn pinged(&mut self, answered: bool) -> Option<(bool, &'static str)> {
        self.answers_pings |= answered;
        self.pings_failed += u64::from(!answered);
        let health = self.health.as_mut()?;
        Some((health.pinged(answered), health.as_str()))
    }

    /// How long to wait before the next ping; `None` if it is not pinged.
    pub fn ping_wait(&self) -> Option<Duration> {
        self.health.as_ref().map(Health::wait)
    }

    /// True once it has answered a ping.
    pub fn answers_pings(&self) -> bool {
        self.answers_pings
    }

    /// How many pings it left unanswered.
    pub fn pings_failed(&self) -> u64 {
        self.pings_failed
    }

    /// What pings tell of it, in a word; `None` if it is not pinged.
    pub fn health(&self) -> Option<&'static str> {
        self.health.as_ref().map(Health::as_str)
    }

    /// True unless pings have shown that it is unwell.
    pub fn is_well(&self) -> bool {
        self.health.as_ref().is_none_or(Health::is_well)
    }

    /// True if it was started again and its slow start has not ended yet.
    pub fn was_restarted_lately(&self) -> bool {
        self.ramp.is_some()
    }

    /// Most calls that may be on it at this moment; `None` if there is no limit because it was not started again lately.
    /// `slow_start` says how long the limit lasts.
    pub fn most_calls(&self, now: Instant, slow_start: Duration) -> Option<usize> {
        pacing::slow_start_limit(now.saturating_duration_since(self.ramp?), slow_start)
    }

    /// Ends the slow start once its time is over.
    pub fn end_slow_start(&mut self, now: Instant, slow_start: Duration) {
        if self.most_calls(now, slow_start).is_none() {
            self.ramp = None;
        }
    }

    /// Counts a restart.
    pub fn restarted(&mut self) {
        self.restarts += 1;
    }

    /// How often it was started again.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Has the next attempt to start it made at once.
    pub fn hurry(&mut self) {
        self.hurry = true;
    }

    /// True if the next attempt is to be made at once. Forgets that.
    pub fn take_hurry(&mut self) -> bool {
        std::mem::take(&mut self.hurry)
    }

    /// Has the next attempt begin with the old greeting, or not.
    pub fn set_greet_old(&mut self, greet_old: bool) {
        self.greet_old = greet_old;
    }

    /// True if the next attempt begins with the old greeting. Forgets that.
    pub fn take_greet_old(&mut self) -> bool {
        std::mem::take(&mut self.greet_old)
    }

    /// Notes what went wrong.
    pub fn set_error(&mut self, text: String) {
        self.last_error = Some(text);
    }

    /// What went wrong last, since it was up.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Notes what a child that has ended wrote to its standard error last.
    pub fn set_last_words(&mut self, lines: Vec<String>) {
        self.last_words = lines;
    }

    /// What a child that has ended wrote to its standard error last.
    pub fn last_words(&self) -> &[String] {
        &self.last_words
    }

    /// Counts a message that fits nothing.
    pub fn count_stray(&mut self, what: &'static str) {
        *self.strays.entry(what).or_default() += 1;
    }

    /// Counts a line that is no message, and keeps it.
    pub fn set_stray_line(&mut self, line: String) {
        self.count_stray("not_json");
        self.stray_line = Some(line);
    }

    /// How many messages fitted nothing, by kind.
    pub fn strays(&self) -> &BTreeMap<&'static str, u64> {
        &self.strays
    }

    /// The last line that is no message.
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
        condition.set_last_words(vec!["no such file".to_owned()]);
        condition.came_up(Instant::now());
        assert_eq!((condition.last_error(), condition.last_words()), (None, &[][..]));
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
        condition.hurry();
        assert!(condition.take_hurry());
        assert!(!condition.take_hurry());
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
