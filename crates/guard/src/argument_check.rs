//! Checks the arguments of calls against the schema that the tool declares.

use crate::explanation::explain;
use crate::guard::{AppliedMode, GuardState, ruling};
use crate::prepared_work::{Preparation, PreparedWork};
use crate::schema::{Schema, SchemaValidity};
use crate::settings::SchemaMode;
use crate::tool_schemas::{DeclaredSchema, SchemaLookup};
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::chain::{Case, Effect, HoldResponse, Interceptor, Judgement, Phase, Rulings, Verdict};
use signalbox_engine::fact::FinishedFact;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Envelope, method, printable};
use std::sync::Arc;

/// Interceptor that refuses calls whose arguments do not fit.
pub(crate) struct ArgumentCheck {
    state: Arc<GuardState>,
    prepared: PreparedWork<ArgumentVerdict>,
}

/// Verdict on the arguments of a call.
#[derive(Debug)]
pub(crate) enum ArgumentVerdict {
    Fitting,
    /// Passes, with a text for the record.
    Remarkable(String),
    /// Does not fit, with the text for the caller.
    Wrong(String),
}

impl ArgumentCheck {
    /// Creates the interceptor of a guard.
    pub fn new(state: &Arc<GuardState>) -> Self {
        Self { state: Arc::clone(state), prepared: PreparedWork::default() }
    }

    fn mode(&self, case: &Case<'_>) -> AppliedMode<SchemaMode> {
        self.state.mode(case, |settings| settings.arguments, |tool| tool.arguments)
    }

    /// Returns the schemas of the called tool.
    fn lookup(&self, case: &Case<'_>) -> Option<SchemaLookup> {
        // An answer to a question of the tool's task belongs to the call too, and has no arguments.
        let is_call = case.message.method() == Some(method::TOOLS_CALL) && case.exchange.is_some();
        // A round that comes back with a state may leave out the arguments, which were checked in the first round.
        let is_reply = case.message.param("requestState").is_some() && case.message.param("arguments").is_none();
        let definition = case.definition.filter(|_| is_call && !is_reply)?;
        Some(self.state.schemas.schemas(definition))
    }

    /// Returns the check of a call's arguments.
    fn check(&self, case: &Case<'_>, lookup: &SchemaLookup) -> impl Fn() -> ArgumentVerdict + Send + Sync + use<> {
        let (state, message) = (Arc::clone(&self.state), case.message.clone());
        let (schemas, is_new) = (Arc::clone(&lookup.schemas), lookup.is_new);
        move || ArgumentVerdict::of(&message, &SchemaLookup { schemas: Arc::clone(&schemas), is_new }, &state)
    }
}

impl ArgumentVerdict {
    pub fn of(message: &Envelope, lookup: &SchemaLookup, state: &GuardState) -> Self {
        let schema = match &lookup.schemas.input {
            DeclaredSchema::Any => return ArgumentVerdict::Fitting,
            DeclaredSchema::Invalid(why) if lookup.is_new => {
                return ArgumentVerdict::Remarkable(format!("the tool's input schema cannot be used: {why}"));
            }
            DeclaredSchema::Invalid(_) => return ArgumentVerdict::Fitting,
            DeclaredSchema::Compiled(schema) => schema,
        };
        match schema.check(&arguments(message)) {
            SchemaValidity::Valid => ArgumentVerdict::Fitting,
            SchemaValidity::Coercible(coercions) => {
                let all: Vec<String> = coercions.iter().map(ToString::to_string).collect();
                ArgumentVerdict::Remarkable(format!("forwarded as sent: {}", all.join("; ")))
            }
            SchemaValidity::TooCostly => {
                ArgumentVerdict::Remarkable("not checked: schema and arguments together are too large".to_owned())
            }
            SchemaValidity::Invalid(_) if fits_without_nulls(schema, message) => {
                ArgumentVerdict::Remarkable("forwarded as sent: null for what may be left out".to_owned())
            }
            SchemaValidity::Invalid(violations) => {
                let instance = |message: &Envelope| Some(arguments(message));
                ArgumentVerdict::Wrong(explain(violations, schema, message, state.redactor.as_deref(), instance))
            }
        }
    }
}

/// Returns the arguments of a call; one without any has an empty object.
fn arguments(call: &Envelope) -> Bytes {
    let span = call.param("arguments");
    span.map_or(Bytes::from_static(b"{}"), |span| call.bytes().slice(span.range()))
}

/// Returns true if the arguments fit once members that are `null` are left out, which is what many clients mean by it.
fn fits_without_nulls(schema: &Schema, call: &Envelope) -> bool {
    let Ok(mut value) = serde_json::from_slice::<Value>(&arguments(call)) else { return false };
    let before = value.clone();
    remove_nulls(&mut value);
    value != before && !matches!(schema.check(value.to_string().as_bytes()), SchemaValidity::Invalid(_))
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
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

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        let Some(lookup) = self.lookup(case) else { return Judgement::pass() };
        let applied = self.mode(case);
        if applied.mode == SchemaMode::Off {
            return Judgement::pass();
        }
        let ruling = |verdict, text| Rulings::from(ruling(&applied.rule("arguments"), verdict, text));
        let report = |text, effects| Judgement { verdict: Verdict::Pass, rulings: ruling("report", text), effects };
        let verdict = match self.prepared.of(case, resumed, self.check(case, &lookup)) {
            Preparation::Ready(verdict) => verdict,
            Preparation::Held(verdict) => return verdict.into(),
        };
        match &*verdict {
            ArgumentVerdict::Fitting => Judgement::pass(),
            ArgumentVerdict::Remarkable(text) => {
                let tool = case.exchange.and_then(|exchange| exchange.subject.as_deref()).unwrap_or_default();
                let line = format!("tool `{}`: {text}", printable::beginning(tool, 100));
                let effects = match lookup.is_new && matches!(lookup.schemas.input, DeclaredSchema::Invalid(_)) {
                    true => vec![Effect::Log { level: LogLevel::Warning, text: line }],
                    false => Vec::new(),
                };
                report(text.clone(), effects)
            }
            ArgumentVerdict::Wrong(text) if applied.mode == SchemaMode::Report => {
                report(format!("the arguments do not fit: {text}"), Vec::new())
            }
            ArgumentVerdict::Wrong(text) => Judgement {
                verdict: Verdict::Refuse(refusal(case, text)),
                rulings: ruling("refuse", text.clone()),
                effects: Vec::new(),
            },
        }
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request && !self.state.settings.load().is_off()
    }

    fn is_idle(&self) -> bool {
        self.state.settings.load().is_off()
    }

    fn judges_changes(&self) -> bool {
        true
    }

    fn finished(&self, finished: &FinishedFact) {
        self.prepared.finished(finished.exchange);
    }

    fn would_refuse(&self, case: &Case<'_>) -> Option<Fault> {
        let lookup = self.lookup(case)?;
        match self.check(case, &lookup)() {
            ArgumentVerdict::Wrong(text) if self.mode(case).mode == SchemaMode::Enforce => Some(refusal(case, &text)),
            _ => None,
        }
    }
}
