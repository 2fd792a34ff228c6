//! Checks the arguments of calls against the schema that the tool declares.

use crate::explanation::explain;
use crate::guard::{AppliedMode, GuardState, ruling};
use crate::schema::SchemaValidity;
use crate::settings::SchemaMode;
use crate::tool_schemas::{DeclaredSchema, SchemaLookup};
use bytes::Bytes;
use signalbox_engine::chain::{Case, Effect, HoldResponse, Interceptor, Judgement, Phase, Rulings, Verdict};
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Envelope, method, printable};
use std::sync::Arc;

/// Interceptor that refuses calls whose arguments do not fit.
pub(crate) struct ArgumentCheck(pub Arc<GuardState>);

/// Verdict on the arguments of a call.
enum ArgumentVerdict {
    Fitting,
    /// Passes, with a text for the record.
    Remarkable(String),
    /// Does not fit, with the text for the caller.
    Wrong(String),
}

impl ArgumentCheck {
    fn mode(&self, case: &Case<'_>) -> AppliedMode<SchemaMode> {
        self.0.mode(case, |settings| settings.arguments, |tool| tool.arguments)
    }

    /// Returns the schemas of the called tool.
    fn lookup(&self, case: &Case<'_>) -> Option<SchemaLookup> {
        let exchange = case.exchange.filter(|exchange| exchange.method == method::TOOLS_CALL)?;
        // The first round of a call was checked. Later ones repeat its arguments, and what is new in them is no argument.
        let definition =
            case.definition.filter(|_| exchange.round == 1 || case.message.param("arguments").is_some())?;
        Some(self.0.schemas.schemas(definition))
    }

    fn check(&self, case: &Case<'_>, lookup: &SchemaLookup) -> ArgumentVerdict {
        let schema = match &lookup.schemas.input {
            DeclaredSchema::Any => return ArgumentVerdict::Fitting,
            DeclaredSchema::Invalid(why) if lookup.is_new => {
                return ArgumentVerdict::Remarkable(format!("the tool's input schema cannot be used: {why}"));
            }
            DeclaredSchema::Invalid(_) => return ArgumentVerdict::Fitting,
            DeclaredSchema::Compiled(schema) => schema,
        };
        match schema.check(&arguments(case.message)) {
            SchemaValidity::Valid => ArgumentVerdict::Fitting,
            SchemaValidity::Coercible(coercions) => {
                let all: Vec<String> = coercions.iter().map(ToString::to_string).collect();
                ArgumentVerdict::Remarkable(format!("forwarded as sent: {}", all.join("; ")))
            }
            SchemaValidity::TooCostly => {
                ArgumentVerdict::Remarkable("not checked: schema and arguments together are too large".to_owned())
            }
            SchemaValidity::Invalid(violations) => {
                let instance = |message: &Envelope| Some(arguments(message));
                ArgumentVerdict::Wrong(explain(violations, schema, case.message, self.0.redactor.as_deref(), instance))
            }
        }
    }
}

/// Returns the arguments of a call; one without any has an empty object.
fn arguments(call: &Envelope) -> Bytes {
    let span = call.param("arguments");
    span.map_or(Bytes::from_static(b"{}"), |span| call.bytes().slice(span.range()))
}

fn refusal(case: &Case<'_>, text: &str) -> Fault {
    let tool = case.exchange.and_then(|exchange| exchange.subject.as_deref()).unwrap_or_default();
    let tool = printable::beginning(tool, 100);
    Fault::new(FaultKind::InvalidArguments, format!("the arguments do not fit the schema of `{tool}`: {text}"))
}

impl Interceptor for ArgumentCheck {
    fn name(&self) -> &'static str {
        "guard arguments"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let Some(lookup) = self.lookup(case) else { return Judgement::pass() };
        let applied = self.mode(case);
        if applied.mode == SchemaMode::Off {
            return Judgement::pass();
        }
        let ruling = |verdict, text| Rulings::from(ruling(&applied.rule("arguments"), verdict, text));
        let report = |text, effects| Judgement { verdict: Verdict::Pass, rulings: ruling("report", text), effects };
        match self.check(case, &lookup) {
            ArgumentVerdict::Fitting => Judgement::pass(),
            ArgumentVerdict::Remarkable(text) => {
                let tool = case.exchange.and_then(|exchange| exchange.subject.as_deref()).unwrap_or_default();
                let line = format!("tool `{}`: {text}", printable::beginning(tool, 100));
                let effects = match lookup.is_new && matches!(lookup.schemas.input, DeclaredSchema::Invalid(_)) {
                    true => vec![Effect::Log { level: LogLevel::Warning, text: line }],
                    false => Vec::new(),
                };
                report(text, effects)
            }
            ArgumentVerdict::Wrong(text) if applied.mode == SchemaMode::Report => {
                report(format!("the arguments do not fit: {text}"), Vec::new())
            }
            ArgumentVerdict::Wrong(text) => Judgement {
                verdict: Verdict::Refuse(refusal(case, &text)),
                rulings: ruling("refuse", text),
                effects: Vec::new(),
            },
        }
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request && !self.0.settings.load().is_off()
    }

    fn is_idle(&self) -> bool {
        self.0.settings.load().is_off()
    }

    fn judges_changes(&self) -> bool {
        true
    }

    fn would_refuse(&self, case: &Case<'_>) -> Option<Fault> {
        let lookup = self.lookup(case)?;
        match self.check(case, &lookup) {
            ArgumentVerdict::Wrong(text) if self.mode(case).mode == SchemaMode::Enforce => Some(refusal(case, &text)),
            _ => None,
        }
    }
}
