//! What a rule file can get wrong, and the words for it.

use super::*;
use crate::limits;

fn wrong(toml: &str) -> String {
    RuleSet::parse("rules.toml", toml).map(|set| format!("{set:?}")).unwrap_err().to_string()
}

fn wrong_rule(when: &str, then: &str) -> String {
    wrong(&format!("[[rules]]\nid = \"r\"\nwhen = {{ {when} }}\nthen = {then}\n"))
}

#[test]
fn an_error_names_the_file_the_place_the_key_and_what_was_expected() {
    for (toml, said) in [
        ("x = ", "rules.toml:1:5: not valid TOML: string values must be quoted, expected literal string"),
        ("[[rule]]\nid = \"a\"", "rules.toml:1:3: rule: unknown key; did you mean `rules`?"),
        ("rules = 5", "rules.toml:1:9: rules: expected a list of rules, each under `[[rules]]`, found 5"),
        ("[[rules]]\nname = \"x\"", "rules.toml:1:1: rules[0]: `id` is missing"),
        (
            "[[rules]]\nid = \"a b\"\nthen = \"allow\"",
            "rules.toml:2:6: rules[0].id: expected a short id of letters, digits, `_`, `.`, `:`, `/` and `-`, found \"a b\"",
        ),
        ("[[rules]]\nid = \"a\"", "rules.toml:1:1: rules[0]: `then` is missing"),
        (
            "[[rules]]\nid = \"a\"\nthen = []",
            "rules.toml:3:8: rules[0].then: expected a list of at least one action; the list is empty, found a list",
        ),
        (
            "[[rules]]\nid = \"a\"\nenabled = 1\nthen = \"allow\"",
            "rules.toml:3:11: rules[0].enabled: expected true or false, found 1",
        ),
        (
            "[[rules]]\nid = \"a\"\npriority = 4294967296\nthen = \"allow\"",
            "rules.toml:3:12: rules[0].priority: expected a whole number of 32 bits, found 4294967296",
        ),
        (
            "[[rules]]\nid = \"a\"\nthen = \"allow\"\n[[rules]]\nid = \"a\"\nthen = \"allow\"",
            "rules.toml:4:1: rules[1]: the rule id `a` is already used in rules.toml, line 1; give one of them another id",
        ),
    ] {
        assert_eq!(wrong(toml), said);
    }
}

#[test]
fn wrong_conditions_are_told_by_name() {
    for (when, said) in [
        ("metod = \"x\"", "rules.toml:3:10: rules[0].when.metod: unknown key; did you mean `method`?"),
        (
            "method = { equal = \"x\" }",
            "rules.toml:3:21: rules[0].when.method.equal: unknown key; did you mean `equals`?",
        ),
        (
            "method = 5",
            "rules.toml:3:19: rules[0].when.method: expected a method such as \"tools/call\", or a table of tests, found 5",
        ),
        (
            "method = { matches = \"(\" }",
            "rules.toml:3:31: rules[0].when.method.matches: not a regular expression this program can use: error: unclosed group",
        ),
        (
            "params = { \"arguments\" = 1 }",
            "rules.toml:3:35: rules[0].when.params.arguments: expected a JSON pointer, such as \"/params/arguments/path\", of at most 32 parts, found \"arguments\"",
        ),
        (
            "params = { \"/a\" = { bigger = 1 } }",
            "rules.toml:3:30: rules[0].when.params.\"/a\".bigger: unknown key; expected one of `exists`, `is_null`, `is_array`, `equals`, `in`, `greater`, `less`, `starts_with`, `ends_with`, `contains`, `matches`",
        ),
        (
            "session_age = { greater = \"soon\" }",
            "rules.toml:3:36: rules[0].when.session_age.greater: expected a time such as \"200ms\", \"5s\", \"10m\" or \"1h\", at most 86400s, found \"soon\"",
        ),
        (
            "phase = \"reply\"",
            "rules.toml:3:18: rules[0].when.phase: expected \"request\", \"response\", \"notification\", \"question\", \"answer\", \"gateway_request\" or \"gateway_response\", or a list of them, found \"reply\"",
        ),
        (
            "or = []",
            "rules.toml:3:15: rules[0].when.or: expected a list of at least one condition; the list is empty, found a list",
        ),
    ] {
        assert_eq!(wrong_rule(when, "\"allow\""), said);
    }
}

#[test]
fn wrong_actions_are_told_by_name() {
    for (then, said) in [
        (
            "\"stop\"",
            "rules.toml:4:8: rules[0].then: expected \"allow\", \"block\", or a table such as { log = \"text\" }, found \"stop\"",
        ),
        ("{ blok = true }", "rules.toml:4:10: rules[0].then.blok: unknown key; did you mean `block`?"),
        (
            "{ log = \"x\", count = \"y\" }",
            "rules.toml:4:8: rules[0].then: expected exactly one action in a table; give every action a table of its own, in the order in which they are to run",
        ),
        (
            "[{ log = \"${sesion}\" }]",
            "rules.toml:4:17: rules[0].then[0].log: unknown name `${sesion}`; did you mean `${session}`? Write `$${` for a literal `${`",
        ),
        (
            "{ set = { \"/arguments/x\" = 1 } }",
            "rules.toml:4:35: rules[0].then.set.\"/arguments/x\": expected a pointer that starts with /params/ or /result/, such as \"/params/arguments/limit\"; to replace all of it use `replace_params` or `replace_result`, found \"/arguments/x\"",
        ),
        (
            "{ fault = { kind = \"timeut\" } }",
            "rules.toml:4:27: rules[0].then.fault.kind: expected one of timeout, refused, unreachable, dns, tls, reset, crash, invalid_json, error, slow, truncate, garble (did you mean `timeout`?), found \"timeut\"",
        ),
        (
            "{ fault = { kind = \"reset\", probability = 2 } }",
            "rules.toml:4:50: rules[0].then.fault.probability: expected a number from 0 to 1, found 2",
        ),
        (
            "{ webhook = \"ftp://x\" }",
            "rules.toml:4:20: rules[0].then.webhook: expected a URL that starts with http:// or https://, found \"ftp://x\"",
        ),
        (
            "{ webhook = { url = \"http://x\", on_failure = \"allow\" } }",
            "rules.toml:4:53: rules[0].then.webhook.on_failure: has no effect without `wait = true`",
        ),
        (
            "{ rate_limit = { limit = 0, per = \"1m\" } }",
            "rules.toml:4:33: rules[0].then.rate_limit.limit: expected a whole number from 1 to 1000000, found 0",
        ),
        (
            "{ delay = { between = [\"2s\", \"1s\"] } }",
            "rules.toml:4:30: rules[0].then.delay.between: expected the shorter time first, found a list",
        ),
        (
            "{ mock = { json = \"{\" } }",
            "rules.toml:4:26: rules[0].then.mock.json: not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
    ] {
        assert_eq!(wrong_rule("tool = \"x\"", then), said);
    }
    assert_eq!(
        wrong_rule("phase = \"response\"", "{ fork = \"x\" }"),
        "rules.toml:4:8: rules[0].then: `fork` applies to requests only, but this rule matches answers; set `phase` in `when`, or use a separate rule"
    );
}

/// Proves SO-14.
#[test]
fn everything_has_a_bound() {
    let many = |count: usize| -> String {
        (0..count).map(|number| format!("[[rules]]\nid = \"r{number}\"\nthen = \"allow\"\n")).collect()
    };
    assert_eq!(RuleSet::parse("x", &many(limits::RULES)).unwrap().len(), limits::RULES);
    assert!(wrong(&many(limits::RULES + 1)).contains("more than 1000 rules"));
    let halves = [many(600), many(600).replace("id = \"r", "id = \"s")];
    let sets = halves.iter().map(|half| RuleSet::parse("x", half).unwrap()).collect();
    assert!(RuleSet::merge(sets).unwrap_err().to_string().contains("more than 1000 rules"));

    let deep = |depth: usize| format!("{}tool = \"x\"{}", "not = { ".repeat(depth), " }".repeat(depth));
    assert!(
        RuleSet::parse(
            "x",
            &format!("[[rules]]\nid = \"r\"\nwhen = {{ {} }}\nthen = \"allow\"", deep(limits::DEPTH - 1))
        )
        .is_ok()
    );
    assert!(wrong_rule(&deep(limits::DEPTH), "\"allow\"").contains("more than 16 levels"));
    assert!(
        wrong_rule("tool = \"x\"", &format!("[{}]", "\"allow\",".repeat(limits::ACTIONS + 1)))
            .contains("more than 32 actions")
    );
    assert!(
        wrong_rule(&format!("method = {{ in = [{}] }}", "\"x\",".repeat(limits::LIST + 1)), "\"allow\"")
            .contains("more than 256 entries")
    );
    assert!(wrong_rule("method = { matches = \"(a{1000}){1000}\" }", "\"allow\"").contains("too large; shorten it"));
    assert!(wrong_rule(&format!("tool = \"{}\"", "x".repeat(600)), "\"allow\"").contains("at most 512 bytes"));
    assert!(
        wrong_rule("tool = \"x\"", &format!("{{ log = \"{}\" }}", "x".repeat(limits::TEXT + 1)))
            .contains("at most 4096 bytes")
    );
    assert!(wrong(&"#".repeat(limits::FILE + 1)).contains("the file is larger than"));
    let params: Vec<_> = (0..limits::LIST).map(|number| format!("\"/a{number}\" = 1")).collect();
    let params = params.join(", ");
    let wide = format!("and = [{{ params = {{ {params} }} }}, {{ tool = \"x\" }}]");
    assert!(wrong_rule(&wide, "\"allow\"").contains("more than 256 conditions"));
    let patterns: String = (0..=limits::PATTERNS)
        .map(|number| {
            format!("[[rules]]\nid = \"r{number}\"\nwhen = {{ method = {{ matches = \"a\" }} }}\nthen = \"allow\"\n")
        })
        .collect();
    assert!(wrong(&patterns).contains("more than 500 regular expressions; use `in`"));
}

/// Proves SO-14.
#[test]
fn several_files_become_one_set_and_one_id_is_there_once() {
    let one = RuleSet::parse("a.toml", "[[rules]]\nid = \"a\"\nthen = \"allow\"").unwrap();
    let two = RuleSet::parse_within(
        "signalbox.toml",
        "port = 5\n\n[[rules]]\nid = \"b\"\npriority = 1\nthen = \"allow\"",
        &crate::outside::NoFiles,
    )
    .unwrap();
    let merged = RuleSet::merge(vec![one.clone(), two.clone()]).unwrap();
    let rows: Vec<_> =
        merged.describe().into_iter().map(|row| format!("{} {}:{}", row.id, row.file, row.line)).collect();
    assert_eq!(rows, ["b signalbox.toml:3", "a a.toml:1"]);
    assert_eq!(merged.version(), RuleSet::merge(vec![two, one.clone()]).unwrap().version());
    assert_ne!(merged.version(), one.version());
    let twice = RuleSet::merge(vec![one.clone(), one]).unwrap_err();
    assert_eq!(
        twice.to_string(),
        "a.toml:1:1: rules[0]: the rule id `a` is already used in a.toml, line 1; give one of them another id"
    );
}

#[test]
fn a_listing_tells_a_rule_in_words() {
    let set = RuleSet::parse(
        "rules.toml",
        r#"
        [[rules]]
        id = "no-etc"
        name = "Nobody reads /etc"
        priority = 10
        when = { tool = ["files__*"], or = [{ params = { "/arguments/path" = { starts_with = "/etc" } } }, { not = { principal = "local:*" } }] }
        then = [{ log = { level = "warning", text = "x" } }, { block = "no" }]
        "#,
    )
    .unwrap();
    let row = &set.describe()[0];
    assert_eq!(row.name, "Nobody reads /etc");
    assert_eq!((row.phases.as_str(), row.methods.as_slice()), ("requests", ["tools/call".to_owned()].as_slice()));
    assert_eq!(
        row.when,
        r#"tool is files__* and (/params/arguments/path starts with "/etc" or not (principal is local:*))"#
    );
    assert_eq!(row.then, ["log warning", "block"]);
}

#[test]
fn rules_that_cannot_be_meant_are_warned_of() {
    let set = RuleSet::parse(
        "rules.toml",
        r#"
        [[rules]]
        id = "never"
        priority = 9
        when = { method = "tools/list", tool = "x" }
        then = "block"
        [[rules]]
        id = "neither"
        priority = 8
        when = { phase = "request", result = { "/result/x" = 1 } }
        then = "block"
        [[rules]]
        id = "all"
        priority = 5
        then = ["allow", { log = "x" }]
        [[rules]]
        id = "shadowed"
        when = { tool = "x" }
        then = "block"
        [[rules]]
        id = "answers"
        when = { result = { "/result/x" = 1 } }
        then = "block"
        "#,
    )
    .unwrap();
    let warnings: Vec<_> = set.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "rules.toml:2:9: rules[0]: rule `never` can never match: its conditions exclude each other",
            "rules.toml:7:9: rules[1]: rule `neither` can never match: its conditions exclude each other",
            "rules.toml:12:9: rules[2]: rule `all` ends with `allow`; the 1 after it never run",
            "rules.toml:16:9: rules[3]: rule `shadowed` is never reached: rule `all` comes first, has no conditions and ends with `allow`",
        ]
    );
}

#[test]
fn a_rule_on_a_question_names_its_phase() {
    for when in [
        r#"method = "elicitation/create""#,
        r#"method = "sampling/createMessage", backend = "a""#,
        r#"method = ["tools/call", "roots/list"]"#,
        r#"method = { starts_with = "elicitation/" }"#,
        r#"or = [{ tool = "a" }, { method = "elicitation/create" }]"#,
        r#"phase = "request", method = "elicitation/create""#,
    ] {
        let said = wrong_rule(when, "\"allow\"");
        assert!(said.contains("rules[0].when: ") && said.contains("`phase = \"question\"`"), "{when}: {said}");
    }
    for when in [
        r#"phase = "question", method = "elicitation/create""#,
        r#"phase = ["request", "question"], method = ["tools/call", "elicitation/create"]"#,
        r#"not = { method = "elicitation/create" }"#,
        r#"method = { ends_with = "list" }"#,
    ] {
        let rule = format!("[[rules]]\nid = \"r\"\nwhen = {{ {when} }}\nthen = \"allow\"\n");
        RuleSet::parse("rules.toml", &rule).unwrap();
    }
}
