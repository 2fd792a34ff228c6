//! Budgets of calls: concurrency, size of results, repetitions of the same call, and the calls and cost per day.
//!
//! Each bound applies to the tools that its pattern matches. Where several patterns match, the strictest bound and the
//! highest price apply. Days are UTC days. The counts of a day are stored elsewhere: [`CallBudgets::take_unsaved`]
//! returns what has been counted here, and [`CallBudgets::take_over`] takes the total of all processes and earlier
//! runs.

use crate::day_counts::{DayCounts, MAX_COUNTED};
use crate::permissions::called_tool;
use crate::running_calls::{RunningCalls, RunningTask};
use bytes::Bytes;
use signalbox_engine::bridge::digest::write_canonical;
use signalbox_engine::bridge::tasks::{TaskState, is_terminal};
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict};
use signalbox_engine::chain::{EntryNames, EntryPattern};
use signalbox_engine::fact::FinishedFact;
use signalbox_engine::keys::TextMap;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::tool_label::TimeoutSource;
use signalbox_engine::{Exchange, ExchangeId, Fault, FaultKind};
use signalbox_wire::{Edits, Span, json, meta, method};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const DAY_MS: u64 = 24 * 3600 * 1000;

/// Bounds for the tools that a pattern matches; `None` for no bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolBounds {
    /// Tools that the bounds apply to.
    pub pattern: EntryPattern,
    /// Maximum number of concurrent calls.
    pub max_concurrent: Option<u64>,
    /// Maximum size of a response, in bytes.
    pub max_result: Option<u64>,
    /// Maximum number of identical calls in a row by one caller.
    pub max_repeats: Option<u64>,
    /// Maximum number of calls per caller and day.
    pub calls_per_day: Option<u64>,
    /// Price of a call, in units of the budget.
    pub price: u64,
    /// Timeout of a call, in place of the backend's.
    pub timeout: Option<Duration>,
}

/// Budgets of tools and callers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Budgets {
    pub tools: Vec<ToolBounds>,
    /// Daily budget of each caller; `None` for unlimited.
    pub user_per_day: Option<u64>,
}

/// Bounds of a single tool, combined from every pattern that matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Bounds {
    max_concurrent: Option<u64>,
    max_result: Option<u64>,
    max_repeats: Option<u64>,
    calls_per_day: Option<u64>,
    price: u64,
    timeout: Option<Duration>,
}

impl Budgets {
    fn is_none(&self) -> bool {
        self.tools.is_empty()
    }

    fn of(&self, entry: &EntryRef<'_>) -> Bounds {
        let mut all = Bounds::default();
        let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let names = EntryNames::of(entry);
        for bounds in self.tools.iter().filter(|bounds| bounds.pattern.touches(&names)) {
            all.max_concurrent = least(all.max_concurrent, bounds.max_concurrent);
            all.max_result = least(all.max_result, bounds.max_result);
            all.max_repeats = least(all.max_repeats, bounds.max_repeats);
            all.calls_per_day = least(all.calls_per_day, bounds.calls_per_day);
            all.price = all.price.max(bounds.price);
            all.timeout = all.timeout.into_iter().chain(bounds.timeout).min();
        }
        all
    }
}

#[derive(Debug, Default)]
struct BudgetState {
    budgets: Budgets,
    /// Counts of all processes that share the data folder, as far as this one has read them.
    today: DayCounts,
    /// Part of `today` that has not been handed out for storage yet.
    unsaved: DayCounts,
    running: RunningCalls,
    /// Hash of each caller's last call, and the number of times it was made in a row.
    last: TextMap<Box<str>, (u64, u64)>,
}

/// Keys under which a call is counted: its tool, its caller, and both together.
#[derive(Clone, Copy, Debug)]
struct CallKeys<'a> {
    tool: &'a str,
    caller: &'a str,
    both: &'a str,
}

/// Interceptor that enforces call budgets.
#[derive(Debug, Default)]
pub struct CallBudgets {
    state: Mutex<BudgetState>,
    on: AtomicBool,
    /// False if no tool has a timeout of its own.
    times: AtomicBool,
}

impl CallBudgets {
    /// Creates the interceptor with these budgets.
    #[must_use]
    pub fn new(budgets: Budgets) -> Self {
        let this = Self::default();
        this.replace(budgets);
        this
    }

    /// Replaces the budgets. Past usage still counts.
    pub fn replace(&self, budgets: Budgets) {
        self.on.store(!budgets.is_none(), Ordering::Relaxed);
        self.times.store(budgets.tools.iter().any(|bounds| bounds.timeout.is_some()), Ordering::Relaxed);
        let mut state = self.state.lock().unpoisoned();
        if budgets.is_none() {
            // Without budgets, the ends of calls are not noted.
            state.running = RunningCalls::default();
        }
        state.budgets = budgets;
    }

    /// Returns true if calls were counted since [`CallBudgets::take_unsaved`] was last called.
    #[must_use]
    pub fn has_unsaved(&self) -> bool {
        !self.state.lock().unpoisoned().unsaved.is_empty()
    }

    /// Takes the counts that have accumulated since the last call, to be added to the stored ones.
    #[must_use]
    pub fn take_unsaved(&self) -> DayCounts {
        std::mem::take(&mut self.state.lock().unpoisoned().unsaved)
    }

    /// Puts back counts that could not be stored.
    pub fn put_back(&self, unsaved: &DayCounts) {
        self.state.lock().unpoisoned().unsaved.add(unsaved);
    }

    /// Continues from `total`, which includes all counts that were taken before.
    pub fn take_over(&self, mut total: DayCounts) {
        let mut state = self.state.lock().unpoisoned();
        if total.day >= state.today.day {
            total.add(&state.unsaved);
            state.today = total;
        }
    }

    fn request(&self, case: &Case<'_>) -> Result<(), Fault> {
        let Some((exchange, entry)) = tool_of(case) else { return Ok(()) };
        // Later rounds and retries belong to a call that was already counted.
        if case.round > 1 || case.attempt > 1 {
            return Ok(());
        }
        let mut state = self.state.lock().unpoisoned();
        let bounds = state.budgets.of(&entry);
        if bounds == Bounds::default() {
            return Ok(());
        }
        state.start_day(case.unix_ms / DAY_MS);
        let tool = format!("{}/{}", entry.backend, entry.name);
        let caller = case.caller.principal().as_str();
        let both = format!("{caller}\0{tool}");
        let mut mark = None;
        if bounds.max_repeats.is_some() {
            // Hashing large arguments must not block other callers.
            drop(state);
            mark = Some(call_mark(&tool, &arguments_of(case)));
            state = self.state.lock().unpoisoned();
        }
        let last = state.last.get(caller).filter(|(last, _)| Some(*last) == mark);
        let repeats = last.map_or(1, |(_, count)| count + 1);
        let keys = CallKeys { tool: &tool, caller, both: &both };
        state.running.forget_old_tasks(case.now);
        state.check(&bounds, keys, repeats, case.unix_ms)?;
        state.evict();
        if let Some(mark) = mark {
            state.last.insert(caller.into(), (mark, repeats));
        }
        state.count(&bounds, caller, both);
        if bounds.max_concurrent.is_some() {
            state.running.begin(exchange, &tool);
        }
        Ok(())
    }

    fn response(&self, case: &Case<'_>) -> Result<(), Fault> {
        let Some((_, entry)) = tool_of(case) else { return Ok(()) };
        let most = self.state.lock().unpoisoned().budgets.of(&entry).max_result;
        let size = case.message.bytes().len() as u64;
        match most.filter(|most| size > *most) {
            Some(most) => {
                Err(limited("result", format!("the result has {size} bytes; at most {most} are allowed"), None))
            }
            None => Ok(()),
        }
    }
}

impl BudgetState {
    fn start_day(&mut self, day: u64) {
        self.today.start(day);
        self.unsaved.start(day);
    }

    fn count(&mut self, bounds: &Bounds, caller: &str, both: String) {
        for counts in [&mut self.today, &mut self.unsaved] {
            if bounds.calls_per_day.is_some() {
                *counts.calls.entry(both.as_str().into()).or_default() += 1;
            }
            if bounds.price > 0 {
                *counts.spent.entry(caller.into()).or_default() += bounds.price;
            }
        }
    }

    fn check(&self, bounds: &Bounds, keys: CallKeys<'_>, repeats: u64, now: u64) -> Result<(), Fault> {
        let CallKeys { tool, caller, both } = keys;
        let tomorrow = Some((DAY_MS - now % DAY_MS).div_ceil(1000));
        let of = |map: &TextMap<Box<str>, u64>, key: &str| map.get(key).copied().unwrap_or(0);
        if let Some(most) = bounds.max_concurrent.filter(|most| self.running.count(tool) >= *most) {
            return Err(limited("concurrent", format!("{most} calls of the tool run already"), Some(1)));
        }
        if let Some(most) = bounds.max_repeats.filter(|most| repeats > *most) {
            let text = format!("the caller made the same call {most} times in a row; make another one first");
            return Err(limited("repeats", text, None));
        }
        if let Some(most) = bounds.calls_per_day.filter(|most| of(&self.today.calls, both) >= *most) {
            return Err(limited("day", format!("the caller made {most} calls of the tool today"), tomorrow));
        }
        let left = self.budgets.user_per_day.map(|budget| budget.saturating_sub(of(&self.today.spent, caller)));
        if let Some(left) = left.filter(|left| bounds.price > *left) {
            let text = format!("the call costs {}, and {left} of the caller's budget are left today", bounds.price);
            return Err(limited("budget", text, tomorrow));
        }
        Ok(())
    }

    fn evict(&mut self) {
        if self.last.len() >= MAX_COUNTED {
            self.last.clear();
        }
        self.today.evict();
        self.unsaved.evict();
    }

    /// Follows the tasks of running calls: an answer to a call may begin one, and later messages tell of its end.
    fn follow_tasks(&mut self, case: &Case<'_>) {
        let Some(backend) = case.backend else { return };
        let task = |id: &str| RunningTask {
            caller: case.caller.principal().as_str().into(),
            session: case.session.map(Box::from),
            backend: backend.into(),
            // Clients of the new era know it by a name with its backend.
            task: id.strip_prefix(backend).and_then(|rest| rest.strip_prefix('+')).unwrap_or(id).into(),
        };
        let body = if case.phase == Phase::Response { case.message.result() } else { case.message.params() };
        let Some(body) = body else { return };
        if case.phase == Phase::Response
            && let Some((exchange, _)) = tool_of(case)
        {
            // The result of a call that became a task.
            if case.by_task {
                return self.running.end_task_of(exchange);
            }
            if let Some(state) = TaskState::read(body).filter(|state| !is_terminal(state.status)) {
                let stored = state.ttl.map(Duration::from_millis);
                self.running.become_task(exchange, task(&state.id), stored, case.now);
            }
            return;
        }
        if !self.running.has_tasks() {
            return;
        }
        let listed = json::member(body, "tasks").map_or(&b"[]"[..], |span| span.of(body));
        let all = json::elements(listed).map(|span| span.of(listed)).chain([body]).filter_map(TaskState::read);
        for state in all.filter(|state| is_terminal(state.status)) {
            self.running.end_task(&task(&state.id));
        }
    }
}

fn limited(limit: &str, text: String, retry_after: Option<u64>) -> Fault {
    let fault = Fault::new(FaultKind::RateLimited, text).with_str("limit", limit);
    match retry_after {
        Some(seconds) => fault.with_raw("retryAfter", seconds.to_string()),
        None => fault,
    }
}

impl TimeoutSource for CallBudgets {
    fn timeout(&self, backend: &str, name: &str) -> Option<Duration> {
        if !self.times.load(Ordering::Relaxed) {
            return None;
        }
        let entry = EntryRef { kind: ListKind::Tools, backend, name, definition: None };
        self.state.lock().unpoisoned().budgets.of(&entry).timeout
    }
}

/// Returns true for messages that may begin a task or tell of its end.
fn tells_of_tasks(case: &Case<'_>) -> bool {
    match case.phase {
        Phase::Response => {
            tool_of(case).is_some() || case.exchange.is_some_and(|exchange| exchange.method.starts_with("tasks/"))
        }
        Phase::FromBackend => matches!(case.message.method(), Some(method::TASKS_STATUS | method::TASKS_CHANGED)),
        _ => false,
    }
}

fn tool_of<'a>(case: &Case<'a>) -> Option<(ExchangeId, EntryRef<'a>)> {
    Some((case.exchange?.id, called_tool(case)?))
}

impl Interceptor for CallBudgets {
    fn name(&self) -> &'static str {
        "budgets"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let judged = match case.phase {
            Phase::Request => self.request(case),
            Phase::Response => self.response(case),
            _ => Ok(()),
        };
        if tells_of_tasks(case) {
            self.state.lock().unpoisoned().follow_tasks(case);
        }
        match judged {
            Ok(()) => Judgement::pass(),
            Err(fault) => {
                let rulings = Ruling::of("refuse", fault.message.clone()).into();
                Judgement { verdict: Verdict::Refuse(fault), rulings, effects: Vec::new() }
            }
        }
    }

    fn is_idle(&self) -> bool {
        !self.on.load(Ordering::Relaxed)
    }

    fn looks_at(&self, phase: Phase) -> bool {
        matches!(phase, Phase::Request | Phase::Response | Phase::FromBackend) && !self.is_idle()
    }

    fn finished(&self, finished: &FinishedFact) {
        if !self.is_idle() {
            self.state.lock().unpoisoned().running.end(finished.exchange);
        }
    }
}

/// Returns the arguments of a call. Those of an extension method are its params without `_meta`, which may differ from
/// one request to the next.
fn arguments_of(case: &Case<'_>) -> Bytes {
    let message = case.message;
    let slice = |span: Span| message.bytes().slice(span.range());
    if !case.exchange.is_some_and(Exchange::is_foreign) {
        return message.param("arguments").map(slice).unwrap_or_default();
    }
    let Some(params) = message.params_span().map(slice) else { return Bytes::new() };
    let mut edits = Edits::new();
    edits.remove_member(&params, Span::new(0, params.len()), meta::META);
    edits.apply(&params)
}

/// Hashes a call by the value of its arguments, so that two spellings of the same value are the same call.
fn call_mark(tool: &str, arguments: &[u8]) -> u64 {
    let mut written = Vec::with_capacity(arguments.len());
    write_canonical(arguments, &mut written);
    BuildHasherDefault::<DefaultHasher>::default().hash_one((tool, written))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(pattern: &str) -> ToolBounds {
        let none = None;
        ToolBounds {
            pattern: EntryPattern::new(pattern),
            max_concurrent: none,
            max_result: none,
            max_repeats: none,
            calls_per_day: none,
            price: 0,
            timeout: None,
        }
    }

    #[test]
    fn the_shortest_time_that_fits_a_tool_holds() {
        let time = |pattern, seconds| ToolBounds { timeout: Some(Duration::from_secs(seconds)), ..bounds(pattern) };
        let tools = vec![time("bank", 20), time("bank/pay", 5), time("bank/p*", 9), bounds("bank/ask")];
        let budgets = CallBudgets::new(Budgets { tools, user_per_day: None });
        let of = |backend, name| budgets.timeout(backend, name).map(|time| time.as_secs());
        assert_eq!((of("bank", "pay"), of("bank", "ask"), of("shop", "pay")), (Some(5), Some(20), None));
        budgets.replace(Budgets::default());
        assert_eq!(budgets.timeout("bank", "pay"), None);
    }

    fn state(budgets: Budgets) -> BudgetState {
        BudgetState { budgets, ..BudgetState::default() }
    }

    #[test]
    fn the_strictest_bound_holds_and_the_highest_price_counts() {
        let tools = vec![
            ToolBounds { max_concurrent: Some(5), price: 2, ..bounds("bank") },
            ToolBounds { max_concurrent: Some(3), price: 1, max_result: Some(9), ..bounds("bank/pay") },
        ];
        let budgets = Budgets { tools, user_per_day: None };
        let entry = EntryRef { kind: ListKind::Tools, backend: "bank", name: "pay", definition: None };
        let of = budgets.of(&entry);
        assert_eq!((of.max_concurrent, of.max_result, of.price), (Some(3), Some(9), 2));
        assert_eq!(budgets.of(&EntryRef { backend: "other", ..entry }), Bounds::default());
    }

    #[test]
    fn a_budget_is_spent_and_comes_back_the_next_day() {
        let mut state = state(Budgets { tools: Vec::new(), user_per_day: Some(5) });
        let price = Bounds { price: 3, ..Bounds::default() };
        let keys = CallKeys { tool: "bank/pay", caller: "ada", both: "ada\0bank/pay" };
        state.start_day(1);
        assert!(state.check(&price, keys, 1, DAY_MS).is_ok());
        state.today.spent.insert("ada".into(), 3);
        let told = state.check(&price, keys, 1, DAY_MS + DAY_MS / 2).unwrap_err();
        assert_eq!(told.message, "the call costs 3, and 2 of the caller's budget are left today");
        assert!(told.data.iter().any(|(name, value)| *name == "retryAfter" && &**value == b"43200"));
        assert!(state.check(&price, CallKeys { tool: "bank/pay", caller: "eve", both: "eve" }, 1, DAY_MS).is_ok());
        state.start_day(2);
        assert!(state.check(&price, keys, 1, 2 * DAY_MS).is_ok());
    }

    #[test]
    fn counts_of_a_day_are_kept_and_taken_over_with_those_of_others() {
        let bounds = Bounds { price: 3, calls_per_day: Some(9), ..Bounds::default() };
        let spend = |budgets: &CallBudgets, day: u64| {
            let mut state = budgets.state.lock().unwrap();
            state.start_day(day);
            state.count(&bounds, "ada", "ada\0bank/pay".to_owned());
        };
        let spent = |budgets: &CallBudgets| budgets.state.lock().unwrap().today.spent.get("ada").copied();
        let (first, second) = (CallBudgets::default(), CallBudgets::default());
        assert!(!first.has_unsaved());
        spend(&first, 5);
        spend(&second, 5);
        let mut file = first.take_unsaved();
        assert!(!first.has_unsaved() && spent(&first) == Some(3), "handing out forgets nothing");
        file.add(&second.take_unsaved());
        spend(&second, 5);
        second.take_over(file.clone());
        assert_eq!((spent(&second), file.calls.get("ada\0bank/pay").copied()), (Some(9), Some(2)));
        let (next_run, unsaved) = (CallBudgets::default(), second.take_unsaved());
        second.put_back(&unsaved);
        assert_eq!(second.take_unsaved(), unsaved);
        file.add(&unsaved);
        next_run.take_over(file.clone());
        assert_eq!(spent(&next_run), Some(9));
        spend(&next_run, 6);
        assert_eq!(spent(&next_run), Some(3), "another day");
        next_run.take_over(file.clone());
        assert_eq!(spent(&next_run), Some(3), "counts of yesterday do not replace those of today");
        file.add(&next_run.take_unsaved());
        assert_eq!((file.day, file.spent.get("ada").copied()), (6, Some(3)));
    }

    /// Other spellings of the same arguments were other calls.
    #[test]
    fn the_same_arguments_are_a_repetition_however_they_are_spelled() {
        let mark = |arguments: &str| call_mark("files/echo", arguments.as_bytes());
        for (one, other) in [
            (r#"{"a":"abc"}"#, r#"{"a":"\u0061bc"}"#),
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
            (r#"{"a":1,"b":2}"#, r#"{ "a": 1.0, "b": 20e-1 }"#),
            (r#"{"a":[{"x":1,"y":[]}]}"#, r#"{"a":[{"y":[ ],"x":1}]}"#),
        ] {
            assert_eq!(mark(one), mark(other), "{one} {other}");
        }
        assert_ne!(mark(r#"{"a":[1,2]}"#), mark(r#"{"a":[2,1]}"#));
        assert_ne!(mark(r#"{"a":1}"#), mark(r#"{"a":"1"}"#));
        assert_ne!(mark("{}"), call_mark("files/read", b"{}"));
    }

    #[test]
    fn calls_that_run_repeat_or_are_many_are_refused_by_name() {
        let mut state = state(Budgets::default());
        let keys = CallKeys { tool: "a/t", caller: "ada", both: "ada\0a/t" };
        state.running.begin(ExchangeId(1), "a/t");
        state.today.calls.insert("ada\0a/t".into(), 4);
        let told = |state: &BudgetState, bounds: Bounds, repeats| {
            let fault = state.check(&bounds, keys, repeats, 0).err()?;
            fault.data.iter().find(|(name, _)| *name == "limit").map(|(_, value)| value.clone())
        };
        let one = Bounds { max_concurrent: Some(1), ..Bounds::default() };
        assert_eq!(told(&state, one, 1).as_deref(), Some(&b"\"concurrent\""[..]));
        let loops = Bounds { max_repeats: Some(2), ..Bounds::default() };
        assert_eq!((told(&state, loops, 2), told(&state, loops, 3).as_deref()), (None, Some(&b"\"repeats\""[..])));
        let daily = Bounds { calls_per_day: Some(4), ..Bounds::default() };
        assert_eq!(told(&state, daily, 1).as_deref(), Some(&b"\"day\""[..]));
        state.running.end(ExchangeId(1));
        assert_eq!(told(&state, one, 1), None);
    }
}
