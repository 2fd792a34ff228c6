//! Verdicts and explanations, as a table of schemas, instances and lines that a model reads.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail wherever it wants")]

use serde_json::{Value, json};
use signalbox_guard::schema::{InvalidSchema, Schema, SchemaDraft, SchemaValidity};

fn compile(schema: &Value) -> Schema {
    Schema::compile(schema.to_string().as_bytes()).unwrap()
}

fn violations(schema: &Value, instance: &Value) -> Vec<String> {
    match compile(schema).check(instance.to_string().as_bytes()) {
        SchemaValidity::Invalid(violations) => violations.iter().map(ToString::to_string).collect(),
        verdict => panic!("{schema} {instance}: {verdict:?}"),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, one row after the other")]
fn violations_say_what_is_expected_and_what_was_found() {
    let property = |name: &str, schema: Value| json!({"type": "object", "properties": {name: schema}});
    let cases = [
        (
            property("limit", json!({"type": "integer", "minimum": 1, "maximum": 100})),
            json!({"limit": "abc"}),
            r#"/limit: expected an integer from 1 to 100, found the string "abc""#,
        ),
        (
            property("limit", json!({"type": "integer", "minimum": 1, "maximum": 100})),
            json!({"limit": 101}),
            "/limit: expected an integer from 1 to 100, found 101",
        ),
        (
            json!({"properties": {"path": {"type": "string"}}, "required": ["path"]}),
            json!({}),
            "/: missing the property `path` (a string)",
        ),
        (
            property("mode", json!({"enum": ["fast", "slow"]})),
            json!({"mode": "fst"}),
            r#"/mode: expected one of "fast", "slow", found "fst" (did you mean "fast"?)"#,
        ),
        (
            json!({"properties": {"path": {"type": "string"}}, "additionalProperties": false}),
            json!({"paht": "x"}),
            r#"/paht: expected no property of this name (did you mean `path`?), found the string "x""#,
        ),
        (
            json!({"allOf": [{"properties": {"path": {}}}], "unevaluatedProperties": false}),
            json!({"paht": 1}),
            "/paht: expected no property of this name (did you mean `path`?), found 1",
        ),
        (
            property("a", json!({"type": ["string", "null"], "minLength": 3, "pattern": "^a"})),
            json!({"a": "ab"}),
            "/a: expected a string or null of at least 3 characters matching `^a`, found a string of 2 characters",
        ),
        (
            json!({"items": {"type": "number", "exclusiveMinimum": 0}, "maxItems": 2}),
            json!([1, 0]),
            "/1: expected a number above 0, found 0",
        ),
        (
            json!({"maxItems": 2, "type": "array"}),
            json!([1, 2, 3]),
            "/: expected an array of at most 2 items, found an array of 3 items",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            json!([]),
            "/: expected a string or an integer, found an array of 0 items",
        ),
        (
            json!({"oneOf": [
                {"properties": {"kind": {"const": "file"}, "path": {"type": "string"}}, "required": ["kind", "path"]},
                {"properties": {"kind": {"const": "url"}, "url": {"type": "string"}}, "required": ["kind", "url"]},
            ]}),
            json!({"kind": "url"}),
            "/: missing the property `url` (a string)",
        ),
        (
            json!({"oneOf": [{"type": "integer"}, {"minimum": 0}]}),
            json!(5),
            "/: expected a value that fits exactly one of 2 alternatives, found one that fits 2",
        ),
        (json!({"not": {"type": "string"}}), json!("x"), r#"/: expected anything but a string, found the string "x""#),
        (
            json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
            json!({"a": 1}),
            "/: missing the property `b`",
        ),
        (
            json!({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a/b": {"type": "boolean"}}}}}),
            json!({"a/b": 1}),
            "/a~1b: expected a boolean, found 1",
        ),
        (
            json!({"contains": {"type": "string"}}),
            json!([1]),
            "/: expected an array with a string, found an array of 1 item",
        ),
        (json!({"uniqueItems": true}), json!([1, 1]), "/1: expected no item twice, found 1"),
        (
            property("a", json!({"type": "string", "maxLength": 1})),
            json!({"a": 5}),
            "/a: expected a string of at most 1 character, found 5",
        ),
        (
            property("a", json!({"type": "integer", "multipleOf": 5})),
            json!({"a": 7}),
            "/a: expected an integer that is a multiple of 5, found 7",
        ),
    ];
    for (schema, instance, line) in cases {
        assert_eq!(violations(&schema, &instance), [line], "{schema}");
    }
}

#[test]
fn violations_are_few_short_and_harmless() {
    let schema = json!({"items": {"type": "integer"}});
    let hostile = json!((0..20).map(|n| format!("{n}\u{1b}[31m\u{202e}\n{}", "é".repeat(500))).collect::<Vec<_>>());
    let lines = violations(&schema, &hostile);
    assert_eq!(lines.len(), 5);
    for line in &lines {
        assert!(line.chars().count() <= 200, "{line}");
        assert!(!line.chars().any(signalbox_wire::printable::is_harmful), "{line:?}");
    }
    let key = "k\n".repeat(400);
    let long = json!({"properties": {&key: {"enum": ["a\u{200b}".repeat(300), "b".repeat(300)]}}});
    for line in violations(&long, &json!({&key: "z\r".repeat(300)})) {
        assert!(line.chars().count() <= 200 && !line.chars().any(signalbox_wire::printable::is_harmful), "{line:?}");
    }
}

#[test]
fn secrets_are_not_quoted() {
    let secret = ["hun", "ter2"].concat();
    let integer = json!({"type": "integer"});
    let schemas = [
        json!({"properties": {"apiKey": integer}}),
        json!({"properties": {"x": {"type": "integer", "writeOnly": true}}}),
        json!({"properties": {"x": {"type": "integer", "format": "password"}}}),
        json!({"properties": {"x": {"allOf": [{"writeOnly": true}], "type": "integer"}}}),
        json!({"properties": {"x": {"enum": ["other"], "writeOnly": true}}}),
        json!({"properties": {"authorization": {"properties": {"inner": integer}}}}),
        json!({"additionalProperties": false}),
    ];
    for schema in schemas {
        let name = schema.pointer("/properties").and_then(Value::as_object).and_then(|rules| rules.keys().next());
        let name = name.map_or("token", String::as_str);
        let value = if name == "authorization" { json!({"inner": secret}) } else { json!(secret) };
        let lines = violations(&schema, &json!({name: value}));
        assert!(!lines.is_empty() && lines.iter().all(|line| !line.contains(&secret)), "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("not shown")), "{lines:?}");
    }
    let digits = ["12", "34"].concat();
    let SchemaValidity::Coercible(coercions) =
        compile(&json!({"properties": {"pwd": integer}})).check(json!({"pwd": digits}).to_string().as_bytes())
    else {
        panic!("the digits are an integer")
    };
    assert!(coercions.iter().all(|coercion| !coercion.given.contains(&digits)), "{coercions:?}");
}

#[test]
fn lossless_spellings_are_coercible() {
    let limit = json!({"properties": {"limit": {"type": "integer", "minimum": 1}, "on": {"type": "boolean"}}});
    let cases = [
        (limit.clone(), json!({"limit": "5"}), 1),
        (limit.clone(), json!({"limit": "5", "on": "true"}), 2),
        (limit.clone(), json!({"limit": "0"}), 0),
        (limit.clone(), json!({"limit": "5", "on": "yes"}), 0),
        (limit.clone(), json!({"limit": "5 "}), 0),
        (json!({"properties": {"x": {"type": "number"}}}), json!({"x": "1.5"}), 1),
        (json!({"properties": {"x": {"type": "string"}}}), json!({"x": 5}), 0),
        (json!({"properties": {"x": limit.clone()}, "required": ["x"]}), json!({"x": "{\"limit\":\"5\"}"}), 0),
        (
            json!({"properties": {"x": {"type": "object", "properties": {"y": {"type": "integer"}}}}}),
            json!({"x": "{\"y\":\"5\"}"}),
            2,
        ),
        (json!({"properties": {"x": {"type": "array", "items": {"type": "integer"}}}}), json!({"x": "[1,2]"}), 1),
        (json!({"properties": {"x": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}), json!({"x": "5"}), 1),
        (json!({"properties": {"x": {"enum": [1, 2]}}}), json!({"x": "2"}), 1),
        (json!({"type": "object"}), json!("{}"), 1),
    ];
    for (schema, instance, coercions) in cases {
        match compile(&schema).check(instance.to_string().as_bytes()) {
            SchemaValidity::Coercible(found) => assert_eq!(found.len(), coercions, "{schema} {instance}: {found:?}"),
            SchemaValidity::Valid | SchemaValidity::Invalid(_) => assert_eq!(coercions, 0, "{schema} {instance}"),
            SchemaValidity::TooCostly => panic!("{schema}"),
        }
    }
    assert_eq!(compile(&json!({"type": "integer"})).check(b"5.0"), SchemaValidity::Valid);
}

#[test]
fn numbers_beyond_64_bits_are_still_numbers() {
    let integer = compile(&json!({"type": "integer"}));
    for text in ["12345678901234567890", "-12345678901234567890123", "1e400", "1e19", "-0", "9007199254740993"] {
        assert_eq!(integer.check(text.as_bytes()), SchemaValidity::Valid, "{text}");
    }
    assert!(matches!(integer.check(b"1e-400"), SchemaValidity::Valid), "it rounds to zero");
    assert!(matches!(integer.check(b"1.5"), SchemaValidity::Invalid(_)));
    assert!(matches!(compile(&json!({"maximum": 10})).check(b"1e400"), SchemaValidity::Invalid(_)));
    assert!(Schema::compile(br#"{"multipleOf":1e-400}"#).is_err());
    assert!(matches!(
        compile(&json!({"multipleOf": 1e-300})).check(b"1e300"),
        SchemaValidity::Valid | SchemaValidity::Invalid(_)
    ));
}

#[test]
fn schemas_that_accept_every_object_are_known() {
    let cases = [
        (json!({}), true),
        (json!(true), true),
        (json!({"type": "object"}), true),
        (
            json!({"type": ["object", "null"], "title": "t", "description": "d", "$schema": "https://json-schema.org/draft/2020-12/schema"}),
            true,
        ),
        (json!({"type": "object", "properties": {}}), true),
        (json!({"type": "object", "properties": {"a": {"description": "any"}}, "additionalProperties": true}), true),
        (json!({"type": "object", "required": []}), true),
        (json!(false), false),
        (json!({"type": "string"}), false),
        (json!({"required": ["a"]}), false),
        (json!({"properties": {"a": {"type": "string"}}}), false),
        (json!({"additionalProperties": false}), false),
        (json!({"dependentRequired": {"a": ["b"]}}), false),
        (json!({"dependencies": {"a": ["b"]}}), false),
        (json!({"maxProperties": 5}), false),
        (json!({"propertyNames": {"maxLength": 3}}), false),
        (json!({"not": {}}), false),
        (json!({"enum": [{}]}), false),
    ];
    for (schema, accepts) in cases {
        assert_eq!(compile(&schema).accepts_every_object(), accepts, "{schema}");
    }
}

#[test]
fn the_dialect_is_the_declared_one_or_the_first_that_compiles() {
    let draft = |schema: Value| Schema::compile(schema.to_string().as_bytes()).map(|schema| schema.draft());
    assert_eq!(draft(json!({})), Ok(SchemaDraft::Draft2020));
    assert_eq!(draft(json!({"items": [{"type": "string"}]})), Ok(SchemaDraft::Draft7));
    assert_eq!(draft(json!({"$schema": "http://json-schema.org/draft-07/schema#"})), Ok(SchemaDraft::Draft7));
    assert_eq!(draft(json!({"$schema": "https://json-schema.org/draft/2020-12/schema"})), Ok(SchemaDraft::Draft2020));
    let unknown = |uri: &str| Err(InvalidSchema::UnknownDialect { uri: uri.to_owned() });
    assert_eq!(draft(json!({"$schema": "urn:x"})), unknown("urn:x"));
    assert_eq!(
        draft(json!({"$schema": "http://json-schema.org/draft-04/schema#"})),
        unknown("http://json-schema.org/draft-04/schema#")
    );
}

#[test]
fn format_is_an_annotation() {
    for draft in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"] {
        for format in ["date-time", "email", "uri", "ipv4", "uuid", "regex", "no-such-format"] {
            let schema = compile(&json!({"$schema": draft, "format": format, "contentMediaType": "application/json"}));
            assert_eq!(schema.check(b"\"(\""), SchemaValidity::Valid, "{format}");
        }
    }
}
