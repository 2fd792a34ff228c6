//! Finds canaries in messages, and refuses those that would carry one out.

use crate::canary::{self, CanaryKey};
use crate::filter_settings::FilterAction;
use crate::guard::{GuardState, ruling};
use crate::message_text;
use crate::prepared_work::{Preparation, PreparedWork};
use signalbox_engine::chain::{Case, Effect, HoldResponse, Interceptor, Judgement, Phase, Rulings, Verdict};
use signalbox_engine::fact::FinishedFact;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Envelope, Span, json};
use std::sync::Arc;

/// Interceptor that looks for canaries in what passes.
pub(crate) struct CanaryCheck {
    state: Arc<GuardState>,
    prepared: PreparedWork<Option<String>>,
}

/// Returns the ids of the canaries in a message, with their encodings.
fn canaries(message: &Envelope, span: Span, key: &CanaryKey) -> Option<String> {
    let bytes = message.bytes();
    let mut found: Vec<String> = Vec::new();
    message_text::visit(bytes, span, &mut |place| {
        let Some(text) = json::string(place.span.of(bytes)) else { return };
        for one in canary::find(&text, key) {
            let form = if one.form.is_verbatim() { String::new() } else { format!(" as {}", one.form) };
            let shown = format!("{}{form}", one.id);
            if !found.contains(&shown) {
                found.push(shown);
            }
        }
    });
    (!found.is_empty()).then(|| found.join(", "))
}

impl CanaryCheck {
    /// Creates the interceptor of a guard.
    pub fn new(state: &Arc<GuardState>) -> Self {
        Self { state: Arc::clone(state), prepared: PreparedWork::default() }
    }
}

impl Interceptor for CanaryCheck {
    fn name(&self) -> &'static str {
        "guard canaries"
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        let Some(key) = self.state.canary_key.load_full() else { return Judgement::pass() };
        let message = case.message.clone();
        let span = message.params_span().or(message.result_span()).or(message.error_span());
        let Some(span) = span else { return Judgement::pass() };
        let found = match self.prepared.of(case, resumed, move || canaries(&message, span, &key)) {
            Preparation::Ready(found) => found,
            Preparation::Held(verdict) => return verdict.into(),
        };
        let Some(ids) = &*found else { return Judgement::pass() };
        let leaves = matches!(case.phase, Phase::Request | Phase::ClientAnswers | Phase::FromClient);
        let applied = self.state.mode(case, |settings| settings.canaries, |_| None);
        let way = if leaves { "would leave" } else { "was read" };
        let line = format!("the canary {ids} {way}");
        let (verdict, word) = match applied.mode {
            FilterAction::Off => return Judgement::pass(),
            FilterAction::Block if leaves => {
                let told = "an argument holds a value that must never leave";
                (Verdict::Refuse(Fault::new(FaultKind::Denied, told)), "refuse")
            }
            _ => (Verdict::Pass, "report"),
        };
        let alarm = Effect::Log { level: LogLevel::Warning, text: line.clone() };
        let rulings = Rulings::from(ruling(&applied.rule("canaries"), word, line));
        Judgement { verdict, rulings, effects: vec![alarm] }
    }

    fn is_idle(&self) -> bool {
        self.state.canary_key.load().is_none() || self.state.settings.load().canaries == FilterAction::Off
    }

    fn looks_at(&self, phase: Phase) -> bool {
        let is_said = matches!(phase, Phase::Request | Phase::ClientAnswers | Phase::FromClient | Phase::Response);
        is_said && !self.is_idle()
    }

    fn judges_changes(&self) -> bool {
        true
    }

    fn finished(&self, finished: &FinishedFact) {
        self.prepared.finished(finished.exchange);
    }
}
