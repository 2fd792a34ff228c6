//! Schemas and instances made to cost time, memory or stack, for a test and for an example that measures them.

use serde_json::{Map, Value, json};

/// A schema and the instances to check with it.
pub struct HostileCase {
    /// Name in the table of measurements.
    pub name: &'static str,
    /// Text of the schema.
    pub schema: String,
    /// Texts of the instances.
    pub instances: Vec<String>,
}

/// Returns all cases.
pub fn hostile_cases() -> Vec<HostileCase> {
    [references(), identifiers(), branches(), patterns(), values(), nesting(), explanations()]
        .into_iter()
        .flatten()
        .collect()
}

fn case(name: &'static str, schema: &Value, instances: &[Value]) -> HostileCase {
    HostileCase { name, schema: schema.to_string(), instances: instances.iter().map(Value::to_string).collect() }
}

fn text_case(name: &'static str, schema: String, instances: Vec<String>) -> HostileCase {
    HostileCase { name, schema, instances }
}

/// Returns definitions `d0` to `d<count>`, each made from the reference to the next one.
fn chain(count: usize, link: impl Fn(Value) -> Value, last: Value) -> Value {
    let mut definitions = Map::new();
    for index in 0..count {
        definitions.insert(format!("d{index}"), link(json!({"$ref": format!("#/$defs/d{}", index + 1)})));
    }
    definitions.insert(format!("d{count}"), last);
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

fn nest(depth: usize, outer: impl Fn(Value) -> Value, inner: Value) -> Value {
    (0..depth).fold(inner, |inner, _| outer(inner))
}

#[expect(clippy::too_many_lines, reason = "a table, one row after the other")]
fn references() -> Vec<HostileCase> {
    let path = nest(60, |inner| json!({"x": inner}), json!(1));
    let twice = |link: Value| json!({"properties": {"x": {"allOf": [link, link]}}});
    let tree =
        json!({"properties": {"v": {"type": "integer"}, "l": {"$ref": "#"}, "r": {"$ref": "#"}}, "type": "object"});
    let leaves = nest(12, |inner| json!({"v": 1, "l": inner, "r": inner}), json!({"v": 1}));
    let recursive = json!({"anyOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}], "type": "object"});
    let dynamic = json!({"$dynamicAnchor": "a", "anyOf": (0..30)
        .map(|index| json!({"$id": format!("urn:{index}"), "$dynamicAnchor": "a", "properties": {"x": {"$dynamicRef": "#a"}}}))
        .take(3).collect::<Vec<_>>()});
    vec![
        case(
            "doubled references",
            &chain(30, |link| json!({"allOf": [link, link]}), json!({"type": "string"})),
            &[json!(1)],
        ),
        case(
            "doubled references in anyOf",
            &chain(30, |link| json!({"anyOf": [link, link]}), json!(false)),
            &[json!(1)],
        ),
        case(
            "17 doubled references",
            &chain(13, |link| json!({"anyOf": [link, link]}), json!(false)),
            &[json!(1), json!(vec![1; 9])],
        ),
        case(
            "doubled references in properties",
            &chain(50, twice, json!({"type": "integer"})),
            std::slice::from_ref(&path),
        ),
        case(
            "doubled dependentSchemas",
            &chain(30, |link| json!({"dependentSchemas": {"x": link, "y": link}}), json!(false)),
            &[json!({"x": 1, "y": 1})],
        ),
        case(
            "doubled if and then",
            &chain(30, |link| json!({"if": link, "then": link, "else": link}), json!(true)),
            &[json!(1)],
        ),
        case("recursion with two branches", &recursive, std::slice::from_ref(&path)),
        case("binary tree of 8191 nodes", &tree, &[leaves]),
        case("dynamic references", &dynamic, std::slice::from_ref(&path)),
        case(
            "the metaschema",
            &json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
            &[tree.clone(), path.clone()],
        ),
        case("reference to itself", &json!({"$ref": "#"}), &[json!(1)]),
        case("anyOf of itself", &json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}), &[json!(1)]),
        case(
            "mutual references",
            &json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
            &[json!(1)],
        ),
        case("chain of 3000 references", &chain(3_000, |link| link, json!({"type": "string"})), &[json!(1)]),
        case("chain of 120 references", &chain(120, |link| link, json!({"type": "string"})), &[json!(1)]),
        case(
            "chain of 1500 properties",
            &chain(1_500, |link| json!({"properties": {"x": link}}), json!(false)),
            &[nest(120, |inner| json!({"x": inner}), json!(1))],
        ),
        case(
            "chains at every level",
            &json!({"$ref": "#/$defs/d0", "$defs": chain(100, |link| link, json!({"additionalProperties": {"$ref": "#"}}))["$defs"]}),
            &[nest(100, |inner| json!({"x": inner}), json!(1))],
        ),
        case(
            "remote reference",
            &json!({"properties": {"a": {"$ref": "https://example.com/a.json"}}}),
            &[json!({"a": 1})],
        ),
        case("file reference", &json!({"$ref": "file:///etc/passwd"}), &[json!(1)]),
    ]
}

fn identifiers() -> Vec<HostileCase> {
    // Every resource refers to every other: the validator compiles one per path.
    let web = |count: usize, padding: usize| {
        let resource = |index: usize| {
            let links: Vec<Value> = (0..count)
                .filter(|other| *other != index)
                .map(|other| json!({"$ref": format!("urn:r{other}")}))
                .collect();
            let pad: Vec<Value> = (0..padding).map(|_| json!({"minLength": 1})).collect();
            json!({"$id": format!("urn:r{index}"), "$dynamicAnchor": "a", "properties": {"x": {"allOf": links}, "y": {"allOf": pad}}})
        };
        let resources: Map<String, Value> = (0..count).map(|index| (format!("r{index}"), resource(index))).collect();
        json!({"$ref": "urn:r0", "$defs": resources})
    };
    let path = nest(20, |inner| json!({"x": inner}), json!(1));
    let anchors: Map<String, Value> =
        (0..4_000).map(|index| (format!("a{index}"), json!({"$anchor": format!("a{index}")}))).collect();
    let uses: Vec<Value> = (0..1_000).map(|index| json!({"$ref": format!("#a{index}")})).collect();
    let bases = nest(30, |inner| json!({"$id": "deeper/", "properties": {"x": inner}}), json!({"$ref": "x"}));
    vec![
        case("3 resources that refer to each other", &web(3, 2_500), std::slice::from_ref(&path)),
        case("5 resources that refer to each other", &web(5, 10), std::slice::from_ref(&path)),
        case("6 resources that refer to each other", &web(6, 0), std::slice::from_ref(&path)),
        case("20 resources that refer to each other", &web(20, 0), &[path]),
        case("4000 anchors", &json!({"allOf": uses, "$defs": anchors}), &[json!(1)]),
        case("30 changes of the base", &bases, &[json!(1)]),
    ]
}

fn branches() -> Vec<HostileCase> {
    let path = nest(20, |inner| json!({"x": inner}), json!(1));
    let wide: Vec<Value> = (0..4_000).map(|_| json!({"type": "object"})).collect();
    let evaluated = |branch: &str, depth| {
        nest(
            depth,
            |inner| json!({branch: [inner], "unevaluatedProperties": false}),
            json!({"properties": {"x": true}}),
        )
    };
    let items = nest(25, |inner| json!({"anyOf": [inner], "unevaluatedItems": false}), json!({"prefixItems": [true]}));
    let arrays = nest(6, |inner| json!(vec![inner; 5]), json!([]));
    vec![
        case("60 oneOf in each other", &nest(30, |inner| json!({"oneOf": [inner, false]}), json!(true)), &[json!(1)]),
        case(
            "oneOf doubled by items",
            &nest(11, |inner| json!({"oneOf": [{"items": inner}, {"items": inner}]}), json!(true)),
            &[nest(20, |inner| json!([inner]), json!(1))],
        ),
        case("4000 branches for 10000 items", &json!({"items": {"allOf": wide}}), &[json!(vec![1; 10_000])]),
        case("unevaluatedProperties nested 12 times", &evaluated("allOf", 8), &[json!({"x": 1}), json!({"y": 1})]),
        case("unevaluatedProperties nested 30 times", &evaluated("allOf", 30), &[json!({"x": 1})]),
        case("unevaluatedProperties in anyOf", &evaluated("anyOf", 30), &[json!({"y": 1})]),
        case("unevaluatedItems nested 25 times", &items, &[json!([1, 2])]),
        case(
            "contains in contains",
            &nest(7, |inner| json!({"contains": inner, "minContains": 5}), json!({"type": "array"})),
            std::slice::from_ref(&arrays),
        ),
        case("uniqueItems at every level", &json!({"uniqueItems": true, "items": {"$ref": "#"}}), &[arrays, path]),
    ]
}

fn patterns() -> Vec<HostileCase> {
    let many = |count: usize| -> Map<String, Value> {
        (0..count).map(|index| (format!("^a{index}b*c"), json!({"type": "string"}))).collect()
    };
    let keys: Map<String, Value> = (0..20_000).map(|index| (format!("a{index}bbbbbbb"), json!(1))).collect();
    let binary: String =
        (0..1_000_000).map(|index: usize| if (index * index / 7).is_multiple_of(3) { '1' } else { '0' }).collect();
    let all: Vec<Value> = (0..200).map(|index| json!({"pattern": format!("[01]*1[01]{{{}}}$", 100 + index)})).collect();
    vec![
        case("10000 patterns", &json!({"patternProperties": many(10_000)}), &[json!({})]),
        case("200 patterns for 20000 names", &json!({"patternProperties": many(200)}), &[Value::Object(keys.clone())]),
        case(
            "200 patterns for 1000 names",
            &json!({"patternProperties": many(200)}),
            &[Value::Object(keys.iter().take(1_000).map(|(key, value)| (key.clone(), value.clone())).collect())],
        ),
        case("a pattern with a million states", &json!({"pattern": "(a{1000}){1000}"}), &[json!("a")]),
        case("a pattern of Unicode classes", &json!({"pattern": "(\\p{L}{50}){50}"}), &[json!("a")]),
        case("a pattern without a small DFA, 1 MB", &json!({"pattern": "[01]*1[01]{500}$"}), &[json!(binary)]),
        case(
            "a pattern without a small DFA, 20 kB",
            &json!({"pattern": "[01]*1[01]{500}$"}),
            &[json!(&binary[..20_000])],
        ),
        case("200 patterns without a small DFA", &json!({"allOf": all}), &[json!(&binary[..2_000])]),
        case("backtracking", &json!({"pattern": "^(a+)+$"}), &[json!(format!("{}!", "a".repeat(50_000)))]),
        case("look-ahead", &json!({"pattern": "^(?=a)(?!b)"}), &[json!("a")]),
        case(
            "names with a pattern",
            &json!({"propertyNames": {"pattern": "^[a-z0-9]{1,64}$"}}),
            &[Value::Object(keys)],
        ),
        case("a pattern of 300000 bytes", &json!({"pattern": "a".repeat(200_000)}), &[json!("a")]),
    ]
}

fn values() -> Vec<HostileCase> {
    let names: Vec<String> = (0..15_000).map(|index| format!("value-{index}")).collect();
    let alike: Vec<String> = (0..1_000).map(|index| format!("{}{index:04}", "a".repeat(200))).collect();
    let object: Map<String, Value> = (0..5_000).map(|index| (format!("k{index}"), json!(index))).collect();
    let formats: Vec<Value> = (0..3_000).map(|_| json!({"format": "regex"})).collect();
    let numbers: Vec<f64> = (0..50_000).map(|index| f64::from(index) * 1e17).collect();
    vec![
        case(
            "enum of 15000 for 10000 items",
            &json!({"items": {"enum": names}}),
            &[json!(vec!["value-15001"; 10_000])],
        ),
        case("enum of 15000 for one", &json!({"enum": names}), &[json!("value-x")]),
        case(
            "enum of equal beginnings",
            &json!({"items": {"enum": alike}}),
            &[json!(vec![format!("{}x", "a".repeat(203)); 5_000])],
        ),
        case(
            "const of 5000 members for 30 items",
            &json!({"items": {"const": object}}),
            &[json!(vec![object.clone(); 30])],
        ),
        case("3000 formats", &json!({"allOf": formats}), &[json!("(".repeat(1_000))]),
        case(
            "huge bounds",
            &json!({"minLength": 1e15, "minItems": u64::MAX, "minimum": 1e308, "minProperties": 1e300}),
            &[json!("a"), json!([]), json!({})],
        ),
        case("tiny multipleOf", &json!({"items": {"multipleOf": 1e-300}}), &[json!(numbers)]),
        case("multipleOf of many digits", &json!({"items": {"multipleOf": 1.234_567_890_123e-8}}), &[json!(numbers)]),
        case("uniqueItems of 95000 numbers", &json!({"uniqueItems": true}), &[json!((0..95_000).collect::<Vec<_>>())]),
        case(
            "uniqueItems of objects",
            &json!({"uniqueItems": true}),
            &[json!((0..15_000).map(|index| json!({"a": "b", "c": index})).collect::<Vec<_>>())],
        ),
        case(
            "1000 lengths of 1 MB",
            &json!({"allOf": vec![json!({"minLength": 2_000_000}); 1_000]}),
            &[json!("é".repeat(500_000))],
        ),
        text_case("schema with 1e400", r#"{"minimum": 1e400, "multipleOf": 1e-400}"#.to_owned(), vec!["1".to_owned()]),
        text_case(
            "instance with 95000 times 1e400",
            r#"{"items": {"type": "integer"}}"#.to_owned(),
            vec![format!("[{}1]", "1e400,".repeat(95_000))],
        ),
    ]
}

fn nesting() -> Vec<HostileCase> {
    let brackets = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let members: String = (0..49_000).map(|index| format!("\"k{index}\":1,")).collect();
    let any = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let deep = json!({"items": {"$ref": "#"}, "minItems": 0}).to_string();
    vec![
        case("60 not in each other", &nest(60, |inner| json!({"not": inner}), json!({"type": "string"})), &[json!(1)]),
        case(
            "60 items in each other",
            &nest(60, |inner| json!({"items": inner}), json!({"type": "string"})),
            &[json!([[1]])],
        ),
        case(
            "as much nesting and references as compile",
            &chain(200, |link| nest(19, |inner| json!({"properties": {"x": inner}}), link), json!(true)),
            &[json!({"x": {}})],
        ),
        case(
            "as much allOf and references as compile",
            &chain(
                200,
                |link| json!({"items": nest(10, |inner| json!({"allOf": [inner], "anyOf": [true]}), link)}),
                json!(true),
            ),
            &[nest(100, |inner| json!([inner]), json!(1))],
        ),
        case(
            "chains of 6 at 120 levels",
            &json!({"$ref": "#/$defs/d0", "$defs": chain(6, |link| json!({"anyOf": [link]}), json!({"additionalProperties": {"$ref": "#"}}))["$defs"]}),
            &[nest(60, |inner| json!({"x": inner}), json!(1)), nest(90, |inner| json!({"x": inner}), json!(1))],
        ),
        case(
            "references at the bottom of nesting",
            &chain(200, |link| nest(50, |inner| json!({"items": inner}), link), json!(true)),
            &[json!([[1]])],
        ),
        text_case(
            "a schema of 10000 levels",
            format!("{}true{}", "{\"not\":".repeat(10_000), "}".repeat(10_000)),
            vec!["1".to_owned()],
        ),
        text_case("not JSON", "{".repeat(200_000), vec![]),
        case("30000 values in a schema", &json!({"allOf": vec![true; 30_000]}), &[json!(1)]),
        text_case("an instance of 100000 levels", deep.clone(), vec![brackets(100_000)]),
        text_case("an instance of 126 levels", deep, vec![brackets(126)]),
        text_case("an instance of 4 million values", any.to_string(), vec![format!("[{}1]", "1,".repeat(3_999_999))]),
        text_case("an instance of 95000 values", any.to_string(), vec![format!("[{}1]", "1,".repeat(95_000))]),
        text_case("an instance of 49000 members", any.to_string(), vec![format!("{{{members}\"z\":1}}")]),
        text_case(
            "an instance of 7 MB in one text",
            any.to_string(),
            vec![json!({"a": "x".repeat(7_000_000)}).to_string()],
        ),
    ]
}

fn explanations() -> Vec<HostileCase> {
    let branches: Vec<Value> =
        (0..1_000).map(|index| json!({"type": "object", "required": [format!("p{index}")]})).collect();
    let big: Vec<String> = (0..10_000).map(|index| format!("{index}")).collect();
    let nested =
        nest(10, |inner| json!({"anyOf": [{"items": inner}, {"items": inner}, {"type": "null"}]}), json!(false));
    let secret_names: Map<String, Value> = (0..24_000).map(|index| (format!("key{index}"), json!("5"))).collect();
    vec![
        case("1000 branches that do not fit", &json!({"anyOf": branches}), &[json!({"x": big})]),
        case(
            "1000 branches for 100 items",
            &json!({"items": {"anyOf": branches}}),
            &[json!(vec![json!({"x": 1}); 100])],
        ),
        case("not with a large schema", &json!({"items": {"not": {"enum": big}}}), &[json!(vec!["1"; 90])]),
        case("branches in branches", &nested, &[nest(10, |inner| json!([inner, inner]), json!(1))]),
        case("95000 texts to coerce", &json!({"items": {"type": "integer"}}), &[json!(vec!["5"; 95_000])]),
        case(
            "JSON in a text",
            &json!({"type": "array", "items": {"type": "integer"}}),
            &[json!(json!(vec!["5"; 50]).to_string()), json!(format!("[{}1]", "1,".repeat(900_000)))],
        ),
        case(
            "24000 unknown names",
            &json!({"properties": {"known": true}, "additionalProperties": false}),
            &[Value::Object(secret_names.clone())],
        ),
        case(
            "24000 wrong values",
            &json!({"additionalProperties": {"type": "integer"}}),
            &[Value::Object(secret_names)],
        ),
    ]
}
