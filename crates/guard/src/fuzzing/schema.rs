//! Body of the fuzz target of schemas and the instances checked with them.

use crate::schema::limits::{MAX_VIOLATION_CHARS, MAX_VIOLATIONS, MAX_WORK};
use crate::schema::{Schema, SchemaValidity};
use signalbox_wire::printable::is_harmful;

/// Separates the schema from the instance in the input of [`schema`].
const SEPARATOR: u8 = 0;

/// Compiles the bytes before the first zero byte as a schema and checks the bytes after it. Neither panics, violations
/// are short and harmless, and a schema that accepts every object does.
pub fn schema(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == SEPARATOR);
    let (text, instance) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Ok(schema) = Schema::compile(text) else { return };
    if schema.accepts_every_object() {
        assert_eq!(schema.check(br#"{"a":{"b":[1,null]}}"#), SchemaValidity::Valid);
    }
    let verdict = schema.check(instance);
    if let SchemaValidity::Invalid(violations) = &verdict {
        assert!((1..=MAX_VIOLATIONS).contains(&violations.len()), "{violations:?}");
        for line in violations.iter().map(ToString::to_string) {
            assert!(line.chars().count() <= MAX_VIOLATION_CHARS && !line.chars().any(is_harmful), "{line:?}");
        }
    }
    let is_affordable = schema.cost(instance.len()) <= MAX_WORK;
    assert!(verdict == schema.check(instance), "a verdict is not repeatable");
    assert!(
        !is_affordable || verdict != SchemaValidity::TooCostly || instance.len() > 128,
        "a cheap check was not begun"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::random_inputs::{RandomInputs, runs};

    const SEEDS: [&str; 8] = [
        "{\"type\":\"object\",\"properties\":{\"limit\":{\"type\":\"integer\",\"minimum\":1}},\"required\":[\"limit\"]}\0{\"limit\":\"5\"}",
        "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/b\"},{\"type\":\"null\"}]},\"b\":{\"items\":{\"$ref\":\"#/$defs/a\"}}}}\0[[null],[[1]]]",
        "{\"$id\":\"urn:x\",\"$dynamicAnchor\":\"n\",\"properties\":{\"x\":{\"$dynamicRef\":\"#n\"}},\"unevaluatedProperties\":false}\0{\"x\":{\"y\":1}}",
        "{\"patternProperties\":{\"^a[0-9]+$\":{\"type\":\"string\",\"pattern\":\"^\\\\d\"}},\"additionalProperties\":false}\0{\"a1\":\"x\",\"b\":2}",
        "{\"oneOf\":[{\"const\":1},{\"enum\":[1,\"a\"]},{\"multipleOf\":0.5}]}\0\"b\"",
        "{\"if\":{\"required\":[\"a\"]},\"then\":{\"dependentRequired\":{\"a\":[\"b\"]}},\"else\":false}\0{\"a\":1e400}",
        "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"items\":[{\"type\":\"boolean\"}],\"additionalItems\":false}\0[\"true\",1]",
        "{\"uniqueItems\":true,\"contains\":{\"not\":{}},\"propertyNames\":{\"maxLength\":1}}\0[1,1]",
    ];
    const PIECES: [&str; 12] = [
        "\"$ref\":\"#\",",
        "{\"not\":",
        "\"anyOf\":[",
        "]",
        "}",
        "1e400",
        "\\u0000",
        "\"",
        "[",
        "false",
        "\u{202e}",
        "\"$id\":\"a/\",",
    ];

    #[test]
    fn the_target_holds_on_seeds_and_mutations() {
        let mut numbers = RandomInputs::new(1);
        for round in 0..runs(3_000) {
            let mut input = SEEDS[round % SEEDS.len()].as_bytes().to_vec();
            for _ in 0..numbers.below(4) {
                let at = numbers.below(input.len());
                let piece = PIECES[numbers.below(PIECES.len())].as_bytes();
                match numbers.below(4) {
                    0 => input.truncate(at),
                    1 => input[at] = b"{}[]\",:01etf"[numbers.below(12)],
                    2 => drop(input.splice(at..at, piece.iter().copied())),
                    _ => {
                        let other = SEEDS[numbers.below(SEEDS.len())].as_bytes();
                        let from = numbers.below(other.len());
                        input.splice(
                            at..at,
                            other.get(from..from + numbers.below(40)).unwrap_or_default().iter().copied(),
                        );
                    }
                }
                if input.is_empty() {
                    break;
                }
            }
            schema(&input);
        }
    }
}
