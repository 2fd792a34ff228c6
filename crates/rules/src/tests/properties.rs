//! What holds for every text and every message.

use super::*;
use crate::fuzzing;
use proptest::prelude::*;

/// A text that looks like rules, with anything in its places.
fn rule_like() -> impl Strategy<Value = String> {
    let key =
        prop_oneof![Just("method"), Just("tool"), Just("params"), Just("not"), Just("or"), Just("phase"), Just("x")];
    let value = prop_oneof![
        "\"[a-z/{}$~*]{0,12}\"",
        Just("{ \"/a\" = { matches = \"(a|b)*\" } }".to_owned()),
        Just("[{ tool = \"x\" }]".to_owned()),
        Just("{ tool = \"x\" }".to_owned()),
        Just("5".to_owned()),
    ];
    let then = prop_oneof![
        Just("\"allow\"".to_owned()),
        "\\{ log = \"[${}a-z/]{0,20}\" \\}",
        "\\{ set = \\{ \"/(params|result)/[a-z0-9~/-]{0,8}\" = \"[${}a-z/]{0,20}\" \\} \\}",
        Just("{ mock = { list = [{ a = \"{{/params}}\" }] } }".to_owned()),
        "\\{ fault = \\{ kind = \"(garble|truncate|error)\", probability = 0.[0-9] \\} \\}",
    ];
    (key, value, then)
        .prop_map(|(key, value, then)| format!("[[rules]]\nid = \"r\"\nwhen = {{ {key} = {value} }}\nthen = {then}\n"))
}

proptest! {
    #[test]
    fn reading_rules_never_panics(text in "[ -~\n]{0,200}") {
        fuzzing::rules(text.as_bytes());
    }

    #[test]
    fn whatever_looks_like_rules_is_read_or_refused_and_judges(text in rule_like()) {
        fuzzing::rules(text.as_bytes());
    }

    #[test]
    fn rules_that_fit_nothing_change_no_byte(name in "[a-z]{1,8}", argument in "[ -~&&[^\"\\\\]]{0,30}", n in any::<f64>()) {
        let message = format!(r#"{{ "jsonrpc":"2.0", "id" : 1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"a":"{argument}","n":{}}}}}}}"#, if n.is_finite() { n } else { 0.0 });
        let mut dialogue = Dialogue::new(r#"
            [[rules]]
            id = "a"
            when = { params = { "/arguments/b" = { exists = true } } }
            then = { set = { "/params/arguments/a" = 1 } }
            [[rules]]
            id = "b"
            when = { tool = "UPPER*" }
            then = { remove = "/params/arguments/a" }
        "#);
        prop_assert_eq!(dialogue.asks(&message), "pass");
        prop_assert_eq!(dialogue.answers(RESULT), "pass");
    }

    #[test]
    fn rules_together_see_what_each_of_them_sees_alone(
        text in "(\\PC{0,3}|[ab]{0,10}|\"\\\\\"[ab]{0,9})",
        wanted in proptest::collection::vec(("[ab]{1,10}", any::<bool>()), 2..6),
    ) {
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"t": text}}}).to_string();
        let rule = |(number, (wanted, whole)): (usize, &(String, bool))| {
            let test = if *whole { "equals" } else { "starts_with" };
            format!("[[rules]]\nid = \"r{number}\"\nwhen = {{ method = \"tools/call\", \
                params = {{ \"/arguments/t\" = {{ {test} = \"{wanted}\" }} }} }}\nthen = {{ log = \"x\" }}\n")
        };
        let rules: Vec<String> = wanted.iter().enumerate().map(rule).collect();
        let bits = |rules: &str| {
            let mut dialogue = Dialogue::new(rules);
            dialogue.asks(&message);
            let (_, outcomes) = dialogue.rulings.last().unwrap().inputs[1].clone();
            crate::outcomes::Outcomes::parse(&outcomes, 100).unwrap().from(0).collect::<Vec<_>>()
        };
        let alone: Vec<bool> = rules.iter().flat_map(|rule| bits(rule)).collect();
        prop_assert_eq!(bits(&rules.concat()), alone);
    }

    #[test]
    fn a_changed_message_is_a_message_and_holds_what_was_set(key in "[a-z~/0-9\"\\\\é-]{1,8}", value in any::<i64>()) {
        let pointer = key.replace('~', "~0").replace('/', "~1");
        let target = crate::pointer::Pointer::parse(&format!("/arguments/{pointer}")).unwrap();
        let message = envelope(CALL);
        let changed = crate::patch::set(message.bytes(), crate::facts::Root::Params, &target, value.to_string().as_bytes()).unwrap();
        let changed: serde_json::Value = serde_json::from_slice(&changed).unwrap();
        let mut expected: serde_json::Value = serde_json::from_str(CALL).unwrap();
        expected["params"]["arguments"][key.as_str()] = value.into();
        prop_assert_eq!(changed, expected);
    }
}

#[test]
fn mutated_rule_files_are_read_or_refused() {
    const SEED: &str = include_str!("../../examples/rules.toml");
    fuzzing::rules(SEED.as_bytes());
    let bytes = SEED.as_bytes();
    for at in (0..bytes.len()).step_by(7) {
        fuzzing::rules(&bytes[..at]);
        for with in [b'"', b'{', b'\n', b'=', b'$', 0xff] {
            let mut changed = bytes.to_vec();
            changed[at] = with;
            fuzzing::rules(&changed);
        }
    }
}
