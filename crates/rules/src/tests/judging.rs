//! Order, rulings, what is written down, and judging again from it.

use super::*;
use crate::outside::Turn;
use crate::recorded_inputs::RecordedInputs;
use crate::recorded_verdict::{Lack, RecordedContext};
use crate::try_message::{AssumedContext, try_message, try_with};

/// Proves S-24 and S-27.
#[test]
fn rules_are_asked_by_priority_then_by_id_and_see_what_earlier_ones_made() {
    let add = |id: &str, priority: i32| {
        format!(
            "[[rules]]\nid = \"{id}\"\npriority = {priority}\nwhen = {{ tool = \"echo\" }}\nthen = {{ set = {{ \"/params/arguments/text\" = \"{{{{/params/arguments/text}}}} {id}\" }} }}\n"
        )
    };
    let text = [add("c", 0), add("b", 0), add("late", -5), add("early", 9), add("off", 99)].concat();
    let text = text.replace("id = \"off\"", "id = \"off\"\nenabled = false");
    let mut dialogue = Dialogue::new(&text);
    assert_eq!(dialogue.asks(CALL), format!("modify {}", CALL.replace("hello", "hello early b c late")));
    let order: Vec<_> = dialogue.rules.set().describe().into_iter().map(|row| row.id).collect();
    assert_eq!(order, ["off", "early", "b", "c", "late"]);
}

#[test]
fn a_rule_that_changes_the_tool_decides_which_rules_come_after() {
    let mut dialogue = Dialogue::new(
        r#"
        [[rules]]
        id = "a"
        when = { tool = "echo" }
        then = { set = { "/params/name" = "delete" } }
        [[rules]]
        id = "b"
        when = { tool = "delete" }
        then = { block = "no deleting" }
        "#,
    );
    assert_eq!(dialogue.asks(CALL), "refuse refused: no deleting");
}

#[test]
fn each_rule_that_matched_has_a_ruling_and_the_message_one_more() {
    let mut dialogue = Dialogue::new(
        r#"
        [[rules]]
        id = "a"
        when = { tool = "nope" }
        then = "block"
        [[rules]]
        id = "b"
        when = { tool = "e*", or = [{ backend = "web" }, { params = { "/arguments/n" = { greater = 2 } } }] }
        then = [{ log = "x" }, { set = { "/params/arguments/n" = 1 } }]
        [[rules]]
        id = "c"
        when = { not = { backend = "files" } }
        then = "block"
        "#,
    );
    assert!(dialogue.asks(CALL).starts_with("log info x | modify"));
    let [matched, whole] = &*dialogue.rulings else { panic!("{:?}", dialogue.rulings) };
    assert_eq!(matched.rule.as_deref(), Some("b"));
    assert_eq!((matched.verdict, matched.detail.as_str()), ("modify", "logged: x; set /params/arguments/n"));
    let conditions: Vec<_> = matched.conditions.iter().map(|(words, held)| format!("{words}: {held}")).collect();
    assert_eq!(
        conditions,
        ["tool is e*: true", "backend is web: false", "/params/arguments/n is greater than 2: true"]
    );
    let set = dialogue.rules.set();
    assert_eq!((whole.rule.as_deref(), whole.verdict), (None, "modify"));
    assert_eq!(whole.inputs, [("rules", set.version().to_owned()), ("outcomes", "5:58".to_owned())]);
    let retraced = set.retrace(Phase::Request, Some("tools/call"), None, "5:58").unwrap();
    let told: Vec<_> = retraced.iter().map(|rule| (&*rule.rule, rule.matched, rule.conditions.len())).collect();
    assert_eq!(told, [("a", false, 1), ("b", true, 3), ("c", false, 1)]);
    assert_eq!(set.retrace(Phase::Request, Some("tools/call"), None, "6:58"), None);
    assert_eq!(set.retrace(Phase::Request, Some("tools/call"), None, "9:5800"), None);
}

/// The rules of the last message's rulings, in order.
fn told(dialogue: &Dialogue) -> Vec<&str> {
    dialogue.rulings.iter().map(|ruling| ruling.rule.as_deref().unwrap_or("whole")).collect()
}

/// Proves S-56 and S-65.
#[test]
fn what_only_counting_rules_say_of_one_kind_of_message_is_made_once_and_shared() {
    let mut dialogue = Dialogue::new(
        r#"
        [[rules]]
        id = "a"
        when = { method = "tools/call" }
        then = [{ count = "calls" }, { count = "all" }]
        [[rules]]
        id = "b"
        when = { params = { "/arguments/text" = { starts_with = "stop" } } }
        then = { set = { "/params/arguments/text" = "go" } }
        [[rules]]
        id = "c"
        when = { or = [{ params = { "/arguments/text" = "go" } }, { params = { "/arguments/n" = 3 } }] }
        then = { count = "threes" }
        "#,
    );
    let counted = "count calls | count all | count threes | pass";
    assert_eq!(dialogue.asks(CALL), counted);
    let (first, words) = (dialogue.rulings.clone(), format!("{:?}", dialogue.rulings));
    assert_eq!(told(&dialogue), ["a", "c", "whole"]);
    assert_eq!(dialogue.asks(CALL), counted);
    let (Rulings::Many(first), Rulings::Many(second)) = (&first, &dialogue.rulings) else { panic!("{words}") };
    assert!(Arc::ptr_eq(first, second), "they share it");

    let stopped = CALL.replace("hello", "stop it");
    let changed = format!("count calls | count all | count threes | modify {}", CALL.replace("hello", "go"));
    assert_eq!(dialogue.asks(&stopped), changed);
    assert_eq!(told(&dialogue), ["a", "b", "c", "whole"], "in the order in which they were asked");
    let conditions = |dialogue: &Dialogue| dialogue.ruling("c").unwrap().conditions.len();
    assert_eq!(conditions(&dialogue), 1, "the first of the two was enough");

    let other = CALL.replace("\"n\":3", "\"n\":4");
    assert_eq!(dialogue.asks(&other), "count calls | count all | pass");
    assert_eq!(told(&dialogue), ["a", "whole"]);
    assert_eq!(dialogue.asks(CALL), counted);
    assert_eq!(format!("{:?}", dialogue.rulings), words, "whatever came between");
    assert_eq!(conditions(&dialogue), 2);
}

/// Proves S-56.
#[test]
fn what_no_rule_can_fit_leaves_nothing_behind() {
    let mut dialogue = Dialogue::rule(r#"method = "tools/call", tool = "x""#, "\"block\"");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(dialogue.asks(ping), "pass");
    assert!(dialogue.rulings.is_empty());
    assert_eq!(dialogue.asks(CALL), "pass");
    assert_eq!(dialogue.rulings.len(), 1, "it was looked at, and that is all");
    let mut none = Dialogue::new("");
    assert_eq!(none.asks(CALL), "pass");
    assert!(none.rulings.is_empty());
}

/// The front takes a batch apart, so the rules see its messages one after the other.
/// Proves S-27.
#[test]
fn messages_of_a_batch_are_judged_one_by_one_in_order() {
    let mut dialogue = Dialogue::rule(r#"tool = "echo""#, "{ mock = { list = [{ n = 1 }, { n = 2 }, { n = 3 }] } }");
    let batch: Vec<_> = (1..4).map(|id| dialogue.asks(&CALL.replace("\"id\":7", &format!("\"id\":{id}")))).collect();
    assert_eq!(batch, [r#"reply {"n":1}"#, r#"reply {"n":2}"#, r#"reply {"n":3}"#]);
}

/// Proves SO-14.
#[test]
fn counters_and_caches_outlive_a_reload_for_as_long_as_the_rule_is_there() {
    let text = r#"
        [[rules]]
        id = "limit"
        when = { tool = "echo" }
        then = { rate_limit = { limit = 1, per = "1h" } }
    "#;
    let over = "refuse overloaded: more than 1 in 3600s; try again in 3600 s";
    let mut dialogue = Dialogue::new(text);
    assert_eq!(dialogue.asks(CALL), "pass");
    dialogue.rules.replace(
        RuleSet::parse("again", &format!("{text}\n[[rules]]\nid = \"z\"\nthen = {{ count = \"z\" }}")).unwrap(),
    );
    assert_eq!(dialogue.asks(CALL), over);
    dialogue.rules.replace(RuleSet::default());
    assert_eq!(dialogue.asks(CALL), "pass");
    dialogue.rules.replace(RuleSet::parse("again", text).unwrap());
    assert_eq!(dialogue.asks(CALL), "pass", "a rule that was gone starts anew");
}

#[test]
fn a_verdict_is_computed_again_from_what_was_written_down() {
    let text = r#"
        [[rules]]
        id = "limit"
        priority = 2
        when = { tool = "echo" }
        then = [{ rate_limit = { limit = 1, per = "1h" } }, { cache = { ttl = "1h" } }]
        [[rules]]
        id = "mock"
        when = { tool = "echo" }
        then = { mock = { random = [{ n = 1 }, { n = 2 }, { n = 3 }, { n = 4 }, { at = "${unix_ms}" }] } }
    "#;
    let mut dialogue = Dialogue::new(text);
    let set = dialogue.rules.set();
    for _ in 0..2 {
        let live = dialogue.asks(CALL);
        let inputs =
            dialogue.rulings.iter().filter(|ruling| ruling.rule.is_some()).flat_map(|ruling| ruling.inputs.clone());
        let played = RecordedInputs::new(inputs.map(|(kind, text)| (kind.to_owned(), text)).collect::<Vec<_>>());
        let supposed = AssumedContext { principal: "local:ada".to_owned(), unix_ms: 5, ..AssumedContext::default() };
        let again = try_with(&set, CALL.as_bytes(), &supposed, dialogue.now, &played).unwrap();
        assert_eq!(dialogue.verdict(again.verdict, &envelope(CALL), Phase::Request), live);
        assert_eq!(played.missing(), 0);
        let compared: Vec<_> =
            again.rulings.iter().map(|ruling| (&ruling.rule, ruling.verdict, &ruling.inputs)).collect();
        let first: Vec<_> =
            dialogue.rulings.iter().map(|ruling| (&ruling.rule, ruling.verdict, &ruling.inputs)).collect();
        assert_eq!(compared, first);
    }
    let nothing = RecordedInputs::new([]);
    try_with(&set, CALL.as_bytes(), &AssumedContext::default(), dialogue.now, &nothing).unwrap();
    assert_eq!(nothing.missing(), 3);
}

#[test]
fn one_message_can_be_tried_without_a_gateway() {
    let set = RuleSet::parse(
        "rules.toml",
        r#"
        [[rules]]
        id = "out"
        when = { tool = "files__*", principal = "local:*", params = { "/arguments/text" = "hello" }, result = { "/n" = 1 } }
        then = { set = { "/result/n" = 2 } }
        "#,
    )
    .unwrap();
    let supposed = AssumedContext {
        request: Some(Bytes::from_static(CALL.as_bytes())),
        tool: Some("files__echo".to_owned()),
        principal: "local:ada".to_owned(),
        ..AssumedContext::default()
    };
    let tried = try_message(&set, RESULT.as_bytes(), &supposed, Instant::now()).unwrap();
    let Verdict::Modify(message) = tried.verdict else { panic!("{:?}", tried.verdict) };
    assert_eq!(text(message.bytes()), RESULT.replace("\"n\":1", "\"n\":2"));
    assert_eq!(tried.rulings[0].conditions.len(), 4);
    assert!(try_message(&set, b"{", &supposed, Instant::now()).is_err());
}

/// Proves SO-14.
#[test]
fn a_message_that_would_take_too_long_to_judge_is_refused() {
    let mut text = String::new();
    for number in 0..300 {
        text.push_str(&format!("[[rules]]\nid = \"r{number}\"\nwhen = {{ params = {{ \"/arguments/text\" = {{ contains = \"x{number}\" }} }} }}\nthen = \"block\"\n"));
    }
    let mut dialogue = Dialogue::new(&text);
    let large = CALL.replace("hello", &"y".repeat(1024 * 1024));
    assert!(dialogue.asks(&large).starts_with("refuse overloaded: the rules would have to read more than"));
    assert_eq!(dialogue.asks(CALL), "pass");
}

/// Proves S-22.
#[test]
fn notifications_can_be_changed_and_dropped() {
    let told = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"secret"}}"#;
    let mut dialogue = Dialogue::rule(
        r#"method = "notifications/message", params = { "/data" = { contains = "secret" } }, direction = "from_backend""#,
        r#"{ set = { "/params/data" = "***" } }"#,
    );
    assert_eq!(dialogue.notifies(Phase::FromBackend, told), format!("modify {}", told.replace("secret", "***")));
    assert_eq!(dialogue.notifies(Phase::FromClient, told), "pass");
    let mut dialogue = Dialogue::rule(r#"method = "notifications/message""#, "\"block\"");
    assert_eq!(dialogue.notifies(Phase::FromBackend, told), "refuse refused: rule `r` does not let this pass");
}

/// A rule that needs the request with the answer is not passed by filling its memory.
#[test]
fn a_request_that_cannot_be_remembered_for_its_answer_is_refused() {
    let mut dialogue = Dialogue::rule(
        r#"tool = "read", params = { "/arguments/path" = "secret" }, result = { "/content" = { exists = true } }"#,
        r#"{ block = "no" }"#,
    );
    let call = |path: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"read","arguments":{{"path":"{path}"}}}}}}"#
        )
    };
    let large = "x".repeat(crate::limits::REMEMBERED_BYTES - 1000);
    assert_eq!(dialogue.asks(&call(&large)), "pass");
    let said = (0..20).map(|_| dialogue.asks(&call("secret"))).last().unwrap();
    assert!(said.starts_with("refuse") && said.contains("too many calls are waiting"), "{said}");
}

/// What fills one hole of a key cannot take part of what fills another.
#[test]
fn keys_with_holes_do_not_collide() {
    let mut dialogue = Dialogue::rule(
        r#"tool = "t""#,
        r#"{ cache = { key = "{{/params/arguments/a}}-{{/params/arguments/b}}", ttl = "1h" } }"#,
    );
    let call = |a: &str, b: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"a":{a},"b":{b}}}}}}}"#
        )
    };
    assert_eq!(dialogue.asks(&call(r#""x-y""#, r#""z""#)), "pass");
    dialogue.answers(RESULT);
    for (a, b) in [(r#""x""#, r#""y-z""#), (r#""x-y-z""#, "null"), (r#""x\"-\"y""#, r#""z""#)] {
        assert_eq!(dialogue.asks(&call(a, b)), "pass", "{a} {b}");
    }
    assert!(dialogue.asks(&call(r#""x-y""#, r#""z""#)).starts_with("reply"));
}

/// A limit for a tool counts all names of it.
#[test]
fn a_limit_counts_a_tool_under_all_its_names() {
    let mut dialogue =
        Dialogue::rule(r#"method = "tools/call""#, r#"{ rate_limit = { key = "${tool}", limit = 2, per = "1h" } }"#);
    let call = |tool: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#);
    assert_eq!(dialogue.asks(&call("read")), "pass");
    assert_eq!(dialogue.asks(&call("files__read")), "pass");
    assert!(dialogue.asks(&call("read")).starts_with("refuse"));
}

#[test]
fn every_use_of_shared_state_tells_its_turn() {
    let text = r#"
        [[rules]]
        id = "limit"
        priority = 2
        when = { tool = "echo" }
        then = [{ rate_limit = { limit = 9, per = "1h" } }, { cache = { ttl = "1h" } }]
    "#;
    let mut dialogue = Dialogue::new(text);
    let turns = |dialogue: &Dialogue| -> Vec<Turn> {
        let inputs = dialogue.rulings.iter().flat_map(|ruling| &ruling.inputs);
        inputs.filter(|(kind, _)| *kind == "turn").filter_map(|(_, text)| Turn::parse(text)).collect()
    };
    dialogue.asks(CALL);
    let asked = turns(&dialogue);
    assert_eq!(asked.iter().map(|turn| turn.number).collect::<Vec<_>>(), [0, 1]);
    dialogue.later(5);
    dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{"n":1}}"#);
    let kept = turns(&dialogue);
    assert_eq!(kept.iter().map(|turn| turn.number).collect::<Vec<_>>(), [2]);
    assert_eq!(kept[0].since - asked[0].since, 5_000_000_000);
    assert_eq!(dialogue.ruling("limit").unwrap().verdict, "cached");
    dialogue.asks(CALL);
    dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{"n":1}}"#);
    assert!(turns(&dialogue).is_empty(), "nothing is kept of an answer that came from the cache");
}

#[test]
fn a_recorded_message_is_judged_with_what_the_tape_says_and_nothing_is_guessed() {
    let text = r#"
        [[rules]]
        id = "chance"
        priority = 3
        when = { tool = "echo" }
        then = { fault = { kind = "error", probability = 0.5 } }
        [[rules]]
        id = "seeded"
        priority = 2
        when = { tool = "echo" }
        then = { fault = { kind = "error", probability = 0.5, seed = 7 } }
        [[rules]]
        id = "word"
        when = { tool = "echo", params = { "/arguments/text" = "hello" } }
        then = { block = "no" }
    "#;
    let mut dialogue = Dialogue::new(text);
    let high = u64::MAX.to_string();
    let inputs = vec![("chance", "random", &*high), ("seeded", "random", &*high)];
    let message = envelope(CALL);
    let judged = |dialogue: &mut Dialogue, recorded: RecordedContext<'_>| {
        dialogue.with_case(Phase::Request, &message, |rules, case| rules.judge_recorded(case, None, recorded))
    };
    let again = judged(&mut dialogue, RecordedContext { inputs: inputs.clone(), hides: None });
    assert!(again.lacks.is_empty() && matches!(again.judgement.verdict, Verdict::Refuse(_)), "{again:?}");
    let hides = |value: Option<&[u8]>| value == Some(b"\"hello\"");
    let hidden = judged(&mut dialogue, RecordedContext { inputs, hides: Some(&hides) });
    assert_eq!(hidden.lacks, [Lack::HiddenValue]);
    let nothing = judged(&mut dialogue, RecordedContext::default());
    assert_eq!(nothing.lacks, [Lack::Draw("chance".into())], "the seeded one draws the next number of its row");
}
