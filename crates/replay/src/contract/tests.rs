use super::*;
use serde_json::json;

/// The changes of one tool, as `tier pointer: reason`.
fn tool(old: Value, new: Value) -> Vec<String> {
    let named = |mut tool: Value| {
        tool["name"] = json!("t");
        tool
    };
    told(&tools(&[named(old)], &[named(new)]))
}

fn told(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|change| format!("{} {}: {}", change.tier.word(), change.pointer, change.reason)).collect()
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn input(old: Value, new: Value) -> Vec<String> {
    tool(json!({"inputSchema": old}), json!({"inputSchema": new}))
}

/// The tiers of one argument and one result that change from one schema to another.
fn tiers(old: Value, new: Value) -> (Option<Tier>, Option<Tier>) {
    let of = |member: &str, schema: &Value| json!({"name": "t", member: object(json!({"a": schema}), &[])});
    let worst = |member: &str| {
        let changes = tools(&[of(member, &old)], &[of(member, &new)]);
        changes.iter().map(|change| change.tier).max()
    };
    (worst("inputSchema"), worst("outputSchema"))
}

const C: Option<Tier> = Some(Tier::Compatible);
const B: Option<Tier> = Some(Tier::Breaking);

#[test]
fn a_narrower_argument_is_breaking_and_a_wider_result_too() {
    let table = [
        // What it was, what it is, and the tiers as an argument and as a result.
        (json!({"type": "number"}), json!({"type": "integer"}), (B, C)),
        (json!({"type": "integer"}), json!({"type": "number"}), (C, B)),
        (json!({"type": "string"}), json!({"type": ["string", "null"]}), (C, B)),
        (json!({"type": "string"}), json!({"type": "integer"}), (B, B)),
        (json!({}), json!({"type": "string"}), (B, C)),
        (json!(true), json!({"type": "string"}), (B, C)),
        (json!({"type": "string"}), json!(true), (C, B)),
        (json!({"enum": ["a", "b"]}), json!({"enum": ["b", "a"]}), (None, None)),
        (json!({"enum": ["a", "b"]}), json!({"enum": ["a"]}), (B, C)),
        (json!({"enum": ["a"]}), json!({"enum": ["a", "b"]}), (C, B)),
        (json!({"const": "a"}), json!({"enum": ["a", "b"]}), (C, B)),
        (json!({"enum": ["a"]}), json!({"enum": ["b"]}), (B, B)),
        (json!({"minimum": 1}), json!({"minimum": 2}), (B, C)),
        (json!({"minimum": 1}), json!({}), (C, B)),
        (json!({"maximum": 5}), json!({"maximum": 9}), (C, B)),
        (json!({"maxLength": 9}), json!({"maxLength": 5}), (B, C)),
        (json!({}), json!({"minItems": 1}), (B, C)),
        (json!({"multipleOf": 2}), json!({"multipleOf": 4}), (B, C)),
        (json!({"multipleOf": 4}), json!({"multipleOf": 2}), (C, B)),
        (json!({}), json!({"pattern": "^a"}), (B, C)),
        (json!({"pattern": "^a"}), json!({}), (C, B)),
        (json!({"pattern": "^a"}), json!({"pattern": "^b"}), (B, B)),
        (json!({"format": "uri"}), json!({"format": "email"}), (B, B)),
        (json!({"uniqueItems": true}), json!({}), (C, B)),
        (json!({"items": {"type": "number"}}), json!({"items": {"type": "integer"}}), (B, C)),
        (json!({"items": {"type": "number"}}), json!({}), (C, B)),
        (json!({"description": "x"}), json!({"description": "y", "default": 1}), (C, C)),
        (json!({"if": {}}), json!({"if": {"type": "string"}}), (B, B)),
        (json!({"x-own": 1}), json!({"x-own": 2}), (B, B)),
        // Optional arguments as libraries write them.
        (json!({"type": "string"}), json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), (C, B)),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!({"type": "string"}), (B, C)),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
            (None, None),
        ),
        (
            json!({"anyOf": [{"type": "number"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (B, C),
        ),
        (json!({"oneOf": [{"type": "string"}]}), json!({"oneOf": [{"type": "string"}, {"type": "null"}]}), (B, B)),
        (json!({"allOf": [{"minimum": 1}]}), json!({"allOf": [{"minimum": 0}]}), (C, B)),
    ];
    for (old, new, expected) in table {
        assert_eq!(tiers(old.clone(), new.clone()), expected, "{old} to {new}");
        assert_eq!(tiers(new.clone(), new.clone()), (None, None), "{new}");
    }
}

#[test]
fn arguments_that_come_and_go() {
    let a = json!({"a": {"type": "string"}});
    let ab = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    assert_eq!(
        input(object(a.clone(), &["a"]), object(ab.clone(), &["a"])),
        ["compatible /inputSchema/properties/b: a new optional argument"]
    );
    assert_eq!(
        input(object(a.clone(), &["a"]), object(ab.clone(), &["a", "b"])),
        ["breaking /inputSchema/required: a new argument `b` is required"]
    );
    assert_eq!(
        input(object(ab.clone(), &["a"]), object(ab.clone(), &["a", "b"])),
        ["breaking /inputSchema/required: the argument `b` is required now"]
    );
    assert_eq!(
        input(object(ab.clone(), &["a", "b"]), object(ab.clone(), &["a"])),
        ["compatible /inputSchema/required: the argument `b` is optional now"]
    );
    let gone = input(object(ab.clone(), &[]), object(a.clone(), &[]));
    assert!(
        gone.len() == 1 && gone[0].starts_with("compatible /inputSchema/properties/b: the argument was removed"),
        "{gone:?}"
    );
    let mut strict = [object(ab, &[]), object(a, &[])];
    strict.iter_mut().for_each(|schema| schema["additionalProperties"] = json!(false));
    let [old, new] = strict;
    assert_eq!(input(old, new), ["breaking /inputSchema/properties/b: the argument was removed and is refused now"]);
    assert_eq!(
        input(json!({}), json!({"additionalProperties": false})),
        ["breaking /inputSchema/additionalProperties: what is allowed is narrower: calls may be refused"]
    );
}

#[test]
fn results_keep_what_they_promised() {
    let output = |old: Value, new: Value| tool(json!({"outputSchema": old}), json!({"outputSchema": new}));
    let (a, ab) = (json!({"a": {}}), json!({"a": {}, "b": {}}));
    assert_eq!(
        output(object(ab.clone(), &[]), object(a.clone(), &[])),
        ["breaking /outputSchema/properties/b: the property was removed"]
    );
    assert_eq!(
        output(object(a, &[]), object(ab.clone(), &["b"])),
        [
            "compatible /outputSchema/properties/b: a new property",
            "compatible /outputSchema/required: `b` is always there now",
        ]
    );
    assert_eq!(
        output(object(ab.clone(), &["a"]), object(ab, &[])),
        ["breaking /outputSchema/required: `a` may be missing now"]
    );
    assert_eq!(
        tool(json!({"outputSchema": {}}), json!({})),
        ["breaking /outputSchema: structured results are no longer promised"]
    );
    assert_eq!(tool(json!({}), json!({"outputSchema": {}})), ["compatible /outputSchema: results are described now"]);
}

#[test]
fn references_are_followed_and_end() {
    let schema = |kind: &str| {
        json!({"$defs": {"node": {"type": "object", "properties": {
            "value": {"type": kind}, "next": {"$ref": "#/$defs/node"}}}}, "$ref": "#/$defs/node"})
    };
    assert_eq!(
        input(schema("number"), schema("integer")),
        ["breaking /inputSchema/properties/value/type: the type is narrower: calls may be refused"]
    );
    // The same schema with and without a reference.
    let direct = object(json!({"a": {"type": "string"}}), &[]);
    let mut by_reference = object(json!({"a": {"$ref": "#/$defs/text"}}), &[]);
    by_reference["$defs"] = json!({"text": {"type": "string"}});
    assert_eq!(input(direct.clone(), by_reference.clone()), [""; 0]);
    by_reference["$defs"] = json!({});
    assert_eq!(input(direct, by_reference), ["breaking /inputSchema/properties/a: cannot be judged"]);
    let hidden =
        |kind: &str| json!({"$defs": {"x": {"type": kind}}, "patternProperties": {"^a": {"$ref": "#/$defs/x"}}});
    assert_eq!(input(hidden("string"), hidden("number")), ["breaking /inputSchema/$defs/x: cannot be judged"]);
    let endless = json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
    assert_eq!(input(json!({}), endless), ["breaking /inputSchema: cannot be judged"]);
}

#[test]
fn nested_alternatives_take_bounded_time() {
    // The text of such a schema doubles with each level, so only a few levels can come from outside.
    let few = |kind: &str| {
        (0..8).fold(
            json!({"type": kind}),
            |inner, _| json!({"anyOf": [inner.clone(), {"type": "array", "items": inner}]}),
        )
    };
    assert!(input(few("string"), few("integer")).iter().any(|line| line.starts_with("breaking")));
}

#[test]
fn tools_as_a_whole() {
    let named = |name: &str| json!({"name": name});
    assert_eq!(
        told(&tools(&[named("a"), named("b")], &[named("c"), named("b")])),
        ["breaking : the tool was removed", "compatible : the tool is new",]
    );
    assert_eq!(
        tool(json!({"description": "a", "title": "b"}), json!({"description": "c"})),
        ["compatible /description: the description changed", "compatible /title: the title changed",]
    );
    assert_eq!(tool(json!({"x": 1}), json!({"x": 2})), ["breaking /x: cannot be judged"]);
    assert_eq!(tool(json!({"_meta": 1}), json!({"_meta": 2})), [""; 0]);
}

#[test]
fn promises_about_effects() {
    let hint = |old: Value, new: Value| tool(json!({"annotations": old}), json!({"annotations": new}));
    assert_eq!(
        hint(json!({"readOnlyHint": true}), json!({"readOnlyHint": false})),
        ["breaking /annotations/readOnlyHint: readOnlyHint was true and is false now"]
    );
    assert_eq!(
        tool(json!({"annotations": {"readOnlyHint": true}}), json!({})).len(),
        1,
        "what is not said is not promised"
    );
    assert_eq!(hint(json!({"readOnlyHint": false}), json!({})), [""; 0]);
    for (name, strong) in
        [("readOnlyHint", true), ("destructiveHint", false), ("idempotentHint", true), ("openWorldHint", false)]
    {
        assert!(hint(json!({name: strong}), json!({name: !strong}))[0].starts_with("breaking"), "{name}");
        assert!(hint(json!({name: !strong}), json!({name: strong}))[0].starts_with("compatible"), "{name}");
    }
    let tasks = |old: &str, new: &str| {
        tool(json!({"execution": {"taskSupport": old}}), json!({"execution": {"taskSupport": new}}))
    };
    assert!(tasks("optional", "required")[0].starts_with("breaking"));
    assert!(tasks("required", "optional")[0].starts_with("compatible"));
}

#[test]
fn prompts_resources_and_templates() {
    let prompt = |arguments: Value| [json!({"name": "p", "arguments": arguments})];
    let argument = |name: &str, required: bool| json!({"name": name, "required": required});
    let changes = prompts(
        &prompt(json!([argument("a", false), argument("b", true), argument("gone", false)])),
        &prompt(json!([argument("a", true), argument("b", false), argument("c", false), argument("d", true)])),
    );
    assert_eq!(
        told(&changes),
        [
            "breaking /arguments/a: the argument is required now",
            "compatible /arguments/b: the argument is optional now",
            "breaking /arguments/gone: the argument was removed",
            "compatible /arguments/c: a new argument is optional",
            "breaking /arguments/d: a new argument is required",
        ]
    );
    let resource = |uri: &str, kind: &str| json!({"uri": uri, "name": uri, "mimeType": kind});
    let changes = resources(&[resource("f:/a", "x/y"), resource("f:/b", "x/y")], &[resource("f:/a", "x/z")]);
    assert_eq!(
        told(&changes),
        ["breaking /mimeType: the type of the content changed", "breaking : the resource was removed"]
    );
    let template = |uri: &str| [json!({"uriTemplate": uri, "name": "t"})];
    assert_eq!(
        told(&templates(&template("f:/{a}"), &template("f:/{b}"))),
        ["breaking : the resource template was removed", "compatible : the resource template is new",]
    );
}

#[test]
fn what_a_server_says_of_itself() {
    let (old, new) = (json!({"tools": {"listChanged": true}, "logging": {}}), json!({"tools": {}, "prompts": {}}));
    assert_eq!(
        told(&capabilities(&old, &new)),
        [
            "breaking /tools/listChanged: the capability is gone",
            "breaking /logging: the capability is gone",
            "compatible /prompts: a new capability",
        ]
    );
    assert_eq!(server(Some(&json!({"version": "1"})), Some(&json!({"version": "2"})))[0].tier, Tier::Compatible);
    assert_eq!(instructions(Some(&json!("a")), None)[0].tier, Tier::Compatible);
}
