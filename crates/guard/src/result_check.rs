//! Checks structured results against the schema that the tool declares.

use crate::content::may_ask;
use crate::explanation::explain;
use crate::guard::{GuardState, ruling};
use crate::prepared_work::{Preparation, PreparedWork};
use crate::schema::SchemaValidity;
use crate::settings::SchemaMode;
use crate::tool_schemas::{DeclaredSchema, ToolSchemas};
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Verdict};
use signalbox_engine::fact::FinishedFact;
use signalbox_wire::{Envelope, Kind, builder, json, method};
use std::sync::Arc;

/// Interceptor that judges the structured content of results, as the backend sent it.
pub(crate) struct ResultCheck {
    state: Arc<GuardState>,
    prepared: PreparedWork<Option<String>>,
}

/// Returns what does not fit in structured content, if anything.
fn violations(message: &Envelope, schemas: &ToolSchemas, state: &GuardState) -> Option<String> {
    let DeclaredSchema::Compiled(schema) = &schemas.output else { return None };
    let content = message.result_member("structuredContent")?;
    match schema.check(content.of(message.bytes())) {
        SchemaValidity::Invalid(violations) => {
            let instance = |message: &Envelope| {
                let span = message.result_member("structuredContent")?;
                Some(message.bytes().slice(span.range()))
            };
            Some(explain(violations, schema, message, state.redactor.as_deref(), instance))
        }
        SchemaValidity::Coercible(coercions) => {
            Some(coercions.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
        SchemaValidity::Valid | SchemaValidity::TooCostly => None,
    }
}

impl ResultCheck {
    /// Creates the interceptor of a guard.
    pub fn new(state: &Arc<GuardState>) -> Self {
        Self { state: Arc::clone(state), prepared: PreparedWork::default() }
    }

    /// Returns the schemas that a result is held against, if there are any.
    fn schemas(&self, case: &Case<'_>) -> Option<Arc<ToolSchemas>> {
        let exchange = case.exchange.filter(|exchange| exchange.method == method::TOOLS_CALL || case.by_task)?;
        if case.message.kind() != Kind::Response || exchange.subject.is_none() {
            return None;
        }
        let schemas = self.state.schemas.schemas(case.definition?).schemas;
        if !matches!(schemas.output, DeclaredSchema::Compiled(_)) {
            return None;
        }
        let bytes = case.message.bytes();
        // Errors need not have the structure of results.
        if case.message.result_member("isError").is_some_and(|span| span.of(bytes) == b"true") {
            return None;
        }
        let is_whole = |kind: &[u8]| json::key_eq(kind, "complete");
        if may_ask(case) && case.message.result_member("resultType").is_some_and(|span| !is_whole(span.of(bytes))) {
            return None;
        }
        // A bridge leaves the member out for clients whose revision does not have it.
        case.message.result_member("structuredContent").map(|_| schemas)
    }
}

/// Makes the result of a tool that the caller gets in place of another. It names the same server.
pub(crate) fn replacement(message: &Envelope, text: &str) -> Option<Envelope> {
    const SERVER: &str = "io.modelcontextprotocol/serverInfo";
    let mut result =
        format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":true"#, json::quote(text)).into_bytes();
    if message.result_member("resultType").is_some() {
        result.extend_from_slice(br#","resultType":"complete""#);
    }
    let whole = message.result().unwrap_or_default();
    if let Some(info) = json::path(whole, &["_meta", SERVER]) {
        result.extend_from_slice(format!(r#","_meta":{{"{SERVER}":"#).as_bytes());
        result.extend_from_slice(info.of(whole));
        result.push(b'}');
    }
    result.push(b'}');
    Envelope::parse(builder::response(&message.id()?, &result)).ok()
}

impl Interceptor for ResultCheck {
    fn name(&self) -> &'static str {
        "guard results"
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        let applied = self.state.mode(case, |settings| settings.results, |tool| tool.results);
        if applied.mode == SchemaMode::Off {
            return Judgement::pass();
        }
        let Some(schemas) = self.schemas(case) else { return Judgement::pass() };
        let (state, message) = (Arc::clone(&self.state), case.message.clone());
        let found = match self.prepared.of(case, resumed, move || violations(&message, &schemas, &state)) {
            Preparation::Ready(found) => found,
            Preparation::Held(verdict) => return verdict.into(),
        };
        let Some(text) = &*found else { return Judgement::pass() };
        let told = format!("Signalbox withheld the result: it does not fit the schema that the tool declares ({text})");
        let changed = if applied.mode == SchemaMode::Enforce { replacement(case.message, &told) } else { None };
        let (verdict, word) = match changed {
            Some(message) => (Verdict::Modify(message), "modify"),
            None => (Verdict::Pass, "report"),
        };
        let detail = format!("the result does not fit its schema: {text}");
        Judgement { verdict, rulings: ruling(&applied.rule("results"), word, detail).into(), effects: Vec::new() }
    }

    fn is_idle(&self) -> bool {
        self.state.settings.load().is_off()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Response && !self.is_idle()
    }

    fn finished(&self, finished: &FinishedFact) {
        self.prepared.finished(finished.exchange);
    }
}
