//! Each condition, held and not held.

use super::*;

/// Whether a rule of these conditions fits.
fn fits(when: &str, say: impl FnOnce(&mut Dialogue) -> String) -> bool {
    let mut dialogue = Dialogue::rule(when, "{ count = \"hit\" }");
    match say(&mut dialogue).as_str() {
        "count hit | pass" => true,
        "pass" => false,
        other => panic!("{when}: {other}"),
    }
}

fn call(when: &str) -> bool {
    fits(when, |dialogue| dialogue.asks(CALL))
}

fn result(when: &str) -> bool {
    fits(when, |dialogue| {
        dialogue.asks(CALL);
        dialogue.answers(RESULT)
    })
}

fn error(when: &str) -> bool {
    fits(when, |dialogue| {
        dialogue.asks(CALL);
        dialogue.answers(ERROR)
    })
}

#[test]
fn pointers_begin_at_the_message_and_those_that_begin_inside_are_still_read() {
    let text = |pointer: &str| {
        format!("[[rules]]\nid = \"r\"\nwhen = {{ params = {{ {pointer:?} = \"x\" }} }}\nthen = \"block\"\n")
    };
    for pointer in ["/params/arguments/path", "/arguments/path"] {
        let set = RuleSet::parse("r.toml", &text(pointer)).unwrap();
        let shown = &set.describe()[0].when;
        assert!(shown.starts_with("/params/arguments/path "), "{pointer}: {shown}");
        let warned = set.warnings().iter().any(|warning| warning.text.contains("write `/params/arguments/path`"));
        assert_eq!(warned, pointer == "/arguments/path", "{:?}", set.warnings());
    }
}

/// Proves S-25, S-62 and SO-5.
#[test]
fn the_method_equals_is_in_starts_ends_and_matches() {
    for yes in [
        r#"method = "tools/call""#,
        r#"method = ["tools/list", "tools/call"]"#,
        r#"method = { equals = "tools/call" }"#,
        r#"method = { in = ["tools/list", "tools/call"] }"#,
        r#"method = { starts_with = "tools/" }"#,
        r#"method = { ends_with = "/call" }"#,
        r#"method = { matches = "^tools/(call|list)$" }"#,
        r#"method = { starts_with = "tools/", ends_with = "call" }"#,
    ] {
        assert!(call(yes), "{yes}");
    }
    for no in [
        r#"method = "tools/calls""#,
        r#"method = { in = ["tools/list"] }"#,
        r#"method = { starts_with = "tool/" }"#,
        r#"method = { ends_with = "/list" }"#,
        r#"method = { matches = "^call" }"#,
        r#"method = { starts_with = "tools/", ends_with = "list" }"#,
    ] {
        assert!(!call(no), "{no}");
    }
}

/// Proves S-25, SO-4 and SO-5.
#[test]
fn a_value_of_the_params_is_there_equals_contains_and_compares() {
    for yes in [
        r#""/arguments/text" = { exists = true }"#,
        r#""/arguments/x" = { exists = false }"#,
        r#""/arguments/text" = "hello""#,
        r#""/arguments/n" = { equals = 3.0 }"#,
        r#""/arguments/list" = { equals = [1, "two"] }"#,
        r#""/arguments/text" = { in = ["goodbye", "hello"] }"#,
        r#""/arguments/text" = { contains = "ell" }"#,
        r#""/arguments/list" = { contains = "two" }"#,
        r#""/arguments" = { contains = "list" }"#,
        r#""/arguments/text" = { matches = "^h.*o$" }"#,
        r#""" = { matches = "nothing.:null" }"#,
        r#""/arguments/text" = { starts_with = "he" }"#,
        r#""/arguments/text" = { ends_with = "lo" }"#,
        r#""/arguments/n" = { greater = 2, less = 3.5 }"#,
        r#""/arguments/nothing" = { is_null = true }"#,
        r#""/arguments/text" = { is_null = false }"#,
        r#""/arguments/list" = { is_array = true }"#,
        r#""/arguments/list/0" = 1"#,
    ] {
        assert!(call(&format!("params = {{ {yes} }}")), "{yes}");
    }
    for no in [
        r#""/arguments/x" = { exists = true }"#,
        r#""/arguments/text" = { exists = false }"#,
        r#""/arguments/text" = "hell""#,
        r#""/arguments/n" = "3""#,
        r#""/arguments/n" = true"#,
        r#""/arguments/list" = { equals = [1] }"#,
        r#""/arguments/list" = { contains = 2 }"#,
        r#""/arguments/n" = { contains = "3" }"#,
        r#""/arguments/n" = { greater = 3 }"#,
        r#""/arguments/n" = { less = 3 }"#,
        r#""/arguments/text" = { greater = 0 }"#,
        r#""/arguments/x" = { is_null = true }"#,
        r#""/arguments/x" = { is_null = false }"#,
        r#""/arguments/text" = { is_array = true }"#,
        r#""/arguments/text" = { matches = "^ello" }"#,
    ] {
        assert!(!call(&format!("params = {{ {no} }}")), "{no}");
    }
}

#[test]
fn a_value_is_compared_by_its_meaning_and_not_by_its_spelling() {
    let spelled =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\u0061me":"ec\u0068o","arguments":{"n":3e0}}}"#;
    let mut dialogue =
        Dialogue::rule(r#"tool = "echo", params = { "/name" = "echo", "/arguments/n" = 3 }"#, "\"block\"");
    assert_eq!(dialogue.asks(spelled), "refuse refused: rule `r` does not let this pass");
}

#[test]
fn a_beginning_is_found_however_it_is_spelled() {
    let begins = |spelled: &str, start: &str| {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"t":{spelled}}}}}}}"#
        );
        let condition = format!(r#"params = {{ "/arguments/t" = {{ starts_with = '{start}' }} }}"#);
        Dialogue::rule(&condition, "\"block\"").asks(&message).starts_with("refuse")
    };
    for (spelled, start) in [
        (r#""hello""#, "hello"),
        (r#""h\u0065llo""#, "hell"),
        (r#""a\\b""#, r"a\b"),
        (r#""a\/b""#, "a/b"),
        (r#""é\n""#, "é"),
    ] {
        assert!(begins(spelled, start), "{spelled} {start}");
    }
    for (spelled, start) in
        [(r#""hell""#, "hello"), (r#""h\u0065llo""#, "hallo"), (r#""a\\b""#, r"a\\"), ("7", "7"), (r#""a\tb""#, r"a\t")]
    {
        assert!(!begins(spelled, start), "{spelled} {start}");
    }
}

/// Proves S-25 and SO-5.
#[test]
fn a_value_of_the_result_is_looked_at_in_answers_only() {
    for yes in [
        r#""/content/0/text" = { contains = "ell" }"#,
        r#""/n" = { exists = true }"#,
        r#""/n" = { equals = 1 }"#,
        r#""/content" = { is_array = true }"#,
        r#""/isError" = { exists = false }"#,
    ] {
        assert!(result(&format!("result = {{ {yes} }}")), "{yes}");
        assert!(!call(&format!("result = {{ {yes} }}")), "{yes}");
    }
    assert!(!result(r#"result = { "/content/1" = { exists = true } }"#));
}

/// Proves S-22.
#[test]
fn an_answer_can_be_judged_by_the_params_of_its_request() {
    assert!(result(r#"params = { "/arguments/text" = "hello" }, result = { "/n" = 1 }"#));
    assert!(!result(r#"params = { "/arguments/text" = "bye" }, result = { "/n" = 1 }"#));
}

/// Proves S-25 and SO-5.
#[test]
fn the_code_and_the_text_of_an_error() {
    for yes in ["code = -32050", "code = [1, -32050]", "contains = \"disk\"", "matches = \"full$\""] {
        assert!(error(&format!("error = {{ {yes} }}")), "{yes}");
        assert!(!result(&format!("error = {{ {yes} }}")), "{yes}");
    }
    for no in ["code = -32051", "contains = \"memory\"", "code = -32050, contains = \"memory\""] {
        assert!(!error(&format!("error = {{ {no} }}")), "{no}");
    }
}

/// Proves SO-5.
#[test]
fn backend_tool_principal_session_and_revision() {
    for yes in [
        r#"backend = "files""#,
        r#"backend = ["web", "f*"]"#,
        r#"tool = "echo""#,
        r#"tool = "e?h*""#,
        r#"subject = "echo""#,
        r#"principal = "local:*""#,
        r#"session = "s-1""#,
        r#"revision = "2025-06-18""#,
        r#"revision = ["2026-07-28", "2025-06-18"]"#,
    ] {
        assert!(call(yes), "{yes}");
        assert!(result(&format!("phase = \"response\", {yes}")), "{yes}");
    }
    for no in [
        r#"backend = "web""#,
        r#"tool = "echo2""#,
        r#"principal = "cert:*""#,
        r#"session = "s-2""#,
        r#"revision = "2026-07-28""#,
    ] {
        assert!(!call(no), "{no}");
    }
    let read = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}"#;
    assert!(fits(r#"subject = "file:///etc/*""#, |dialogue| dialogue.asks(read)));
    assert!(!fits(r#"tool = "*""#, |dialogue| dialogue.asks(read)), "a resource is no tool");
}

/// Proves SO-5.
#[test]
fn the_age_of_a_session() {
    let when = r#"session_age = { greater = "10m" }"#;
    assert!(!call(when));
    assert!(fits(when, |dialogue| {
        dialogue.later(601);
        dialogue.asks(CALL)
    }));
}

#[test]
fn phase_and_direction() {
    let told = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let from_client = |when: &str| fits(when, |dialogue| dialogue.notifies(Phase::FromClient, told));
    let from_backend = |when: &str| fits(when, |dialogue| dialogue.notifies(Phase::FromBackend, told));
    for (when, seen) in [
        (r#"phase = "request""#, [true, false, false, false]),
        (r#"phase = "response""#, [false, true, false, false]),
        (r#"phase = "notification""#, [false, false, true, true]),
        (r#"phase = ["request", "notification"]"#, [true, false, true, true]),
        (r#"direction = "from_client""#, [true, false, true, false]),
        (r#"direction = "from_backend""#, [false, true, false, true]),
        (r#"not = { phase = "request" }"#, [false, true, true, true]),
        (r#"phase = "notification", direction = "from_backend""#, [false, false, false, true]),
        // Who says neither is asked about requests, or about what it names.
        ("", [true, false, false, false]),
        (r#"method = "notifications/message""#, [false, false, true, true]),
        (r#"method = { starts_with = "notifications/" }"#, [false, false, true, true]),
    ] {
        assert_eq!([call(when), result(when), from_client(when), from_backend(when)], seen, "{when}");
    }
}

/// Proves S-25.
#[test]
fn and_or_and_not_go_into_each_other() {
    for (when, held) in [
        (r#"and = [{ tool = "echo" }, { backend = "files" }]"#, true),
        (r#"and = [{ tool = "echo" }, { backend = "web" }]"#, false),
        (r#"or = [{ tool = "x" }, { backend = "files" }]"#, true),
        (r#"or = [{ tool = "x" }, { backend = "web" }]"#, false),
        (r#"not = { tool = "x" }"#, true),
        (r#"not = { tool = "echo" }"#, false),
        (r#"not = { or = [{ tool = "x" }, { not = { backend = "files" } }] }, principal = "local:ada""#, true),
        (
            r#"or = [{ and = [{ tool = "echo" }, { session = "s-2" }] }, { method = "tools/call", not = { revision = "x" } }]"#,
            true,
        ),
    ] {
        assert_eq!(call(when), held, "{when}");
    }
}
