//! Hostile schemas and instances end in an error or a verdict, within the bounds of work.
#[path = "support/hostile_cases.rs"]
mod hostile_cases;

use hostile_cases::hostile_cases;
use signalbox_guard::schema::limits::{MAX_VIOLATION_CHARS, MAX_VIOLATIONS};
use signalbox_guard::schema::{InvalidSchema, Schema, SchemaValidity};

/// Cases that do not compile, with the variant of the reason.
const REFUSED: [(&str, &str); 27] = [
    ("doubled references", "TooManyExpandedReferences"),
    ("doubled references in anyOf", "TooManyExpandedReferences"),
    ("doubled dependentSchemas", "TooManyExpandedReferences"),
    ("doubled if and then", "TooManyExpandedReferences"),
    ("reference to itself", "CircularReference"),
    ("anyOf of itself", "CircularReference"),
    ("mutual references", "CircularReference"),
    ("chain of 3000 references", "TooDeep"),
    ("remote reference", "RemoteReference"),
    ("file reference", "RemoteReference"),
    ("3 resources that refer to each other", "TooManyExpandedReferences"),
    ("6 resources that refer to each other", "TooManyExpandedReferences"),
    ("20 resources that refer to each other", "TooManyExpandedReferences"),
    ("30 changes of the base", "TooManyExpandedReferences"),
    ("unevaluatedProperties nested 30 times", "TooManyExpandedReferences"),
    ("unevaluatedProperties in anyOf", "TooManyExpandedReferences"),
    ("unevaluatedItems nested 25 times", "TooManyExpandedReferences"),
    ("10000 patterns", "TooLarge"),
    ("a pattern with a million states", "PatternTooLarge"),
    ("a pattern of Unicode classes", "PatternTooLarge"),
    ("look-ahead", "UnsupportedPattern"),
    ("a pattern of 300000 bytes", "TooManyPatterns"),
    ("schema with 1e400", "Other"),
    ("references at the bottom of nesting", "TooDeep"),
    ("a schema of 10000 levels", "NotJson"),
    ("not JSON", "NotJson"),
    ("30000 values in a schema", "TooManyNodes"),
];
/// Cases with an instance that is not judged.
const TOO_COSTLY: [&str; 22] = [
    "doubled references in properties",
    "recursion with two branches",
    "dynamic references",
    "chains at every level",
    "5 resources that refer to each other",
    "4000 branches for 10000 items",
    "200 patterns for 20000 names",
    "200 patterns for 1000 names",
    "a pattern without a small DFA, 1 MB",
    "200 patterns without a small DFA",
    "names with a pattern",
    "enum of 15000 for 10000 items",
    "enum of equal beginnings",
    "const of 5000 members for 30 items",
    "tiny multipleOf",
    "multipleOf of many digits",
    "1000 lengths of 1 MB",
    "as much allOf and references as compile",
    "chains of 6 at 120 levels",
    "an instance of 100000 levels",
    "an instance of 4 million values",
    "branches in branches",
];

#[test]
fn hostile_schemas_are_refused_or_judged() {
    let (mut refused, mut too_costly) = (Vec::new(), Vec::new());
    for case in hostile_cases() {
        // Named before it runs: a stack that overflows leaves no other trace.
        eprintln!("{}", case.name);
        let schema = match Schema::compile(case.schema.as_bytes()) {
            Ok(schema) => schema,
            Err(error) => {
                assert!(error.to_string().chars().count() < 400, "{}: {error}", case.name);
                refused.push((case.name, variant(&error)));
                continue;
            }
        };
        for instance in &case.instances {
            match schema.check(instance.as_bytes()) {
                SchemaValidity::Valid | SchemaValidity::Coercible(_) => {}
                SchemaValidity::Invalid(violations) => {
                    assert!((1..=MAX_VIOLATIONS).contains(&violations.len()), "{}", case.name);
                    let longest = violations.iter().map(|violation| violation.to_string().chars().count()).max();
                    assert!(longest <= Some(MAX_VIOLATION_CHARS), "{}", case.name);
                }
                SchemaValidity::TooCostly => too_costly.push(case.name),
            }
        }
    }
    assert_eq!(refused, REFUSED);
    assert_eq!(too_costly, TOO_COSTLY);
}

fn variant(error: &InvalidSchema) -> &'static str {
    match error {
        InvalidSchema::NotJson { .. } => "NotJson",
        InvalidSchema::TooLarge { .. } => "TooLarge",
        InvalidSchema::TooManyNodes => "TooManyNodes",
        InvalidSchema::TooDeep => "TooDeep",
        InvalidSchema::TooManyPatterns => "TooManyPatterns",
        InvalidSchema::PatternTooLarge { .. } => "PatternTooLarge",
        InvalidSchema::UnsupportedPattern { .. } => "UnsupportedPattern",
        InvalidSchema::RemoteReference { .. } => "RemoteReference",
        InvalidSchema::TooManyExpandedReferences => "TooManyExpandedReferences",
        InvalidSchema::CircularReference => "CircularReference",
        InvalidSchema::UnknownDialect { .. } => "UnknownDialect",
        InvalidSchema::Other { .. } => "Other",
    }
}
