//! Messages that wait: for a person, for a web address, for time to pass.

use super::*;

const TWO: &str = r#"
    [[rules]]
    id = "first"
    priority = 3
    when = { tool = "echo" }
    then = [{ count = "first" }, { set = { "/params/arguments/n" = 4 } }, { hold = { reason = "look at ${tool}", within = "30s" } }, { log = "behind" }]
    [[rules]]
    id = "second"
    priority = 2
    when = { params = { "/arguments/n" = 4 } }
    then = { log = "second saw 4" }
    [[rules]]
    id = "third"
    priority = 1
    when = { params = { "/arguments/n" = 5 } }
    then = { log = "third saw 5" }
"#;

/// Proves S-23 and SO-6.
#[test]
fn a_held_message_goes_on_where_it_stood_and_no_rule_runs_twice() {
    let mut dialogue = Dialogue::new(TWO);
    let changed = CALL.replace("\"n\":3", "\"n\":4");
    assert_eq!(dialogue.asks(CALL), format!("count first | hold 30s look at echo {changed}"));
    assert_eq!(
        dialogue.hears(&HoldAnswer::GoOn { by: somebody("eve") }),
        "log info behind | log info second saw 4 | pass"
    );
    assert_eq!(dialogue.inputs(), ["person: released by eve"]);
}

#[test]
fn a_person_may_edit_answer_or_refuse_what_is_held() {
    let mut dialogue = Dialogue::new(TWO);
    dialogue.asks(CALL);
    let edited = CALL.replace("\"n\":3", "\"n\":5").replace("\"id\":7", "\"id\":\"forged\"");
    let said = dialogue.hears(&HoldAnswer::Edited { by: somebody("eve"), message: Bytes::from(edited) });
    let sent = CALL.replace("\"n\":3", "\"n\":5");
    assert_eq!(
        said,
        format!("log info behind | log info third saw 5 | modify {sent}"),
        "the id stays that of the request"
    );
    assert_eq!(dialogue.ruling("first").unwrap().verdict, "modify");

    dialogue.asks(CALL);
    let result = Bytes::from_static(b"{\"content\":[]}");
    assert_eq!(dialogue.hears(&HoldAnswer::Result { by: somebody("eve"), result }), r#"reply {"content":[]}"#);

    dialogue.asks(CALL);
    let refused = HoldAnswer::Refused { by: somebody("eve"), reason: "not today".to_owned() };
    assert_eq!(dialogue.hears(&refused), "refuse refused: refused by eve: not today");
    assert_eq!(dialogue.inputs(), ["person: refused by eve", "reason: not today"]);
}

#[test]
fn what_a_person_writes_is_checked_like_anything_from_outside() {
    for bad in ["", "{", "[]", RESULT, r#"{"jsonrpc":"2.0","id":7,"method":"a","method":"b"}"#] {
        let mut dialogue = Dialogue::new(TWO);
        dialogue.asks(CALL);
        let said = dialogue.hears(&HoldAnswer::Edited { by: None, message: Bytes::from_static(bad.as_bytes()) });
        assert!(said.starts_with("refuse internal: the edited message cannot be used"), "{bad}: {said}");
    }
    let mut dialogue = Dialogue::new(TWO);
    dialogue.asks(CALL);
    let said = dialogue.hears(&HoldAnswer::Result { by: None, result: Bytes::from_static(b"[") });
    assert_eq!(said, "refuse internal: the given result is not a JSON object");
}

#[test]
fn a_hold_that_nobody_answers_ends_as_its_rule_says() {
    let mut strict = Dialogue::rule(r#"tool = "echo""#, r#"{ hold = "look" }"#);
    assert_eq!(strict.asks(CALL), "hold 50s look");
    assert_eq!(
        strict.hears(&HoldAnswer::Expired),
        "refuse hold_expired: rule `r` held this, and no answer came in 50s"
    );
    let mut lenient = Dialogue::rule(r#"tool = "echo""#, r#"{ hold = { on_expiry = "release" } }, { count = "on" }"#);
    assert_eq!(lenient.asks(CALL), "hold 50s rule `r` holds tools/call echo");
    assert_eq!(lenient.hears(&HoldAnswer::Expired), "count on | pass");
}

#[test]
fn answers_are_held_too_and_notifications_never_are() {
    let mut dialogue = Dialogue::rule(r#"result = { "/n" = 1 }"#, r#"{ hold = "look" }"#);
    dialogue.asks(CALL);
    assert_eq!(dialogue.answers(RESULT), "hold 50s look");
    let edited = Bytes::from(RESULT.replace("hello", "bye"));
    assert_eq!(
        dialogue.hears(&HoldAnswer::Edited { by: None, message: edited }),
        format!("modify {}", RESULT.replace("hello", "bye"))
    );
    let told = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    let then = r#"{ hold = "look" }, { delay = "1s" }, { count = "on" }"#;
    let mut dialogue = Dialogue::rule(r#"phase = ["request", "notification"]"#, then);
    assert_eq!(dialogue.notifies(Phase::FromBackend, told), "count on | pass");
}

fn asked(dialogue: &mut Dialogue, status: u16, body: &str) -> String {
    assert!(dialogue.asks(CALL).starts_with("ask http://x.test/ 1s {\"version\":1,"));
    dialogue.hears(&HoldAnswer::Webhook { status, body: Bytes::copy_from_slice(body.as_bytes()) })
}

fn hook(on_failure: &str) -> Dialogue {
    let then = format!(
        r#"{{ webhook = {{ url = "http://x.test/", timeout = "1s", wait = true, on_failure = "{on_failure}" }} }}, {{ count = "on" }}"#
    );
    Dialogue::rule(r#"tool = "echo""#, &then)
}

/// Proves S-26 and S-54.
#[test]
fn a_webhook_may_give_any_verdict() {
    let mut dialogue = hook("block");
    assert_eq!(asked(&mut dialogue, 204, ""), "count on | pass");
    assert_eq!(asked(&mut dialogue, 200, r#"{"verdict":"pass"}"#), "count on | pass");
    assert_eq!(dialogue.inputs(), [r#"webhook: 200 {"verdict":"pass"}"#]);
    let other = CALL.replace("hello", "bye");
    assert_eq!(
        asked(&mut dialogue, 200, &format!(r#"{{"verdict":"modify","message":{other}}}"#)),
        format!("count on | modify {other}")
    );
    assert_eq!(asked(&mut dialogue, 200, r#"{"verdict":"reply","result":{"a":1}}"#), r#"reply {"a":1}"#);
    assert_eq!(
        asked(&mut dialogue, 200, r#"{"verdict":"error","error":{"code":-1,"message":"no"}}"#),
        r#"error {"code":-1,"message":"no"}"#
    );
    assert_eq!(asked(&mut dialogue, 200, r#"{"verdict":"refuse","reason":"no way"}"#), "refuse refused: no way");
    assert!(dialogue.ruling("r").unwrap().quotes, "the reason may quote the message that the webhook was sent");
}

#[test]
fn a_webhook_that_fails_or_lies_blocks_or_is_passed_over_as_its_rule_says() {
    let refused = "refuse refused: the webhook of rule `r` gave no usable answer";
    for (status, bad) in [
        (500, ""),
        (302, ""),
        (200, "yes"),
        (200, "{}"),
        (200, r#"{"verdict":"maybe"}"#),
        (200, r#"{"verdict":"modify"}"#),
        (200, r#"{"verdict":"modify","message":{"jsonrpc":"2.0","id":7,"result":{}}}"#),
        (200, r#"{"verdict":"reply","result":7}"#),
        (200, r#"{"verdict":"error","error":{"code":"x","message":"no"}}"#),
        (200, r#"{"verdict":"pass","verdict":"refuse"}"#),
    ] {
        assert_eq!(asked(&mut hook("block"), status, bad), refused, "{bad}");
        assert_eq!(asked(&mut hook("allow"), status, bad), "count on | pass", "{bad}");
    }
    let mut dialogue = hook("block");
    dialogue.asks(CALL);
    assert_eq!(dialogue.hears(&HoldAnswer::Failed("connection refused".to_owned())), refused);
    assert_eq!(dialogue.ruling("r").unwrap().detail, "http://x.test/: connection refused");
    let mut dialogue = hook("allow");
    dialogue.asks(CALL);
    assert_eq!(dialogue.hears(&HoldAnswer::Expired), "count on | pass");
}

/// A webhook that could not be asked for want of room has not failed, and its rule is not passed over.
#[test]
fn a_webhook_that_had_no_turn_refuses_whatever_its_rule_says() {
    for on_failure in ["block", "allow"] {
        let mut dialogue = hook(on_failure);
        dialogue.asks(CALL);
        assert_eq!(
            dialogue.hears(&HoldAnswer::Overloaded("too many".to_owned())),
            "refuse overloaded: rule `r` asks a webhook about this: too many"
        );
        assert_eq!(dialogue.inputs(), ["webhook: overloaded too many"]);
    }
}

/// Proves SO-14.
#[test]
fn a_held_message_goes_on_under_the_rules_that_held_it() {
    let mut dialogue = Dialogue::new(TWO);
    dialogue.asks(CALL);
    dialogue.rules.replace(RuleSet::parse("other.toml", "[[rules]]\nid = \"all\"\nthen = \"block\"").unwrap());
    assert_eq!(dialogue.hears(&HoldAnswer::GoOn { by: None }), "log info behind | log info second saw 4 | pass");
    assert_eq!(dialogue.asks(CALL), "refuse refused: rule `all` does not let this pass");

    dialogue.rules.replace(RuleSet::parse("rules.toml", TWO).unwrap());
    dialogue.asks(CALL);
    for _ in 0..crate::limits::VERSIONS {
        dialogue.rules.replace(RuleSet::default());
    }
    assert!(
        dialogue.hears(&HoldAnswer::GoOn { by: None }).starts_with("refuse refused: the rules that held this message")
    );
}

/// Proves S-22.
#[test]
fn a_webhook_that_is_asked_about_an_answer_sees_the_request_that_its_rule_reads() {
    let mut dialogue = Dialogue::rule(
        r#"phase = "response", params = { "/arguments/text" = "hello" }"#,
        r#"{ webhook = { url = "http://x.test/", wait = true } }"#,
    );
    assert_eq!(dialogue.asks(CALL), "pass");
    let said = dialogue.answers(RESULT);
    assert!(said.ends_with(&format!(r#""request":{CALL},"message":{RESULT}}}"#)), "{said}");
    let body = format!(r#"{{"verdict":"modify","message":{ERROR}}}"#).replace("\"id\":7", "\"id\":8");
    assert_eq!(
        dialogue.hears(&HoldAnswer::Webhook { status: 200, body: Bytes::from(body) }),
        format!("modify {ERROR}")
    );
}
