//! Rate limits: for all callers together, per caller, per tool, and per caller and tool.
//!
//! A request takes a token from every bucket that applies to it, or from none if one of them is empty. A bucket is
//! stored as the time at which it is full again, so a bucket that has been unused for a minute equals an absent one and
//! can be evicted. When the table is full, new callers and tools share one bucket per scope.

use crate::permissions::called_tool;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::chain::{
    Case, EntryNames, EntryPattern, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict,
};
use signalbox_engine::keys::TextMap;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::rate::Rate;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::method;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of buckets per scope.
pub const MAX_BUCKETS: usize = 100_000;

/// Key of all tools that their callers do not know. No backend has an empty name, so it never collides.
const UNKNOWN: &str = "\0";

/// Scope within which requests are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitScope {
    Global,
    User,
    /// Calls of one tool by all callers.
    Tool,
    /// Calls of one tool by one caller.
    UserAndTool,
}

impl LimitScope {
    /// All scopes, in the order in which they are checked.
    pub const ALL: [Self; 4] = [Self::Global, Self::User, Self::Tool, Self::UserAndTool];

    /// Returns the name of the scope in errors.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::User => "user",
            Self::Tool => "tool",
            Self::UserAndTool => "user_and_tool",
        }
    }

    /// Describes the limit that was exceeded.
    fn exceeded(self, limit: u64) -> String {
        match self {
            Self::Global => format!("all callers together made more than {limit} requests"),
            Self::User => format!("the caller made more than {limit} requests"),
            Self::Tool => format!("the tool was called more than {limit} times"),
            Self::UserAndTool => format!("the caller called the tool more than {limit} times"),
        }
    }
}

/// Maximum rates of one scope; `None` for unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScopeRates {
    pub per_second: Option<u64>,
    pub per_minute: Option<u64>,
}

impl ScopeRates {
    fn rates(self) -> [Option<Rate>; 2] {
        let rate = |limit: Option<u64>, seconds| limit.map(|limit| Rate { limit, per: Duration::from_secs(seconds) });
        [rate(self.per_second, 1), rate(self.per_minute, 60)]
    }

    fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Rates of all scopes, in the order of [`LimitScope::ALL`].
pub type Rates = [ScopeRates; 4];

/// Rate per caller for the tools of a pattern, in place of the per-minute rate of [`LimitScope::UserAndTool`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolRate {
    /// Tools that the rate applies to.
    pub pattern: EntryPattern,
    pub per_minute: u64,
}

/// Configured rates, for scopes and for individual tools.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LimitRules {
    pub scopes: Rates,
    /// Tools with their own rate. Where several patterns match, the lowest rate applies.
    pub tools: Vec<ToolRate>,
}

impl From<Rates> for LimitRules {
    fn from(scopes: Rates) -> Self {
        Self { scopes, tools: Vec::new() }
    }
}

impl LimitRules {
    /// Returns the rates for a request that calls `tool`, a key of [`CallLimits::tool_key`].
    fn of(&self, tool: Option<&str>) -> Rates {
        let mut rates = self.scopes;
        if self.tools.is_empty() {
            return rates;
        }
        if let Some((backend, name)) = tool.and_then(|tool| tool.split_once('\0')) {
            let entry = EntryRef { kind: ListKind::Tools, backend, name, definition: None };
            let names = EntryNames::of(&entry);
            let own = self.tools.iter().filter(|one| one.pattern.touches(&names)).map(|one| one.per_minute).min();
            rates[3].per_minute = own.or(rates[3].per_minute);
        }
        rates
    }
}

/// Limit that a request exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExceededLimit {
    /// Scope of the limit.
    pub scope: LimitScope,
    pub rate: Rate,
    /// Time until a request fits again, if no other request takes the token.
    pub wait: Duration,
}

/// Times at which the per-second and per-minute buckets of a key are full again.
type Buckets = [Option<Instant>; 2];

#[derive(Debug, Default)]
struct LimitState {
    rules: LimitRules,
    buckets: [TextMap<Box<str>, Buckets>; 4],
    swept: Option<Instant>,
}

/// Interceptor that enforces rate limits.
#[derive(Debug, Default)]
pub struct CallLimits {
    state: Mutex<LimitState>,
    /// False if no limit is configured.
    on: AtomicBool,
}

impl CallLimits {
    /// Creates the interceptor with these limits.
    #[must_use]
    pub fn new(rules: impl Into<LimitRules>) -> Self {
        let limits = Self::default();
        limits.replace(rules);
        limits
    }

    /// Replaces the limits. Tokens taken under the old limits still count.
    pub fn replace(&self, rules: impl Into<LimitRules>) {
        let rules = rules.into();
        let on = !rules.tools.is_empty() || rules.scopes.iter().any(|rates| !rates.is_none());
        self.state.lock().unpoisoned().rules = rules;
        self.on.store(on, Ordering::Relaxed);
    }

    /// Returns the key of a tool.
    #[must_use]
    pub fn tool_key(backend: &str, name: &str) -> String {
        format!("{backend}\0{name}")
    }

    /// Returns the key of all tools that their callers do not know.
    #[must_use]
    pub fn unknown_tool_key() -> String {
        UNKNOWN.to_owned()
    }

    /// Returns false for methods that are free: without them a caller could neither connect nor keep its connection
    /// alive.
    #[must_use]
    pub fn counts(method: Option<&str>) -> bool {
        method.is_some_and(|name| ![method::INITIALIZE, method::PING, method::SERVER_DISCOVER].contains(&name))
    }

    /// Returns the limits on this caller's own requests, each with the number of requests left.
    #[must_use]
    pub fn left_to(&self, user: &str, now: Instant) -> Vec<(Rate, u64)> {
        let state = self.state.lock().unpoisoned();
        let buckets = state.buckets[1].get(user).copied().unwrap_or_default();
        let rates = state.rules.scopes[1].rates().into_iter().zip(buckets);
        rates.filter_map(|(rate, bucket)| rate.map(|rate| (rate, rate.left(bucket, now)))).collect()
    }

    /// Takes a token for a request of this caller from every bucket that applies. `tool` is the key of the called tool.
    ///
    /// # Errors
    /// The exhausted limit with the longest wait. Nothing is taken in this case.
    pub fn take(&self, user: &str, tool: Option<&str>, now: Instant) -> Result<(), ExceededLimit> {
        let mut state = self.state.lock().unpoisoned();
        let rates = state.rules.of(tool);
        let both = tool.filter(|_| !rates[3].is_none()).map(|tool| format!("{user}\0{tool}"));
        let keys = [Some(""), Some(user), tool, both.as_deref()];
        let mut taken: [Option<(&str, Buckets)>; 4] = [None; 4];
        let mut worst: Option<ExceededLimit> = None;
        for (at, key) in keys.iter().enumerate() {
            let (Some(key), false) = (key, rates[at].is_none()) else { continue };
            let key = state.key_for(at, key, now);
            let mut buckets = state.buckets[at].get(key).copied().unwrap_or_default();
            for (bucket, rate) in buckets.iter_mut().zip(rates[at].rates()) {
                let Some(rate) = rate else { continue };
                match rate.take(*bucket, now) {
                    Ok(full) => *bucket = Some(full),
                    Err(wait) if worst.is_none_or(|worst| worst.wait < wait) => {
                        worst = Some(ExceededLimit { scope: LimitScope::ALL[at], rate, wait });
                    }
                    Err(_) => {}
                }
            }
            taken[at] = Some((key, buckets));
        }
        if let Some(worst) = worst {
            return Err(worst);
        }
        for (at, (key, buckets)) in taken.into_iter().enumerate().filter_map(|(at, taken)| Some((at, taken?))) {
            match state.buckets[at].get_mut(key) {
                Some(place) => *place = buckets,
                None => {
                    state.buckets[at].insert(key.into(), buckets);
                }
            }
        }
        Ok(())
    }
}

impl LimitState {
    /// Returns the key to count under. When the table is full, all new keys share one bucket.
    fn key_for<'a>(&mut self, at: usize, key: &'a str, now: Instant) -> &'a str {
        if self.buckets[at].len() < MAX_BUCKETS || self.buckets[at].contains_key(key) {
            return key;
        }
        let due = self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= Duration::from_secs(1));
        if due {
            self.swept = Some(now);
            let is_used = |buckets: &Buckets| buckets.iter().flatten().any(|full| *full > now);
            self.buckets.iter_mut().for_each(|all| all.retain(|_, buckets| is_used(buckets)));
        }
        if self.buckets[at].len() < MAX_BUCKETS { key } else { "" }
    }
}

/// Returns true for free requests and for those that were counted before.
fn is_free(case: &Case<'_>) -> bool {
    case.round > 1 || case.attempt > 1 || !CallLimits::counts(case.message.method())
}

impl Interceptor for CallLimits {
    fn name(&self) -> &'static str {
        "limits"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        if is_free(case) {
            return Judgement::pass();
        }
        let tool = called_tool(case).map(|entry| Self::tool_key(entry.backend, entry.name));
        match self.take(case.caller.principal().as_str(), tool.as_deref(), case.now) {
            Ok(()) => Judgement::pass(),
            Err(used_up) => refused(&used_up),
        }
    }

    /// Counts unknown and hidden tools as one tool. Neither is free, and a caller cannot tell them apart by when it
    /// reaches a limit.
    fn judge_unknown(&self, case: &Case<'_>) -> Option<Judgement> {
        if self.is_idle() || is_free(case) {
            return None;
        }
        let is_call =
            case.exchange.is_some_and(|exchange| &*exchange.method == method::TOOLS_CALL || exchange.is_foreign());
        let used_up = self.take(case.caller.principal().as_str(), is_call.then_some(UNKNOWN), case.now).err()?;
        Some(refused(&used_up))
    }

    fn is_idle(&self) -> bool {
        !self.on.load(Ordering::Relaxed)
    }

    fn looks_at(&self, phase: Phase) -> bool {
        matches!(phase, Phase::Request | Phase::ToGateway) && !self.is_idle()
    }
}

fn refused(ExceededLimit { scope, rate, wait }: &ExceededLimit) -> Judgement {
    // Round up to whole seconds, at least one: a client that retries at once would be refused again.
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    let per = if rate.per.as_secs() == 1 { "second" } else { "minute" };
    let text = format!("{} in a {per}; try again in {seconds} s", scope.exceeded(rate.limit));
    let fault = Fault::new(FaultKind::RateLimited, text.clone())
        .with_str("limit", scope.word())
        .with_raw("retryAfter", seconds.to_string());
    Judgement { verdict: Verdict::Refuse(fault), rulings: Ruling::of("refuse", text).into(), effects: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_second(limit: u64) -> ScopeRates {
        ScopeRates { per_second: Some(limit), per_minute: None }
    }

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    /// Exactly, under a clock of the test's own.
    /// Proves G-35, G-36 and G-37.
    #[test]
    fn each_scope_has_its_own_buckets_per_second_and_per_minute() {
        let both = ScopeRates { per_second: Some(2), per_minute: Some(3) };
        for (place, scope) in LimitScope::ALL.into_iter().enumerate() {
            let mut rates = Rates::default();
            rates[place] = both;
            let (limits, start) = (CallLimits::new(rates), Instant::now());
            let take =
                |ms| limits.take("ada", Some("a\0t"), at(start, ms)).map_err(|used| (used.scope, used.rate.limit));
            assert_eq!((take(0), take(0)), (Ok(()), Ok(())), "{scope:?}");
            assert_eq!(take(499), Err((scope, 2)), "one comes back in half a second");
            assert_eq!(take(500), Ok(()));
            assert_eq!(take(1_500), Err((scope, 3)), "the minute is used up");
            assert_eq!(take(20_000), Ok(()));
            // Neither another caller with another tool nor, but for the first two, a request that calls
            // no tool is concerned.
            let others = limits.take("eve", Some("a\0u"), at(start, 20_000)).is_ok();
            assert_eq!(others, scope != LimitScope::Global);
            let other = limits.take("ada", None, at(start, 20_000)).is_ok();
            assert_eq!(other, matches!(scope, LimitScope::Tool | LimitScope::UserAndTool));
        }
    }

    /// A tool has a rate of its own, lower or higher than the default.
    /// Proves NO-8.
    #[test]
    fn the_rate_of_a_tool_stands_in_place_of_the_default() {
        let rate = |pattern, per_minute| ToolRate { pattern: EntryPattern::new(pattern), per_minute };
        let default = ScopeRates { per_second: None, per_minute: Some(2) };
        let scopes = [ScopeRates::default(), ScopeRates::default(), ScopeRates::default(), default];
        let tools = vec![rate("*/search", 4), rate("*/slow", 1), rate("crm/*", 3)];
        let (limits, start) = (CallLimits::new(LimitRules { scopes, tools }), Instant::now());
        let admitted = |user: &str, tool: &str| (0..9).filter(|_| limits.take(user, Some(tool), start).is_ok()).count();
        assert_eq!(
            (admitted("ada", "web\0search"), admitted("ada", "web\0slow"), admitted("ada", "web\0other")),
            (4, 1, 2)
        );
        assert_eq!((admitted("ada", "crm\0search"), admitted("eve", "web\0search")), (3, 4), "the lowest that fits");
        let used_up = limits.take("ada", Some("web\0search"), start).unwrap_err();
        assert_eq!((used_up.scope, used_up.rate.limit), (LimitScope::UserAndTool, 4));
        limits.replace(LimitRules { scopes: Rates::default(), tools: vec![rate("a", 1)] });
        assert!(!limits.is_idle() && admitted("ada", "a\0t") == 1);
    }

    /// Proves G-35.
    #[test]
    fn a_request_that_one_limit_refuses_takes_nothing_from_the_others() {
        let rates = [per_second(3), ScopeRates::default(), per_second(1), ScopeRates::default()];
        let (limits, start) = (CallLimits::new(rates), Instant::now());
        assert!(limits.take("ada", Some("t"), start).is_ok());
        for _ in 0..10 {
            assert_eq!(limits.take("ada", Some("t"), start).unwrap_err().scope, LimitScope::Tool);
        }
        assert!(limits.take("ada", Some("u"), start).is_ok() && limits.take("eve", None, start).is_ok());
        assert_eq!(limits.take("eve", None, start).unwrap_err().scope, LimitScope::Global);
    }

    #[test]
    fn the_longest_wait_is_told_and_other_limits_are_taken_over_with_what_was_used() {
        let one = ScopeRates { per_second: Some(1), per_minute: Some(1) };
        let (limits, start) = (CallLimits::new([ScopeRates::default(), one, one, one]), Instant::now());
        limits.take("ada", Some("t"), start).unwrap();
        let used_up = limits.take("ada", Some("t"), start).unwrap_err();
        assert_eq!((used_up.wait, used_up.rate.per), (Duration::from_secs(60), Duration::from_secs(60)));
        limits.replace([ScopeRates::default(), per_second(1), ScopeRates::default(), ScopeRates::default()]);
        assert_eq!(limits.take("ada", None, at(start, 100)).unwrap_err().wait, Duration::from_millis(900));
        limits.replace(Rates::default());
        assert!(limits.is_idle() && limits.take("ada", None, start).is_ok());
    }

    #[test]
    fn beyond_the_bound_new_callers_share_a_bucket_until_others_are_full_again() {
        let rates = [ScopeRates::default(), per_second(1), ScopeRates::default(), ScopeRates::default()];
        let (limits, start) = (CallLimits::new(rates), Instant::now());
        for number in 0..MAX_BUCKETS {
            limits.take(&format!("user {number}"), None, start).unwrap();
        }
        assert!(limits.take("one more", None, start).is_ok());
        assert!(limits.take("and another", None, start).is_err());
        assert!(limits.take("and another", None, at(start, 2_000)).is_ok());
        assert!(limits.state.lock().unwrap().buckets[1].len() < 10);
    }
}
