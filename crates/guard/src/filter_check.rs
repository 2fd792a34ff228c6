//! Looks for attacks in the arguments of calls, after they were found to fit their schema.

use crate::argument_filters::{self, ArgumentFinding, Meanings};
use crate::filter_settings::{ArgumentFilter, FilterAction};
use crate::guard::{AppliedMode, GuardState, ruling};
use crate::prepared_work::{Preparation, PreparedWork};
use crate::tool_schemas::ToolSchemas;
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::chain::{
    Case, Hold, HoldQuestion, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict, settle,
};
use signalbox_engine::fact::FinishedFact;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{ExchangeId, Fault, FaultKind, bounded};
use signalbox_secret_scan::Scanner;
use signalbox_wire::{Edits, Envelope, Limits, json, method};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time that a person has to decide about a call.
const ASK_WITHIN: Duration = Duration::from_secs(300);
/// Maximum number of released calls that are remembered until they end.
const MAX_RELEASED: usize = 4096;
/// Place in the chain's hold that tells a person's decision from the end of work.
const PERSON: u32 = 1;

/// Interceptor that filters arguments.
pub(crate) struct FilterCheck {
    state: Arc<GuardState>,
    prepared: PreparedWork<Vec<ArgumentFinding>>,
    /// Calls that a person released, by the address of their arguments.
    released: Mutex<HashMap<usize, ReleasedCall>>,
    /// True once a person released a call.
    has_released: AtomicBool,
}

/// Call that a person released. Numbers of exchanges repeat in other sessions, so only the very message that the person
/// released counts.
struct ReleasedCall {
    exchange: ExchangeId,
    /// Kept so that no other message takes its place in memory.
    arguments: Bytes,
    since: Instant,
}

/// Finding with the action that applies to it.
struct JudgedFinding {
    finding: ArgumentFinding,
    filter: ArgumentFilter,
    applied: AppliedMode<FilterAction>,
}

/// Returns the arguments of a call that may hold something to find.
pub(crate) fn arguments_of(message: &Envelope) -> Option<Bytes> {
    let span = message.param("arguments").filter(|_| message.method() == Some(method::TOOLS_CALL))?;
    let arguments = message.bytes().slice(span.range());
    arguments.contains(&b'"').then_some(arguments)
}

/// Returns everything that the filters find in arguments.
pub(crate) fn examine(arguments: &Bytes, schemas: Option<&ToolSchemas>, credentials: bool) -> Vec<ArgumentFinding> {
    let Ok(value) = serde_json::from_slice::<Value>(arguments) else { return Vec::new() };
    // The definition of a tool that is listed after a sign-in is not known yet. Names of arguments say much.
    let unknown = Meanings::default();
    let meanings = schemas.map_or(&unknown, |schemas| &schemas.meanings);
    let mut found = argument_filters::examine(&value, meanings);
    if credentials && Scanner::built_in().may_hold(arguments) {
        found.extend(argument_filters::credentials(&value, meanings));
    }
    found
}

impl FilterCheck {
    /// Creates the interceptor of a guard.
    pub fn new(state: &Arc<GuardState>) -> Self {
        let (released, has_released) = Default::default();
        Self { state: Arc::clone(state), prepared: PreparedWork::default(), released, has_released }
    }

    /// Returns the search for findings in the arguments of a call, if there is anything to search.
    fn search(&self, case: &Case<'_>) -> Option<impl Fn() -> Vec<ArgumentFinding> + Send + Sync + use<>> {
        let arguments = arguments_of(case.message)?;
        let schemas = case.definition.map(|definition| self.state.schemas.schemas(definition).schemas);
        let credentials = self.applied(case, ArgumentFilter::Credential).mode != FilterAction::Off;
        Some(move || examine(&arguments, schemas.as_deref(), credentials))
    }

    fn applied(&self, case: &Case<'_>, filter: ArgumentFilter) -> AppliedMode<FilterAction> {
        self.state.mode(case, |settings| settings.filters.of(filter), |tool| tool.filters)
    }

    /// Returns the findings whose filters are used.
    fn active_findings(&self, case: &Case<'_>, found: &[ArgumentFinding]) -> Vec<JudgedFinding> {
        let judged = found.iter().map(|finding| {
            let filter = ArgumentFilter::of(finding.kind);
            JudgedFinding { finding: finding.clone(), filter, applied: self.applied(case, filter) }
        });
        judged.filter(|judged| judged.applied.mode != FilterAction::Off).collect()
    }

    /// Returns the call without the harmful parts of its arguments, if they can be removed.
    fn sanitise(message: &Envelope, findings: &[JudgedFinding]) -> Option<Envelope> {
        let (bytes, arguments) = (message.bytes(), message.param("arguments")?);
        let mut edits = Edits::new();
        for judged in findings.iter().filter(|judged| judged.applied.mode == FilterAction::Sanitise) {
            let span = at_pointer(arguments.of(bytes), &judged.finding.place)?;
            let text = json::string(span.of(arguments.of(bytes)))?;
            let clean = argument_filters::sanitise(&text, judged.finding.kind)?;
            let span = span.shift(u32::try_from(arguments.range().start).ok()?);
            edits.replace(span, json::quote(&clean));
        }
        Envelope::parse(edits.apply_all(bytes).ok()?).ok()
    }

    /// Returns true if a person released the call with these arguments.
    fn is_released(&self, case: &Case<'_>) -> bool {
        let Some(arguments) = arguments_of(case.message) else { return false };
        let released = self.released.lock().unpoisoned();
        released.get(&arguments.as_ptr().addr()).is_some_and(|one| one.arguments.len() == arguments.len())
    }

    /// Remembers what a person released, as it goes on.
    fn release(&self, case: &Case<'_>, verdict: &Verdict) {
        let message = match verdict {
            Verdict::Pass => case.message,
            Verdict::Modify(message) => message,
            _ => return,
        };
        if let (Some(exchange), Some(arguments)) = (case.exchange, arguments_of(message)) {
            let mut released = self.released.lock().unpoisoned();
            bounded::make_room(&mut released, MAX_RELEASED, |one| one.since);
            self.has_released.store(true, Ordering::Relaxed);
            let address = arguments.as_ptr().addr();
            released.insert(address, ReleasedCall { exchange: exchange.id, arguments, since: case.now });
        }
    }

    /// Asks a person about the call, or refuses one that cannot wait.
    fn ask(case: &Case<'_>, findings: &[JudgedFinding]) -> Verdict {
        if !case.can_wait {
            return Verdict::Refuse(refusal(findings));
        }
        let asking = findings.iter().filter(|judged| judged.applied.mode == FilterAction::Ask);
        let reason = format!("an argument may do harm: {}", describe(asking)).into();
        let question = HoldQuestion::Person { reason, within: ASK_WITHIN };
        Verdict::Hold(Hold { question, cursor: PERSON, message: None })
    }
}

/// Finds the value at a JSON pointer.
fn at_pointer(value: &[u8], pointer: &str) -> Option<signalbox_wire::Span> {
    let mut span = signalbox_wire::Span::new(0, value.len());
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        let inner = span.of(value);
        let found = match inner.first()? {
            b'[' => json::elements(inner).nth(name.parse().ok()?)?,
            _ => json::member(inner, &name)?,
        };
        span = found.shift(u32::try_from(span.range().start).ok()?);
    }
    Some(span)
}

/// Describes findings without the values that they are about.
fn describe<'a>(findings: impl Iterator<Item = &'a JudgedFinding>) -> String {
    let lines =
        findings.map(|judged| format!("{}: {} ({})", judged.finding.place, judged.finding.reason, judged.finding.kind));
    lines.collect::<Vec<_>>().join("; ")
}

fn refusal(findings: &[JudgedFinding]) -> Fault {
    let blocked = findings.iter().filter(|judged| judged.applied.mode >= FilterAction::Sanitise);
    Fault::new(FaultKind::Denied, format!("an argument was refused: {}", describe(blocked)))
}

impl Interceptor for FilterCheck {
    fn name(&self) -> &'static str {
        "guard filters"
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        if let Some(decision) = resumed.filter(|resumed| resumed.cursor == PERSON) {
            let judgement = settle(case, decision.answer, Some("guard.filters".into()), &Limits::default());
            self.release(case, &judgement.verdict);
            return judgement;
        }
        let Some(search) = self.search(case) else { return Judgement::pass() };
        let found = match self.prepared.of(case, resumed, search) {
            Preparation::Ready(found) => found,
            Preparation::Held(verdict) => return verdict.into(),
        };
        let findings = self.active_findings(case, &found);
        let Some(action) = findings.iter().map(|judged| judged.applied.mode).max() else { return Judgement::pass() };
        let rulings = |word: &'static str| -> Vec<Arc<Ruling>> {
            let of = |judged: &JudgedFinding| {
                let rule = judged.applied.rule(&format!("filters.{}", judged.filter.word()));
                let word = if judged.applied.mode == FilterAction::Report { "report" } else { word };
                Arc::new(ruling(&rule, word, describe(std::iter::once(judged))))
            };
            findings.iter().map(of).collect()
        };
        let judgement = |verdict, word| Judgement { verdict, rulings: rulings(word).into(), effects: Vec::new() };
        match action {
            FilterAction::Off | FilterAction::Report => judgement(Verdict::Pass, "report"),
            FilterAction::Sanitise => match Self::sanitise(case.message, &findings) {
                Some(message) => judgement(Verdict::Modify(message), "modify"),
                None => judgement(Verdict::Refuse(refusal(&findings)), "refuse"),
            },
            FilterAction::Ask if self.is_released(case) => Judgement::pass(),
            FilterAction::Ask => judgement(Self::ask(case, &findings), if case.can_wait { "hold" } else { "refuse" }),
            FilterAction::Block => judgement(Verdict::Refuse(refusal(&findings)), "refuse"),
        }
    }

    fn is_idle(&self) -> bool {
        self.state.settings.load().filters_are_off()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request && !self.is_idle()
    }

    fn judges_changes(&self) -> bool {
        true
    }

    fn would_refuse(&self, case: &Case<'_>) -> Option<Fault> {
        let found = self.search(case)?();
        let findings = self.active_findings(case, &found);
        let action = findings.iter().map(|judged| judged.applied.mode).max()?;
        let is_refused = match action {
            FilterAction::Off | FilterAction::Report | FilterAction::Ask => false,
            FilterAction::Sanitise => Self::sanitise(case.message, &findings).is_none(),
            FilterAction::Block => true,
        };
        is_refused.then(|| refusal(&findings))
    }

    fn finished(&self, finished: &FinishedFact) {
        self.prepared.finished(finished.exchange);
        if self.has_released.load(Ordering::Relaxed) {
            self.released.lock().unpoisoned().retain(|_, one| one.exchange != finished.exchange);
        }
    }
}
