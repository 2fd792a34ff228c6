//! Looks for attacks in the arguments of calls, after they were found to fit their schema.

use crate::argument_filters::{self, ArgumentFinding, Meanings};
use crate::filter_settings::{ArgumentFilter, FilterAction};
use crate::guard::{AppliedMode, GuardState, ruling};
use serde_json::Value;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict};
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Edits, Envelope, json, method};
use std::sync::Arc;

/// Interceptor that filters arguments.
pub(crate) struct FilterCheck(pub Arc<GuardState>);

/// Finding with what is done about it.
struct JudgedFinding {
    finding: ArgumentFinding,
    filter: ArgumentFilter,
    applied: AppliedMode<FilterAction>,
}

impl FilterCheck {
    /// Returns the findings whose filters are used.
    fn findings(&self, case: &Case<'_>) -> Vec<JudgedFinding> {
        let is_call = case.message.method() == Some(method::TOOLS_CALL);
        let Some(arguments) = case.message.param("arguments").filter(|_| is_call) else { return Vec::new() };
        let arguments = arguments.of(case.message.bytes());
        if !arguments.contains(&b'"') {
            return Vec::new();
        }
        let Ok(arguments) = serde_json::from_slice::<Value>(arguments) else { return Vec::new() };
        // The definition of a tool that is listed after a sign-in is not known yet. Names of arguments say much.
        let lookup = case.definition.map(|definition| self.0.schemas.schemas(definition));
        let unknown = Meanings::default();
        let meanings = lookup.as_ref().map_or(&unknown, |lookup| &lookup.schemas.meanings);
        let found = argument_filters::examine(&arguments, meanings);
        let judged = found.into_iter().map(|finding| {
            let filter = ArgumentFilter::of(finding.kind);
            let applied = self.0.mode(case, |settings| settings.filters.of(filter), |tool| tool.filters);
            JudgedFinding { finding, filter, applied }
        });
        judged.filter(|judged| judged.applied.mode != FilterAction::Off).collect()
    }

    /// Returns the call without the harmful parts of its arguments, if they can be removed.
    fn sanitised(message: &Envelope, findings: &[JudgedFinding]) -> Option<Envelope> {
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

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let findings = self.findings(case);
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
            FilterAction::Sanitise => match Self::sanitised(case.message, &findings) {
                Some(message) => judgement(Verdict::Modify(message), "modify"),
                None => judgement(Verdict::Refuse(refusal(&findings)), "refuse"),
            },
            FilterAction::Block => judgement(Verdict::Refuse(refusal(&findings)), "refuse"),
        }
    }

    fn is_idle(&self) -> bool {
        self.0.settings.load().filters_are_off()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request && !self.is_idle()
    }

    fn judges_changes(&self) -> bool {
        true
    }

    fn would_refuse(&self, case: &Case<'_>) -> Option<Fault> {
        let findings = self.findings(case);
        let action = findings.iter().map(|judged| judged.applied.mode).max()?;
        let is_refused = match action {
            FilterAction::Off | FilterAction::Report => false,
            FilterAction::Sanitise => Self::sanitised(case.message, &findings).is_none(),
            FilterAction::Block => true,
        };
        is_refused.then(|| refusal(&findings))
    }
}
