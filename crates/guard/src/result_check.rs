//! Checks structured results against the schema that the tool declares.

use crate::content::may_ask;
use crate::explanation::explain;
use crate::guard::{GuardState, ruling};
use crate::schema::SchemaValidity;
use crate::settings::SchemaMode;
use crate::tool_schemas::DeclaredSchema;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Verdict};
use signalbox_wire::{Envelope, Kind, builder, json, method};
use std::sync::Arc;

/// Interceptor that judges the structured content of results, as the backend sent it.
pub(crate) struct ResultCheck(pub Arc<GuardState>);

impl ResultCheck {
    /// Returns what does not fit in the structured content, if anything.
    fn violations(&self, case: &Case<'_>) -> Option<String> {
        let exchange = case.exchange.filter(|exchange| exchange.method == method::TOOLS_CALL || case.by_task)?;
        if case.message.kind() != Kind::Response || exchange.subject.is_none() {
            return None;
        }
        let lookup = self.0.schemas.schemas(case.definition?);
        let DeclaredSchema::Compiled(schema) = &lookup.schemas.output else { return None };
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
        let content = case.message.result_member("structuredContent")?;
        match schema.check(content.of(bytes)) {
            SchemaValidity::Invalid(violations) => {
                let instance = |message: &Envelope| {
                    let span = message.result_member("structuredContent")?;
                    Some(message.bytes().slice(span.range()))
                };
                Some(explain(violations, schema, case.message, self.0.redactor.as_deref(), instance))
            }
            SchemaValidity::Coercible(coercions) => {
                Some(coercions.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
            }
            SchemaValidity::Valid | SchemaValidity::TooCostly => None,
        }
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

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let applied = self.0.mode(case, |settings| settings.results, |tool| tool.results);
        if applied.mode == SchemaMode::Off {
            return Judgement::pass();
        }
        let Some(text) = self.violations(case) else { return Judgement::pass() };
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
        self.0.settings.load().is_off()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Response && !self.is_idle()
    }
}
