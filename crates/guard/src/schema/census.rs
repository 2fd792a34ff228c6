//! Counts what a schema consists of, before anything is compiled.

use super::InvalidSchema;
use super::limits::{MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES, MAX_SCOPED_NODES};
use serde_json::Value;

/// Counts of a schema. Data such as `default` counts too, which only makes the counts higher.
#[derive(Default)]
struct Census {
    nodes: usize,
    patterns: usize,
    pattern_bytes: usize,
    /// Number of subschemas below the root with an `$id` of their own.
    embedded: u64,
}

/// Checks the size of a schema.
pub(super) fn check_size(schema: &Value) -> Result<(), InvalidSchema> {
    let mut census = Census::default();
    census.visit(schema, 0)?;
    census.check_scopes()
}

impl Census {
    fn visit(&mut self, value: &Value, depth: usize) -> Result<(), InvalidSchema> {
        self.nodes += 1;
        if self.nodes > MAX_SCHEMA_NODES {
            return Err(InvalidSchema::TooManyNodes);
        }
        if depth > MAX_SCHEMA_DEPTH {
            return Err(InvalidSchema::TooDeep);
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item, depth + 1)),
            Value::Object(members) => members.iter().try_for_each(|(name, member)| {
                match (name.as_str(), member) {
                    ("pattern", Value::String(pattern)) => self.add_pattern(pattern)?,
                    ("patternProperties", Value::Object(patterns)) => {
                        patterns.keys().try_for_each(|pattern| self.add_pattern(pattern))?;
                    }
                    ("$id", Value::String(_)) if depth > 0 => self.embedded += 1,
                    _ => {}
                }
                self.visit(member, depth + 1)
            }),
            _ => Ok(()),
        }
    }

    fn add_pattern(&mut self, pattern: &str) -> Result<(), InvalidSchema> {
        self.patterns += 1;
        self.pattern_bytes += pattern.len();
        match self.patterns > MAX_PATTERNS || self.pattern_bytes > MAX_PATTERN_BYTES {
            true => Err(InvalidSchema::TooManyPatterns),
            false => Ok(()),
        }
    }

    /// Bounds the compilations. The validator compiles a subschema once per dynamic scope, which is a path through the
    /// resources with an `$id`: n resources that refer to each other have n!/0! + n!/1! + … + n!/n! paths.
    fn check_scopes(&self) -> Result<(), InvalidSchema> {
        let mut paths: u64 = 1;
        for count in 1..=self.embedded {
            paths = paths.saturating_mul(count).saturating_add(1);
            if paths.saturating_mul(self.nodes as u64) > MAX_SCOPED_NODES {
                return Err(InvalidSchema::TooManyExpandedReferences);
            }
        }
        Ok(())
    }
}
