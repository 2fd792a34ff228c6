//! The governed dialect at the front machine.

use super::super::*;
use super::dialogue::Dialogue;
use serde_json::{Value, json};

const INVOKE: &str =
    r#"{"jsonrpc":"2.0","id":"2","method":"tools/invoke","params":{"tool_id":"one","parameters":{"a":1.0}}}"#;

/// The one answer among what was said.
fn answer(said: &[String]) -> Value {
    let [one] = said else { panic!("{said:?}") };
    serde_json::from_str(one.strip_prefix("< ").unwrap_or_else(|| panic!("{one}"))).unwrap()
}

/// Proves G-5, G-7 and G-43.
#[test]
fn an_invocation_is_a_call_inside_and_its_answer_is_the_dialects() {
    for mode in [Mode::Pipe, Mode::Stateless] {
        let mut dialogue = Dialogue::new(mode);
        if mode == Mode::Stateless {
            dialogue.machine.speak_dialect();
        }
        dialogue.says(INVOKE);
        let call: Value = serde_json::from_slice(dialogue.calls[0].1.envelope.bytes()).unwrap();
        assert_eq!((&call["method"], &call["params"]["name"]), (&json!("tools/call"), &json!("one")));
        assert_eq!(dialogue.machine.exchanges()[0].method, "tools/call");
        let said = dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}"#);
        let answer = answer(&said);
        assert_eq!((&answer["id"], &answer["result"]["data"]), (&json!("2"), &json!("hi")));
        assert_eq!(answer["result"]["security_context"]["audit_id"], "audit-0-1");
    }
}

/// Proves G-4.
#[test]
fn a_list_of_the_dialect_is_filtered_and_whoever_began_with_it_goes_on_so() {
    let mut dialogue = Dialogue::new(Mode::Pipe);
    let list = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":"1","method":"tools/list","params":{params}}}"#);
    let listed = |said: &[String]| answer(said)["result"]["tools"].as_array().unwrap().len();
    assert_eq!(listed(&dialogue.says(&list(r#"{"trust_level":"verified"}"#))), 0);
    assert_eq!(listed(&dialogue.says(&list("{}"))), 3);
    let hello = answer(&dialogue.says(r#"{"jsonrpc":"2.0","id":"3","method":"initialize","params":{}}"#));
    assert_eq!(hello["error"]["data"]["error_code"], "invalid_method");
}

/// Proves G-9.
#[test]
fn what_has_no_exchange_is_refused_in_the_dialects_shape_too() {
    let mut dialogue = Dialogue::new(Mode::Pipe);
    dialogue.says(INVOKE);
    let twice = answer(&dialogue.says(INVOKE));
    assert_eq!(twice["error"]["data"]["error_code"], "invalid_message");
    assert_eq!(twice["error"]["data"]["security_context"]["audit_id"], Value::Null);
    let fault = Fault::new(FaultKind::BackendDown, "gone");
    let exchange = dialogue.machine.exchanges()[0].id;
    let failed = answer(&dialogue.event(Event::Failed { exchange, fault }));
    assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!("2"), &json!(-32601)));
    assert_eq!(failed["error"]["data"]["error_type"], "tool_error");
}

#[test]
fn a_client_of_mcp_stays_one() {
    let mut dialogue = Dialogue::operational();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"category":"x"}}"#;
    assert!(answer(&dialogue.says(list))["result"]["tools"][0]["name"].is_string());
    let refused = answer(&dialogue.says(INVOKE));
    assert_eq!(refused["error"]["data"]["reason"], "method_not_found");
}

/// Proves G-13 and G-14.
#[test]
fn a_call_can_be_validated_without_being_made() {
    let mut dialogue = Dialogue::new(Mode::Pipe);
    let validate = |tool: &str| {
        let params = format!(r#"{{"tool_id":"{tool}","parameters":{{"a":1}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":"4","method":"tools/validate","params":{params}}}"#)
    };
    let granted = answer(&dialogue.says(&validate("one")));
    let expected = json!({"tool_id": "one", "granted": true, "constraints": [], "audit_context": {
        "audit_id": "audit-0-1", "user_id": "anonymous", "session_id": "s1", "permissions": []}});
    assert_eq!(granted["result"], expected);
    let unknown = answer(&dialogue.says(&validate("nope")));
    let data = &unknown["error"]["data"];
    assert_eq!(
        (&data["error_code"], &unknown["error"]["message"]),
        (&json!("tool_not_found"), &json!("Tool validation failed"))
    );
    assert!(dialogue.calls.is_empty());
}
