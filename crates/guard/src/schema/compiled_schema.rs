//! Schemas that are compiled for checks.

use super::census;
use super::explanation::{Problem, explain};
use super::graph::{Graph, ROOT};
use super::graph_builder::{build_graph, unresolved};
use super::json_text::{count_values, parse_json};
use super::json_types::JsonTypes;
use super::limits::{
    MAX_COERCION_ROUNDS, MAX_COERCIONS, MAX_COMPILED_PATTERN, MAX_INSTANCE_BYTES, MAX_INSTANCE_NODES, MAX_SCHEMA_BYTES,
    MAX_VIOLATIONS, MAX_WORK, PATTERN_CACHE,
};
use super::meter::measure;
use super::{Coercion, InvalidSchema, SchemaDraft, SchemaValidity, SchemaViolation};
use jsonschema::error::{ValidationErrorKind, ValidationErrorParts};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A compiled schema. It is immutable, so an `Arc` shares it among threads.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    graph: Graph,
    draft: SchemaDraft,
    accepts_every_object: bool,
}

impl Schema {
    /// Compiles the JSON text of a schema. Without `$schema` it is read as 2020-12, and if it does not compile so, as
    /// Draft-07.
    ///
    /// # Errors
    /// Fails if the schema is invalid, exceeds a limit, or refers to something outside itself.
    pub fn compile(text: &[u8]) -> Result<Self, InvalidSchema> {
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(InvalidSchema::TooLarge { bytes: text.len() });
        }
        let schema = parse_json(text).map_err(|error| InvalidSchema::NotJson { reason: error.to_string() })?;
        census::check_size(&schema)?;
        match SchemaDraft::declared(&schema)? {
            Some(draft) => Self::compile_as(&schema, draft),
            None => Self::compile_as(&schema, SchemaDraft::Draft2020)
                .or_else(|error| Self::compile_as(&schema, SchemaDraft::Draft7).map_err(|_| error)),
        }
    }

    fn compile_as(schema: &Value, draft: SchemaDraft) -> Result<Self, InvalidSchema> {
        // The graph first: it refuses what the validator would take long to compile.
        let graph = build_graph(schema, draft)?;
        let patterns = PatternOptions::regex().size_limit(4 * MAX_COMPILED_PATTERN).dfa_size_limit(PATTERN_CACHE);
        let validator = jsonschema::options()
            .with_draft(draft.to_library())
            .offline()
            .should_validate_formats(false)
            .without_content_media_type_support("application/json")
            .without_content_encoding_support("base64")
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|error| refusal(error.into_parts()))?;
        let accepts_every_object = graph.accepts_all(ROOT, JsonTypes::OBJECT);
        Ok(Self { validator, graph, draft, accepts_every_object })
    }

    /// Returns the dialect that the schema was compiled as.
    #[must_use]
    pub fn draft(&self) -> SchemaDraft {
        self.draft
    }

    /// Returns `true` if every object is valid, so that a caller who knows that the instance is an object need not
    /// parse it. Annotations such as `title` do not count.
    #[must_use]
    pub fn accepts_every_object(&self) -> bool {
        self.accepts_every_object
    }

    /// Returns a bound of the work to check any instance of this length, in units of [`MAX_WORK`]. For a recursive
    /// schema there is none, and the bound is the maximum: [`Self::check`] then measures each instance.
    #[must_use]
    pub fn cost(&self, instance_bytes: usize) -> u64 {
        self.graph.costs.bound(instance_bytes, most_values(instance_bytes))
    }

    /// Checks JSON text. Of members with the same name, the last one counts.
    #[must_use]
    pub fn check(&self, text: &[u8]) -> SchemaValidity {
        let values = count_values(text);
        if text.len() > MAX_INSTANCE_BYTES || values > MAX_INSTANCE_NODES {
            return SchemaValidity::TooCostly;
        }
        match parse_json(text) {
            Ok(instance) => self.judge(&instance, text.len(), values),
            // Deeper than the parser goes, but perhaps valid.
            Err(error) if error.to_string().starts_with("recursion limit") => SchemaValidity::TooCostly,
            Err(_) => SchemaValidity::Invalid(vec![SchemaViolation::new("", "JSON text", "text that is not JSON")]),
        }
    }

    fn judge(&self, instance: &Value, bytes: usize, values: usize) -> SchemaValidity {
        if !self.is_affordable(instance, bytes, values) {
            return SchemaValidity::TooCostly;
        }
        if self.validator.is_valid(instance) {
            return SchemaValidity::Valid;
        }
        let problems = explain(&self.graph, instance);
        match self.coerce(instance, bytes, &problems) {
            Some(coercions) => SchemaValidity::Coercible(coercions),
            None => SchemaValidity::Invalid(violations(problems)),
        }
    }

    fn is_affordable(&self, instance: &Value, bytes: usize, values: usize) -> bool {
        self.graph.costs.bound(bytes, values) <= MAX_WORK || measure(&self.graph, instance).is_some()
    }

    /// Applies the coercions to a copy. Returns them if they make it valid.
    fn coerce(&self, instance: &Value, bytes: usize, problems: &[Problem]) -> Option<Vec<Coercion>> {
        // There may be more than were looked for.
        if problems.len() >= MAX_COERCIONS {
            return None;
        }
        let mut copy = None;
        let mut coercions: Vec<Coercion> = Vec::new();
        let mut problems = problems.to_vec();
        for _ in 0..MAX_COERCION_ROUNDS {
            if problems.is_empty() || problems.iter().any(|problem| problem.coerced.is_none()) {
                return None;
            }
            let copy = copy.get_or_insert_with(|| instance.clone());
            for problem in problems {
                let SchemaViolation { place, expected, found } = problem.violation;
                if let (Some(slot), Some(coerced)) = (copy.pointer_mut(&problem.pointer), problem.coerced) {
                    *slot = coerced;
                    coercions.push(Coercion { place, expected, given: found });
                }
            }
            // JSON within a text was counted as one value.
            if !self.is_affordable(copy, bytes, most_values(bytes)) {
                return None;
            }
            if self.validator.is_valid(copy) {
                return Some(coercions);
            }
            problems = explain(&self.graph, copy);
        }
        None
    }
}

/// Returns the number of values in JSON text of this length at most: each takes two bytes, with its separator.
fn most_values(bytes: usize) -> usize {
    bytes / 2 + 1
}

/// Turns an error of the validator into a reason. Its own message may quote the whole schema.
fn refusal(error: ValidationErrorParts<'static>) -> InvalidSchema {
    match error.kind {
        ValidationErrorKind::Referencing(error) => unresolved(error),
        kind => InvalidSchema::other(format!("the schema breaks `{}` at {}/", kind.keyword(), error.instance_path)),
    }
}

/// Returns the first violations, each once.
fn violations(problems: Vec<Problem>) -> Vec<SchemaViolation> {
    let mut violations: Vec<SchemaViolation> = Vec::new();
    for problem in problems {
        if violations.len() < MAX_VIOLATIONS && !violations.contains(&problem.violation) {
            violations.push(problem.violation);
        }
    }
    if violations.is_empty() {
        violations.push(SchemaViolation::new("", "a value that the schema accepts", "one that it refuses"));
    }
    violations
}
