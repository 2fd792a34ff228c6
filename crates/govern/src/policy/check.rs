//! Validation of policies against the schema and the known tools.
//!
//! What the base schema makes impossible is an error: an attribute that no caller has, an action on the wrong type.
//! What depends on the catalog, such as an unknown tool or argument, is only a warning, because lists change while
//! policies stay.

use super::entities::BASE_SCHEMA;
use super::rule::{BundleError, PolicyRule};
use cedar_policy::{Policy, PolicyId, PolicySet, Schema, ValidationMode, ValidationWarning, Validator};
use serde_json::Value;
use signalbox_wire::json;

/// Tool with the definition of its backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownTool {
    pub backend: String,
    /// Name of the tool at the backend.
    pub name: String,
    /// Definition as the backend lists it.
    pub definition: Vec<u8>,
}

impl KnownTool {
    fn has_argument(&self, name: &str) -> bool {
        json::path(&self.definition, &["inputSchema", "properties", name]).is_some()
    }

    /// Returns true if the schema does not list the arguments.
    fn is_vague(&self) -> bool {
        json::path(&self.definition, &["inputSchema", "properties"]).is_none()
    }
}

/// Likely mistake in a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyWarning {
    /// Id of the policy.
    pub policy: String,
    /// File that contains it.
    pub file: String,
    /// Description of the likely mistake.
    pub text: String,
}

impl std::fmt::Display for PolicyWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: `{}`: {}", self.file, self.policy, self.text)
    }
}

/// Validates policies against the base schema. Skips conditions on arguments, which the schema does not describe.
///
/// # Errors
/// The first policy that can never apply as written.
pub fn against_base(rules: &[PolicyRule]) -> Result<(), BundleError> {
    let impossible = |rule: &PolicyRule, error: String| BundleError::Impossible {
        file: rule.file.to_string(),
        id: rule.id.to_string(),
        error,
    };
    let Ok((schema, _)) = Schema::from_cedarschema_str(BASE_SCHEMA) else { return Ok(()) };
    let validator = Validator::new(schema);
    for rule in rules {
        let form = rule.policy.to_json().map_err(|error| impossible(rule, error.to_string()))?;
        let plain = Policy::from_json(Some(PolicyId::new(&rule.id)), without_arguments(form))
            .map_err(|error| impossible(rule, error.to_string()))?;
        let mut set = PolicySet::new();
        set.add(plain).map_err(|error| impossible(rule, error.to_string()))?;
        let result = validator.validate(&set, ValidationMode::Strict);
        if let Some(error) = result.validation_errors().next() {
            return Err(impossible(rule, error.to_string()));
        }
        let never = |warning: &&ValidationWarning| matches!(warning, ValidationWarning::ImpossiblePolicy(_));
        if let Some(warning) = result.validation_warnings().find(never) {
            return Err(impossible(rule, warning.to_string()));
        }
    }
    Ok(())
}

/// Removes the conditions that look at arguments from a policy.
fn without_arguments(mut policy: Value) -> Value {
    if let Some(conditions) = policy.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain(|condition| {
            let mentions = super::conditions::Mentions::of(&serde_json::json!({"conditions": [condition]}));
            mentions.arguments.is_empty() && !mentions.all_arguments
        });
    }
    policy
}

/// Checks policies against the known tools. Warns of tools and backends that do not exist and of arguments that no tool
/// takes.
#[must_use]
pub fn against_tools(rules: &[PolicyRule], tools: &[KnownTool]) -> Vec<PolicyWarning> {
    rules.iter().flat_map(|rule| doubts(rule, tools)).collect()
}

fn doubts(rule: &PolicyRule, tools: &[KnownTool]) -> Vec<PolicyWarning> {
    let warning = |text: String| PolicyWarning { policy: rule.id.to_string(), file: rule.file.to_string(), text };
    let named = rule.named();
    let meant: Vec<&KnownTool> = match &named {
        Some((kind, id)) if kind == "Tool" => {
            tools.iter().filter(|tool| super::entities::entry_id(&tool.backend, &tool.name) == *id).collect()
        }
        Some((kind, id)) if kind == "Backend" => tools.iter().filter(|tool| tool.backend == *id).collect(),
        Some(_) => return Vec::new(),
        None => tools.iter().collect(),
    };
    if let (Some((kind, id)), true) = (&named, meant.is_empty()) {
        let what = if kind == "Tool" { "tool" } else { "backend with tools" };
        return vec![warning(format!("no {what} `{id}` is known"))];
    }
    let takes = |name: &str| meant.iter().any(|tool| tool.is_vague() || tool.has_argument(name));
    let unknown = rule.mentions.arguments.iter().filter(|name| !meant.is_empty() && !takes(name));
    unknown.map(|name| warning(format!("no tool that it is for has an argument `{name}`"))).collect()
}
