//! Refuses calls whose arguments hold what another tool returned, by the flows of the configuration.

use crate::flows::{FlowLimits, FlowMatch, FlowSource, FlowTracker};
use crate::guard::{GuardState, ruling};
use crate::message_text::{self, Readership};
use crate::prepared_work::{Preparation, PreparedWork};
use crate::settings::SchemaMode;
use crate::settings::{FlowRule, GuardMode as _};
use signalbox_engine::bounded;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::chain::{
    Case, EntryNames, EntryPattern, HoldResponse, Interceptor, Judgement, Phase, Rulings, Verdict,
};
use signalbox_engine::fact::FinishedFact;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{ExchangeId, Fault, FaultKind};
use signalbox_wire::{Envelope, Kind, Span, json, method, printable};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Maximum number of sessions and callers whose calls are traced. Beyond it, those used least recently are forgotten.
const MAX_SCOPES: usize = 512;
/// Maximum number of calls of one scope whose results are awaited.
const MAX_AWAITED: usize = 1024;

/// Interceptor that traces values from results to arguments.
pub(crate) struct FlowCheck {
    state: Arc<GuardState>,
    prepared: PreparedWork<Option<FlowMatch>>,
    scopes: Mutex<HashMap<ScopeKey, FlowScope>>,
}

/// Session, or the caller of requests without one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ScopeKey {
    principal: Box<str>,
    session: Option<Box<str>>,
}

/// Calls of one scope. Clones share them.
#[derive(Clone)]
struct FlowScope {
    calls: Arc<Mutex<ScopeCalls>>,
    used: Instant,
}

struct ScopeCalls {
    tracker: FlowTracker,
    count: u64,
    /// Numbers of the calls whose results are awaited.
    awaited: HashMap<ExchangeId, u64>,
}

impl ScopeCalls {
    /// Returns the number of a call in its scope.
    fn number(&mut self, exchange: ExchangeId) -> u64 {
        if let Some(number) = self.awaited.get(&exchange) {
            return *number;
        }
        self.count += 1;
        bounded::make_room(&mut self.awaited, MAX_AWAITED, |number| *number);
        self.awaited.insert(exchange, self.count);
        self.count
    }
}

/// Returns the entry that a request uses.
fn entry_of<'a>(case: &Case<'a>) -> Option<EntryRef<'a>> {
    let exchange = case.exchange?;
    let kind = match &*exchange.method {
        method::TOOLS_CALL => ListKind::Tools,
        method::RESOURCES_READ => ListKind::Resources,
        method::PROMPTS_GET => ListKind::Prompts,
        _ if case.by_task => ListKind::Tools,
        _ => return None,
    };
    let name = exchange.own_name.as_deref().or(exchange.subject.as_deref())?;
    Some(EntryRef { kind, backend: case.backend?, name, definition: None })
}

/// Returns the strings of a value that a person or a model reads or writes.
fn strings(message: &Envelope, span: Span) -> Vec<String> {
    let bytes = message.bytes();
    let mut all = Vec::new();
    message_text::visit(bytes, span, &mut |place| {
        if place.readership != Readership::Opaque && (!place.is_key || place.is_structured) {
            all.extend(json::string(place.span.of(bytes)).map(std::borrow::Cow::into_owned));
        }
    });
    all
}

/// Returns every string that a request sends to a backend, names of members included.
fn sent_texts(message: &Envelope) -> Vec<String> {
    let bytes = message.bytes();
    let mut all = Vec::new();
    for span in ["arguments", "uri"].into_iter().filter_map(|name| message.param(name)) {
        message_text::visit(bytes, span, &mut |place| {
            all.extend(json::string(place.span.of(bytes)).map(std::borrow::Cow::into_owned));
        });
    }
    all
}

/// Finds the recorded result that the texts of a request agree with.
fn trace(scope: &FlowScope, texts: &[String], wanted: u32, now: Instant) -> Option<FlowMatch> {
    let calls = scope.calls.lock().unpoisoned();
    calls.tracker.trace_all(texts.iter().map(String::as_str), wanted, now)
}

impl FlowCheck {
    /// Creates the interceptor of a guard.
    pub fn new(state: &Arc<GuardState>) -> Self {
        let (prepared, scopes) = (PreparedWork::default(), Mutex::default());
        Self { state: Arc::clone(state), prepared, scopes }
    }

    fn scope(&self, case: &Case<'_>, rules: &[FlowRule]) -> FlowScope {
        let key = ScopeKey { principal: case.acts_for.as_str().into(), session: case.session.map(Into::into) };
        let mut scopes = self.scopes.lock().unpoisoned();
        if !scopes.contains_key(&key) {
            bounded::make_room(&mut scopes, MAX_SCOPES, |scope| scope.used);
        }
        let scope = scopes.entry(key).or_insert_with(|| {
            let shortest = rules.iter().map(|rule| rule.min_chars).min();
            let limits = FlowLimits { min_chars: shortest.unwrap_or(24), ..FlowLimits::default() };
            let tracker = FlowTracker::new(limits, self.state.flow_key);
            let calls = ScopeCalls { tracker, count: 0, awaited: HashMap::new() };
            FlowScope { calls: Arc::new(Mutex::new(calls)), used: case.now }
        });
        scope.used = case.now;
        scope.clone()
    }

    /// Judges what a call sends.
    fn request(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>, rules: &[FlowRule]) -> Judgement {
        let (Some(entry), Some(exchange)) = (entry_of(case), case.exchange) else { return Judgement::pass() };
        let names = EntryNames::of(&entry);
        let classes = |pick: fn(&FlowRule) -> &[EntryPattern]| bits(rules, &names, pick);
        let (from, to) = (classes(|rule| &rule.from), classes(|rule| &rule.to));
        let scope = self.scope(case, rules);
        let number = scope.calls.lock().unpoisoned().number(exchange.id);
        if from | to == 0 {
            return Judgement::pass();
        }
        let (message, now, traced) = (case.message.clone(), case.now, scope.clone());
        let work = move || {
            let texts = sent_texts(&message);
            let found = if to == 0 { None } else { trace(&traced, &texts, to, now) };
            if from != 0 {
                // A tool that returns what it was told tells nothing new.
                traced.calls.lock().unpoisoned().tracker.exclude(texts.iter().map(String::as_str));
            }
            found
        };
        let found = match self.prepared.of(case, resumed, work) {
            Preparation::Ready(found) => found,
            Preparation::Held(verdict) => return verdict.into(),
        };
        let Some(found) = &*found else { return Judgement::pass() };
        self.judgement(found, rules, &FlowSink { classes: to, call: number, entry })
    }

    fn judgement(&self, found: &FlowMatch, rules: &[FlowRule], sink: &FlowSink<'_>) -> Judgement {
        let met = rules.iter().enumerate().find(|(at, rule)| {
            let bit = 1_u32.checked_shl(u32::try_from(*at).unwrap_or(u32::MAX)).unwrap_or(0);
            found.source.classes & sink.classes & bit != 0 && (found.is_value || found.length >= rule.min_chars)
        });
        let Some((_, rule)) = met else { return Judgement::pass() };
        let is_shadow = self.state.settings.load().shadow;
        let mode = if is_shadow { rule.mode.in_shadow() } else { rule.mode };
        let text = describe(found, sink);
        let name = format!("guard.flows.{}", rule.name).into();
        let (verdict, word) = match mode {
            SchemaMode::Off => return Judgement::pass(),
            SchemaMode::Report => (Verdict::Pass, "report"),
            SchemaMode::Enforce => {
                let told = format!("the flow `{}` is not allowed: {text}", rule.name);
                (Verdict::Refuse(Fault::new(FaultKind::Denied, told)), "refuse")
            }
        };
        Judgement { verdict, rulings: Rulings::from(ruling(&name, word, text)), effects: Vec::new() }
    }

    /// Records what a call returned.
    fn response(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>, rules: &[FlowRule]) -> Judgement {
        let (Some(entry), Some(exchange)) = (entry_of(case), case.exchange) else { return Judgement::pass() };
        let names = EntryNames::of(&entry);
        let classes = bits(rules, &names, |rule| &rule.from);
        let is_result = case.message.kind() == Kind::Response;
        let Some(span) = case.message.result_span().filter(|_| is_result && classes != 0) else {
            return Judgement::pass();
        };
        let scope = self.scope(case, rules);
        let call = scope.calls.lock().unpoisoned().number(exchange.id);
        let tool = format!("{}/{}", entry.backend, printable::beginning(entry.name, 100)).into();
        let source = FlowSource { call, tool, classes };
        let (message, now) = (case.message.clone(), case.now);
        let work = move || {
            let texts = strings(&message, span);
            let texts = texts.iter().map(String::as_str);
            scope.calls.lock().unpoisoned().tracker.record(source.clone(), texts, now);
            None
        };
        match self.prepared.of(case, resumed, work) {
            Preparation::Ready(_) => Judgement::pass(),
            Preparation::Held(verdict) => verdict.into(),
        }
    }
}

/// Returns a bit for each rule that has a pattern for this entry.
fn bits(rules: &[FlowRule], names: &EntryNames<'_>, pick: fn(&FlowRule) -> &[EntryPattern]) -> u32 {
    let is_met = |rule: &&FlowRule| pick(rule).iter().any(|pattern| pattern.touches(names));
    rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| is_met(rule))
        .map(|(at, _)| 1_u32 << (at % 32))
        .fold(0, |all, bit| all | bit)
}

/// Call that would be given what another returned.
struct FlowSink<'a> {
    /// Flows that forbid it something, one bit for each.
    classes: u32,
    /// Number of the call in its scope.
    call: u64,
    entry: EntryRef<'a>,
}

/// Describes a flow without quoting what flows.
fn describe(found: &FlowMatch, sink: &FlowSink<'_>) -> String {
    let what = if found.is_value { "a value".to_owned() } else { format!("{} characters", found.length) };
    let form = if found.form.is_verbatim() { String::new() } else { format!(" as {}", found.form) };
    let FlowSource { call, tool, .. } = &found.source;
    let FlowSink { call: number, entry, .. } = sink;
    let name = printable::beginning(entry.name, 100);
    format!("{what} that call {call} ({tool}) returned would go{form} into call {number} ({}/{name})", entry.backend)
}

impl Interceptor for FlowCheck {
    fn name(&self) -> &'static str {
        "guard flows"
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        let settings = self.state.settings.load();
        match case.phase {
            Phase::Request => self.request(case, resumed, &settings.flows),
            Phase::Response => self.response(case, resumed, &settings.flows),
            _ => Judgement::pass(),
        }
    }

    fn is_idle(&self) -> bool {
        self.state.settings.load().flows.is_empty()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        matches!(phase, Phase::Request | Phase::Response) && !self.is_idle()
    }

    fn judges_changes(&self) -> bool {
        true
    }

    fn finished(&self, finished: &FinishedFact) {
        self.prepared.finished(finished.exchange);
    }
}
