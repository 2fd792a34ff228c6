//! Each action, over a message that its rule matches.

use super::*;

const ECHO: &str = r#"tool = "echo""#;

fn call(then: &str) -> String {
    Dialogue::rule(ECHO, then).asks(CALL)
}

fn answer(then: &str, json: &str) -> String {
    let mut dialogue = Dialogue::rule(r#"tool = "echo", phase = "response""#, then);
    assert_eq!(dialogue.asks(CALL), "pass");
    dialogue.answers(json)
}

/// Proves S-23 and S-26.
#[test]
fn allow_ends_the_walk() {
    let mut dialogue = Dialogue::new(
        r#"
        [[rules]]
        id = "friends"
        priority = 2
        when = { principal = "local:ada" }
        then = [{ set = { "/params/arguments/n" = 4 } }, "allow", { log = "never said" }]
        [[rules]]
        id = "all"
        priority = 1
        then = "block"
        "#,
    );
    assert_eq!(dialogue.asks(CALL), format!("modify {}", CALL.replace("\"n\":3", "\"n\":4")));
    assert_eq!(dialogue.ruling("friends").unwrap().verdict, "allow");
    assert_eq!(dialogue.ruling("all"), None);
    dialogue.caller = caller("local:bob");
    assert_eq!(dialogue.asks(CALL), "refuse refused: rule `all` does not let this pass");
}

/// Proves S-23 and S-26.
#[test]
fn block_refuses_with_a_message_and_where_wanted_a_code() {
    assert_eq!(call(r#""block""#), "refuse refused: rule `r` does not let this pass");
    assert_eq!(call("{ block = true }"), "refuse refused: rule `r` does not let this pass");
    assert_eq!(call(r#"{ block = "no ${tool} for ${principal}" }"#), "refuse refused: no echo for local:ada");
    assert_eq!(
        call(r#"{ block = { message = "no \"echo\"", code = -32099 } }"#),
        r#"error {"code":-32099,"message":"no \"echo\"","data":{"reason":"refused","rule":"r"}}"#
    );
}

/// Proves S-23, S-26 and SO-5.
#[test]
fn set_and_remove_change_one_place_and_keep_every_other_byte() {
    assert_eq!(
        call(r#"{ set = { "/params/arguments/n" = 10, "/params/arguments/deep/er" = ["{{/params/name}}", true] } }"#),
        format!(
            "modify {}",
            CALL.replace("\"n\":3", "\"n\":10").replace("null}", r#"null,"deep":{"er":["echo",true]}}"#)
        )
    );
    assert_eq!(
        call(r#"{ remove = ["/params/arguments/list", "/params/arguments/not there"] }"#),
        format!("modify {}", CALL.replace(r#","list":[1,"two"]"#, ""))
    );
    assert_eq!(call(r#"{ remove = "/params/arguments/not there" }"#), "pass");
    assert_eq!(call(r#"{ set = { "/params/name/x" = 1 } }"#), "pass", "a text has no members");
    assert_eq!(
        answer(r#"{ set = { "/result/content/0/text" = "{{/result/n}} and ${tool}" } }"#, RESULT),
        format!("modify {}", RESULT.replace("\"hello\"", "\"1 and echo\""))
    );
    assert_eq!(answer(r#"{ remove = "/result/n" }"#, RESULT), format!("modify {}", RESULT.replace(",\"n\":1", "")));
}

/// Proves S-26.
#[test]
fn replace_gives_other_params_or_another_result() {
    assert_eq!(
        call(r#"{ replace_params = { name = "echo", arguments = { was = "{{/params/arguments}}" } } }"#),
        format!(
            "modify {}",
            CALL.replace(r#""arguments":{"#, r#""arguments":{"was":{"#).replace("null}}}", "null}}}}")
        )
    );
    assert_eq!(
        answer(r#"{ replace_result = { content = [] } }"#, RESULT),
        r#"modify {"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#
    );
    assert_eq!(
        answer(r#"{ replace_result = { content = [] } }"#, ERROR),
        r#"modify {"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#
    );
    let mut dialogue = Dialogue::rule(r#"phase = "response""#, "{ replace_result = { content = [] } }");
    dialogue.revision = Some("2026-07-28".to_owned());
    dialogue.asks(CALL);
    assert_eq!(
        dialogue.answers(RESULT),
        r#"modify {"jsonrpc":"2.0","id":7,"result":{"content":[],"resultType":"complete"}}"#
    );
}

/// Proves S-26.
#[test]
fn error_answers_with_an_error_object() {
    assert_eq!(
        call(r#"{ error = { code = -32001, message = "not ${tool}", data = { n = "{{/params/arguments/n}}" } } }"#),
        r#"error {"code":-32001,"message":"not echo","data":{"n":3}}"#
    );
    assert_eq!(answer(r#"{ error = { code = 5, message = "no" } }"#, RESULT), r#"error {"code":5,"message":"no"}"#);
}

/// Proves S-23 and S-26.
#[test]
fn delay_waits_a_fixed_or_a_drawn_time() {
    assert_eq!(call(r#"{ delay = "200ms" }"#), "pause 200ms");
    let mut dialogue = Dialogue::rule(ECHO, r#"{ delay = { between = ["100ms", "300ms"] } }"#);
    let said = dialogue.asks(CALL);
    let time: f64 = said.strip_prefix("pause ").unwrap().strip_suffix("ms").unwrap().parse().unwrap();
    assert!((100.0..=300.0).contains(&time), "{said}");
    assert!(dialogue.inputs()[0].starts_with("random: "), "{:?}", dialogue.inputs());
    assert_eq!(dialogue.hears(&HoldAnswer::GoOn { by: None }), "pass");
}

/// Proves S-23, S-26 and SO-5.
#[test]
fn fork_log_count_and_a_told_webhook_are_done_besides() {
    assert_eq!(call(r#"{ fork = "shadow" }"#), format!("fork shadow {CALL} | pass"));
    assert_eq!(
        call(r#"{ log = "${method} ${tool} {{/params/arguments/list/1}} $${x} {{y}}" }"#),
        "log info tools/call echo two ${x} {{y}} | pass"
    );
    assert_eq!(
        call(r#"{ log = { level = "warning", text = "${rule} at ${unix_ms}" } }, { count = "calls.echo" }"#),
        "log warning r at 1700000000000 | count calls.echo | pass"
    );
    assert_eq!(
        call(r#"{ webhook = { url = "https://x.test/hook", timeout = "2s" } }"#),
        format!(
            r#"tell https://x.test/hook 2s {{"version":1,"rule":{{"id":"r","name":"r"}},"phase":"request","exchange":{{"method":"tools/call","subject":"echo","backend":"files","principal":"local:ada","session":"s-1","revision":"2025-06-18","session_age_ms":0,"unix_ms":1700000000000}},"message":{CALL}}} | pass"#
        )
    );
}

/// Proves SO-6.
#[test]
fn mock_answers_always_in_turn_or_at_random() {
    assert_eq!(call(r#"{ mock = { result = { content = [] } } }"#), r#"reply {"content":[]}"#);
    assert_eq!(
        call(
            r#"{ mock = { result = { text = "you said {{/params/arguments/text}}", n = "{{/params/arguments/n}}", no = "{{/params/x}}" } } }"#
        ),
        r#"reply {"text":"you said hello","n":3,"no":null}"#
    );
    assert_eq!(call(r#"{ mock = { json = '{"a":null,"b":"{{/params/name}}"}' } }"#), r#"reply {"a":null,"b":"echo"}"#);
    let mut turns = Dialogue::rule(ECHO, "{ mock = { list = [{ n = 1 }, { n = 2 }] } }");
    let said: Vec<_> = (0..3).map(|_| turns.asks(CALL)).collect();
    assert_eq!(said, [r#"reply {"n":1}"#, r#"reply {"n":2}"#, r#"reply {"n":1}"#]);
    assert_eq!(turns.inputs(), ["position: 2"]);
    let drawn = |seed: u64| {
        let mut dialogue =
            Dialogue::rule(ECHO, &format!("{{ mock = {{ random = [{{ n = 1 }}, {{ n = 2 }}], seed = {seed} }} }}"));
        (0..40).map(|_| dialogue.asks(CALL)).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1), drawn(1), "a seed gives the same row again");
    assert_ne!(drawn(1), drawn(2));
    assert!(drawn(1).contains(&r#"reply {"n":1}"#.to_owned()) && drawn(1).contains(&r#"reply {"n":2}"#.to_owned()));
}

#[test]
fn a_text_from_the_message_cannot_break_out_of_a_made_up_result() {
    let sly = CALL.replace("hello", r#"\",\"isError\":true,\"x\":\""#);
    let mut dialogue = Dialogue::rule(ECHO, r#"{ mock = { result = { text = "said {{/params/arguments/text}}" } } }"#);
    assert_eq!(dialogue.asks(&sly), r#"reply {"text":"said \",\"isError\":true,\"x\":\""}"#);
}

/// Proves SO-6.
#[test]
fn fault_fails_as_it_is_told_and_as_often_as_its_seed_says() {
    let fault = |kind: &str| call(&format!("{{ fault = {{ kind = \"{kind}\" }} }}"));
    assert_eq!(fault("refused"), "refuse backend_down: rule `r` injects a failure: the connection was refused");
    assert_eq!(fault("reset"), "refuse backend_died: rule `r` injects a failure: the connection broke");
    assert_eq!(fault("error"), r#"error {"code":-32603,"message":"rule `r` injects a failure: internal error"}"#);
    assert_eq!(fault("slow"), "pause 2s");
    let mut lost = Dialogue::rule(ECHO, r#"{ fault = { kind = "timeout", after = "3s" } }"#);
    assert_eq!(lost.asks(CALL), "pause 3s");
    assert_eq!(
        lost.hears(&HoldAnswer::GoOn { by: None }),
        "refuse timed_out: rule `r` injects a failure: no answer in 3s"
    );
    let rows = |seed: u64| {
        let then = format!(r#"{{ fault = {{ kind = "error", probability = 0.3, seed = {seed} }} }}"#);
        let mut dialogue = Dialogue::rule(ECHO, &then);
        (0..200).map(|_| dialogue.asks(CALL).starts_with("error")).collect::<Vec<_>>()
    };
    let failed = rows(5).iter().filter(|failed| **failed).count();
    assert!((30..90).contains(&failed), "{failed} of 200");
    assert_eq!(rows(5), rows(5));
    assert_ne!(rows(5), rows(6));
}

/// Each kind of lost backend has its own words, and the kind of failure that a real one has.
/// Proves SO-6.
#[test]
fn fault_tells_apart_why_a_backend_cannot_be_used() {
    let fault = |kind: &str| call(&format!("{{ fault = {{ kind = \"{kind}\" }} }}"));
    let made_up = |what: &str| format!("rule `r` injects a failure: {what}");
    for (kind, reason, words) in [
        ("unreachable", "backend_down", "the host is unreachable"),
        ("dns", "backend_down", "the name of the host was not found"),
        ("tls", "backend_down", "the TLS handshake failed"),
        ("crash", "backend_died", "the process ended with a crash"),
        ("invalid_json", "backend_garbage", "the answer is not valid JSON"),
    ] {
        assert_eq!(fault(kind), format!("refuse {reason}: {}", made_up(words)));
    }
}

/// Exponential slowness has the configured mean, the same times for the same seed, and a long tail.
/// Proves SO-6.
#[test]
fn slow_calls_are_spread_as_the_rule_says() {
    let times = |spread: &str| {
        let then = format!(r#"{{ fault = {{ kind = "slow", after = "100ms", spread = "{spread}", seed = 9 }} }}"#);
        let mut dialogue = Dialogue::rule(ECHO, &then);
        let mut time = || {
            let said = dialogue.asks(CALL);
            let text = said.strip_prefix("pause ").unwrap();
            let (number, unit) = text.split_at(text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap());
            let scale = match unit {
                "s" => 1e3,
                "ms" => 1.0,
                "µs" => 1e-3,
                _ => 1e-6,
            };
            number.parse::<f64>().unwrap() * scale
        };
        (0..2000).map(|_| time()).collect::<Vec<f64>>()
    };
    let mean = |times: &[f64]| times.iter().sum::<f64>() / 2000.0;
    let above = |times: &[f64], most: f64| times.iter().filter(|time| **time > most).count();
    let (fixed, uniform, exponential) = (times("fixed"), times("uniform"), times("exponential"));
    assert!(fixed.iter().all(|time| (time - 100.0).abs() < 1e-6));
    assert!((90.0..110.0).contains(&mean(&uniform)) && above(&uniform, 200.0) == 0);
    assert!((90.0..110.0).contains(&mean(&exponential)), "{}", mean(&exponential));
    // One in e^3, about a twentieth, takes three times the mean or longer.
    assert!((60..140).contains(&above(&exponential, 300.0)), "{}", above(&exponential, 300.0));
    assert_eq!(exponential, times("exponential"));
}

/// Proves SO-6.
#[test]
fn a_spoiled_answer_is_still_a_message() {
    for kind in ["truncate", "garble"] {
        let mut dialogue = Dialogue::rule(ECHO, &format!("{{ fault = {{ kind = \"{kind}\", seed = 3 }} }}"));
        assert_eq!(dialogue.asks(CALL), "pass");
        let said = dialogue.answers(RESULT);
        let changed = envelope(said.strip_prefix("modify ").unwrap());
        let result: serde_json::Value = serde_json::from_slice(changed.result().unwrap()).unwrap();
        assert_eq!(result["content"][0]["type"], "text");
        assert_ne!(result["content"][0]["text"], "hello");
        assert_eq!(result["n"], 1);
    }
}

/// A-4: the round in which a call first comes to a limit counts it, and no later one does.
#[test]
fn rate_limit_counts_a_call_in_the_round_that_first_matches() {
    let when = r#"tool = "echo", params = { "/arguments/rl" = { exists = true } }"#;
    let mut dialogue = Dialogue::rule(when, r#"{ rate_limit = { limit = 1, per = "1h" } }"#);
    let free = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#;
    let counted = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"rl":1}}}"#;
    assert_eq!((dialogue.asks(free), dialogue.asks_again(counted)), ("pass".to_owned(), "pass".to_owned()));
    assert_eq!(dialogue.asks_again(counted), "pass", "the call is counted already");
    dialogue.asks(free);
    assert!(dialogue.asks_again(counted).starts_with("refuse"), "another call is over the limit in its second round");
    assert!(dialogue.asks(counted).starts_with("refuse"));
    dialogue.later(3600);
    assert_eq!((dialogue.asks(counted), dialogue.asks_again(counted)), ("pass".to_owned(), "pass".to_owned()));
    assert_eq!((dialogue.asks_again(free), dialogue.asks_again(counted)), ("pass".to_owned(), "pass".to_owned()));
    dialogue.rules.call_ended(ExchangeId(dialogue.operation.0));
    assert!(dialogue.asks_again(counted).starts_with("refuse"), "a call that is over has no further rounds");
}

/// Proves SO-4 and SO-5.
#[test]
fn rate_limit_refuses_what_is_too_much_for_each_key_alone() {
    let mut dialogue =
        Dialogue::rule(ECHO, r#"{ rate_limit = { key = "${session}:${tool}:${principal}", limit = 2, per = "1m" } }"#);
    assert_eq!(dialogue.asks(CALL), "pass");
    assert_eq!(dialogue.inputs(), ["limiter: passed left=1"]);
    assert_eq!(dialogue.asks(CALL), "pass");
    assert_eq!(dialogue.asks(CALL), "refuse overloaded: more than 2 in 60s; try again in 30 s");
    assert_eq!(dialogue.inputs(), ["limiter: over wait_ms=30000"]);
    dialogue.session = Some("s-2".to_owned());
    assert_eq!(dialogue.asks(CALL), "pass");
    dialogue.session = Some("s-1".to_owned());
    dialogue.later(31);
    assert_eq!(dialogue.asks(CALL), "pass");
}

/// Proves SO-4 and SO-5.
#[test]
fn cache_keeps_an_answer_for_its_time_and_for_its_principal() {
    let mut dialogue = Dialogue::rule(ECHO, r#"{ cache = { ttl = "5m" } }"#);
    let kept = r#"reply {"content":[{"type":"text","text":"hello"}],"n":1}"#;
    assert_eq!(dialogue.asks(CALL), "pass");
    assert_eq!(dialogue.inputs(), ["cache: miss"]);
    assert_eq!(dialogue.answers(RESULT), "pass");
    assert_eq!(dialogue.asks(CALL), kept);
    assert!(dialogue.inputs()[0].starts_with("cache: hit {\"content\""));
    assert_eq!(dialogue.asks(&CALL.replace("hello", "bye")), "pass", "other arguments are another call");
    dialogue.caller = caller("local:bob");
    assert_eq!(dialogue.asks(CALL), "pass", "what one brought is not shown to another");
    dialogue.caller = with_token("local:ada", "made-up");
    assert_eq!(dialogue.asks(CALL), "pass", "nor to one that is known by its token");
    dialogue.caller = caller("local:ada");
    assert_eq!(dialogue.asks(CALL), kept);
    dialogue.later(301);
    assert_eq!(dialogue.asks(CALL), "pass");
}

/// Proves SO-5.
#[test]
fn cache_keeps_pages_apart_whose_tools_are_the_same() {
    for shared in [false, true] {
        let mut dialogue = Dialogue::rule(ECHO, &format!(r#"{{ cache = {{ ttl = "5m", shared = {shared} }} }}"#));
        let page = |name: &str| Some(Principal::named(&format!("local:ada/relay:c-{name}")));
        dialogue.page = page("x");
        assert_eq!(dialogue.asks(CALL), "pass");
        assert_eq!(dialogue.answers(RESULT), "pass");
        assert!(dialogue.asks(CALL).starts_with("reply"), "the same page");
        for other in [page("y"), None] {
            dialogue.page = other;
            assert_eq!(dialogue.asks(CALL), "pass", "{:?}", dialogue.page);
        }
    }
}

/// Shows entries by the version of a policy and by the way in which the caller was authenticated.
struct ByRights(std::sync::atomic::AtomicU64);

impl signalbox_engine::catalog::Visibility for ByRights {
    fn audience(&self, caller: &signalbox_engine::Caller) -> signalbox_engine::catalog::Audience {
        let version = self.0.load(std::sync::atomic::Ordering::Relaxed);
        signalbox_engine::catalog::Audience(format!("{version} {:?}", caller.identity().proof).into())
    }

    fn shows_backend(&self, _: &signalbox_engine::Caller, _: &str) -> bool {
        true
    }
}

#[test]
fn a_cached_list_is_shown_to_callers_who_see_the_same_entries() {
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "completion/complete"];
    for method in lists {
        for shared in [false, true] {
            let rights = std::sync::Arc::new(ByRights(0.into()));
            let then = format!(r#"{{ cache = {{ key = "${{method}}", ttl = "5m", shared = {shared} }} }}"#);
            let mut dialogue = Dialogue::rule(&format!("method = '{method}'"), &then).showing(rights.clone());
            let list = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{}}}}"#);
            assert_eq!(dialogue.asks(&list), "pass");
            assert_eq!(dialogue.answers(RESULT), "pass");
            assert!(dialogue.asks(&list).starts_with("reply"), "{method}: the same rights");
            let strong = dialogue.caller.clone();
            dialogue.caller = signalbox_engine::Caller::of(strong.principal().clone(), Proof::Unproved, "test");
            assert_eq!(dialogue.asks(&list), "pass", "{method}: a weaker proof of the same principal");
            dialogue.caller = strong;
            rights.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(dialogue.asks(&list), "pass", "{method}: rights that have changed");
        }
    }
}

/// A caller whose token a backend gets another one for.
fn with_token(principal: &str, token: &str) -> signalbox_engine::Caller {
    use signalbox_engine::standing::{Credential, Standing, SubjectToken};
    let mut identity = caller(principal).identity().clone();
    let (mut credential, _) = Credential::new("corp/-", None);
    credential.token = Some(SubjectToken::new(token));
    identity.standing = Some(std::sync::Arc::new(Standing { credential: Some(credential), ..Standing::default() }));
    signalbox_engine::Caller::new(identity)
}

#[test]
fn a_cache_keeps_no_errors_nothing_unfinished_and_no_more_than_it_may() {
    let mut dialogue = Dialogue::rule(
        ECHO,
        r#"{ cache = { key = "{{/params/arguments/text}}", ttl = "5m", max_entries = 2, shared = true } }"#,
    );
    for bad in [
        ERROR.to_owned(),
        RESULT.replace("\"n\":1", "\"isError\":true"),
        RESULT.replace("\"n\":1", "\"resultType\":\"input_required\""),
    ] {
        assert_eq!(dialogue.asks(CALL), "pass");
        assert_eq!(dialogue.answers(&bad), "pass");
        assert_eq!(dialogue.asks(CALL), "pass", "{bad}");
        dialogue.finishes();
    }
    for word in ["a", "b", "c"] {
        assert_eq!(dialogue.asks(&CALL.replace("hello", word)), "pass");
        assert_eq!(dialogue.answers(RESULT), "pass");
    }
    dialogue.caller = caller("local:bob");
    assert!(dialogue.asks(&CALL.replace("hello", "c")).starts_with("reply"), "shared");
    assert!(dialogue.asks(&CALL.replace("hello", "b")).starts_with("reply"));
    assert_eq!(dialogue.asks(&CALL.replace("hello", "a")), "pass", "the oldest made room");
}

/// Texts of rules are recorded and logged. What else is filled with values goes to the backend or to the caller.
#[test]
fn texts_of_rules_quote_no_redacted_value() {
    const QUOTED: &str = "{{/params/arguments/password}}";
    let with = |extra: &str| CALL.replace("\"n\":3", &format!("\"password\":\"hunter2\"{extra}"));
    for (then, told) in [
        (format!("{{ log = 'is {QUOTED}' }}"), "log info is VALUE | pass"),
        ("{ log = 'is {{/params/arguments}}' }".to_owned(), "log info is {\"text\""),
        (format!("{{ block = 'is {QUOTED}' }}"), "refuse refused: is VALUE"),
        (
            format!("{{ block = {{ message = 'is {QUOTED}', code = -32099 }} }}"),
            "error {\"code\":-32099,\"message\":\"is VALUE\"",
        ),
        (
            format!(
                "{{ error = {{ code = -1, message = 'is {QUOTED}', data = {{ a = '{QUOTED}', b = 'x{QUOTED}' }} }} }}"
            ),
            r#"error {"code":-1,"message":"is VALUE","data":{"a":"VALUE","b":"xVALUE"}}"#,
        ),
        (format!("{{ hold = 'is {QUOTED}' }}"), "hold 50s is VALUE"),
    ] {
        for (extra, value) in [("", "[gone]"), (",\"poison\":1", "[redacted]")] {
            let mut dialogue = Dialogue::rule(ECHO, &then);
            let said = dialogue.asks(&with(extra));
            let told = told.replace("VALUE", value);
            let is_object = then.contains("arguments}}") && !extra.is_empty();
            assert!(said.starts_with(if is_object { "log info is [redacted]" } else { &told }), "{then}: {said}");
            let recorded = format!("{said} {:?}", dialogue.rulings);
            assert!(!recorded.contains("hunter2") && recorded.contains(value), "{then}: {recorded}");
        }
    }
    // The request of an answer.
    let then = format!("{{ log = 'was {QUOTED}, is {{{{/result/n}}}}' }}");
    let mut dialogue = Dialogue::rule(r#"tool = "echo", phase = "response""#, &then);
    dialogue.asks(&with(""));
    assert_eq!(dialogue.answers(RESULT), "log info was [gone], is 1 | pass");
    let mock = format!("{{ mock = {{ result = {{ a = '{QUOTED}' }} }} }}");
    assert_eq!(Dialogue::rule(ECHO, &mock).asks(&with("")), r#"reply {"a":"hunter2"}"#, "a result is no record");
}

#[test]
fn what_a_message_says_cannot_steer_a_log_or_a_terminal() {
    let sly = CALL.replace("hello", r"a\n2026 INFO all is well\u001b[2J");
    let mut dialogue = Dialogue::rule(ECHO, r#"{ log = "said {{/params/arguments/text}}" }"#);
    assert_eq!(dialogue.asks(&sly), "log info said a 2026 INFO all is well [2J | pass");
    let mut dialogue = Dialogue::rule(ECHO, r#"{ hold = "{{/params/arguments/text}}" }"#);
    assert_eq!(dialogue.asks(&sly), "hold 50s a 2026 INFO all is well [2J");
}

#[test]
fn the_secrets_of_a_web_address_are_written_down_nowhere() {
    let then = r#"{ webhook = { url = "https://ada:secret@x.test/hook?token=secret", wait = true } }"#;
    let mut dialogue = Dialogue::rule(ECHO, then);
    assert!(dialogue.asks(CALL).starts_with("ask https://ada:secret@x.test/hook?token=secret"));
    assert_eq!(dialogue.ruling("r").unwrap().detail, "asks https://x.test/hook");
    assert_eq!(dialogue.rules.set().describe()[0].then, ["ask https://x.test/hook"]);
    dialogue.hears(&HoldAnswer::Failed("refused".to_owned()));
    assert!(!format!("{:?}", dialogue.rulings).contains("secret"));
}
