//! Handmade tapes: what each kind of difference, gap and missing answer comes to.

use super::*;
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, FinishedEntry, Gap, MessageEntry, MessageKind, TapeKind};
use std::borrow::Cow;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;

/// A tape that is written by hand.
struct Tape {
    info: TapeInfo,
    entries: Vec<Entry>,
    at: u64,
}

/// What became of a call on the tape.
enum End {
    /// The backend answered this result.
    Result(Value),
    /// It was refused.
    Refused,
    /// It was answered with this result, without a backend.
    Reply(Value),
}

impl Tape {
    fn new() -> Self {
        let info = TapeInfo::new("handmade".into(), TapeKind::Serve, String::new(), SECOND);
        Self { info, entries: vec![], at: SECOND }
    }

    fn put(&mut self, exchange: Option<u64>, content: Content) {
        let seq = self.entries.len() as u64 + 1;
        self.entries.push(Entry { exchange, ..Entry::new(seq, self.at, "ada".into(), content) });
    }

    fn message(&mut self, exchange: u64, point: Point, kind: MessageKind, json: &Value) -> &mut MessageEntry {
        let body = Body::Whole(Bytes::from(json.to_string()));
        let backend = (point != Point::ClientIn).then(|| Arc::from("files"));
        let (method, subject) = (Some("tools/call".into()), Some("echo".into()));
        let message = MessageEntry { method, subject, backend, ..MessageEntry::new(point, kind, 0, body) };
        self.put(Some(exchange), Content::Message(message));
        match &mut self.entries.last_mut().unwrap().content {
            Content::Message(message) => message,
            _ => unreachable!(),
        }
    }

    fn decide(&mut self, exchange: u64, phase: &'static str, rulings: &[Ruled<'_>]) {
        let decisions = rulings.iter().map(|ruled| {
            Arc::new(DecisionEntry {
                by: Cow::Borrowed("rules"),
                rule: ruled.rule.map(Arc::from),
                phase: Cow::Borrowed(phase),
                verdict: ruled.verdict.to_owned().into(),
                detail: ruled.detail.to_owned(),
                inputs: ruled
                    .inputs
                    .iter()
                    .map(|(kind, text)| ((*kind).to_owned().into(), (*text).to_owned()))
                    .collect(),
                ..DecisionEntry::default()
            })
        });
        let decisions = decisions.collect();
        self.put(Some(exchange), Content::Decisions(decisions));
    }

    fn asks(&mut self, exchange: u64, text: &str) {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": text}}});
        self.message(exchange, Point::ClientIn, MessageKind::Request, &call);
    }

    fn ends(&mut self, exchange: u64, end: End) {
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
        match end {
            End::Result(value) => {
                self.message(exchange, Point::BackendOut, MessageKind::Request, &json!({"params": {"name": "echo"}}));
                self.message(exchange, Point::BackendIn, MessageKind::Result, &result(value.clone()));
                self.message(exchange, Point::ClientOut, MessageKind::Result, &result(value));
            }
            End::Reply(value) => {
                self.message(exchange, Point::ClientOut, MessageKind::Result, &result(value));
            }
            End::Refused => {
                let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}});
                self.message(exchange, Point::ClientOut, MessageKind::Error, &error).own = true;
            }
        }
        let finished = FinishedEntry {
            method: "tools/call".into(),
            subject: Some("echo".into()),
            backend: Some("files".into()),
            ..FinishedEntry::default()
        };
        self.put(Some(exchange), Content::Finished(finished));
    }

    /// A call that passed without any rule.
    fn plain(&mut self, exchange: u64, text: &str) {
        self.asks(exchange, text);
        self.ends(exchange, End::Result(json!({"content": [{"type": "text", "text": text}]})));
    }

    fn try_rules(&self, rules: &str) -> Backtest {
        let set = RuleSet::parse("rules.toml", rules).unwrap_or_else(|error| panic!("{error}"));
        let mut backtest = Backtest::new(set, 2);
        backtest.tape(&self.info, &mut self.entries.iter().cloned().map(Ok)).unwrap();
        backtest
    }
}

/// What a rule decided; none for all rules together.
#[derive(Clone, Copy, Default)]
struct Ruled<'a> {
    rule: Option<&'a str>,
    verdict: &'a str,
    detail: &'a str,
    inputs: &'a [(&'a str, &'a str)],
}

fn all(verdict: &str) -> Ruled<'_> {
    Ruled { verdict, ..Ruled::default() }
}

fn rule(then: &str) -> String {
    format!("[[rules]]\nid = \"r\"\nwhen = {{ tool = \"echo\" }}\nthen = [{then}]\n")
}

/// Class, rule, phase and count of each group.
fn found(backtest: &Backtest) -> Vec<String> {
    let line = |group: &Group| {
        let rule = group.rule.as_deref().unwrap_or("-");
        let why = group.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{} {} by {rule}, {}{why}", group.count, group.class.word(), group.phase)
    };
    backtest.report().groups().map(line).collect()
}

#[test]
fn a_call_that_passed_is_now_blocked_changed_held_delayed_or_answered() {
    let mut tape = Tape::new();
    tape.plain(1, "one");
    tape.plain(2, "two");
    let cases = [
        (r#"{ block = "no" }"#, "2 blocked by r, request"),
        (r#"{ set = { "/params/arguments/text" = "x" } }"#, "2 changed by r, request"),
        (r#"{ hold = "look" }"#, "2 held by r, request"),
        (r#"{ delay = "1s" }"#, "2 delayed by r, request"),
        (r#"{ mock = { result = { content = [] } } }"#, "2 answered by r, request"),
    ];
    for (then, expected) in cases {
        assert_eq!(found(&tape.try_rules(&rule(then))), [expected], "{then}");
    }
    let backtest = tape.try_rules(&rule(r#"{ count = "x" }"#));
    assert_eq!((found(&backtest), backtest.report().calls), (vec![], 2));
    let backtest = tape.try_rules(&rule(r#"{ block = "no" }"#));
    let group = backtest.report().groups().next().unwrap();
    let example = &group.examples[0];
    assert_eq!((example.exchange, &*example.caller, &*example.arguments), (Some(1), "ada", r#"{"text":"one"}"#));
    assert_eq!((&*example.then, &*example.now), ("passed", "refused by r"));
}

#[test]
fn what_is_let_through_now_has_no_answer_and_what_follows_from_it_is_unknown() {
    let mut tape = Tape::new();
    tape.asks(1, "one");
    let refused = Ruled { rule: Some("old"), verdict: "refuse", ..Ruled::default() };
    tape.decide(1, "request", &[refused, all("refuse")]);
    tape.ends(1, End::Refused);
    assert_eq!(found(&tape.try_rules("")), ["1 allowed by old, request"], "nobody judges the answer");
    let rules = rule(r#"{ set = { "/result/x" = 1 } }"#);
    let expected = [
        "1 allowed by old, request",
        "1 unknown by -, response (the request is let through now, and its answer is not on the tape)",
    ];
    assert_eq!(found(&tape.try_rules(&rules)), expected);
    // A cache would hold the answer for the next one.
    tape.at += SECOND;
    tape.asks(2, "one");
    tape.decide(2, "request", &[refused, all("refuse")]);
    tape.ends(2, End::Refused);
    let rules = rule(r#"{ cache = { key = "{{/params/arguments/text}}", ttl = "1h" } }"#);
    let expected = [
        "1 allowed by old, request",
        "1 unknown by old, request (the cache of rule `r` would hold an answer that is not on the tape)",
    ];
    assert_eq!(found(&tape.try_rules(&rules)), expected);
}

#[test]
fn a_changed_request_has_another_answer() {
    let mut tape = Tape::new();
    tape.plain(1, "one");
    let other = rule(r#"{ set = { "/result/x" = 1 } }"#).replace("\"r\"", "\"s\"");
    let rules = rule(r#"{ set = { "/params/arguments/text" = "x" } }"#) + &other;
    let expected = [
        "1 changed by r, request",
        "1 unknown by -, response (the request is changed now in another way, and the answer to that is not on the tape)",
    ];
    assert_eq!(found(&tape.try_rules(&rules)), expected);
}

#[test]
fn limits_go_by_the_turns_of_the_calls_and_not_by_the_order_of_the_tape() {
    let mut tape = Tape::new();
    for (exchange, turn, verdict) in [(1, "1 at 2000", "refuse"), (2, "0 at 1000", "pass")] {
        tape.asks(exchange, "one");
        let inputs = [("limiter", ""), ("turn", turn)];
        let ruled = Ruled { rule: Some("r"), verdict, inputs: &inputs, ..Ruled::default() };
        tape.decide(exchange, "request", &[ruled, all(verdict)]);
        let end = if verdict == "pass" { End::Result(json!({})) } else { End::Refused };
        tape.ends(exchange, end);
    }
    let limit = |limit: u64| rule(&format!("{{ rate_limit = {{ limit = {limit}, per = \"1h\" }} }}"));
    assert_eq!(found(&tape.try_rules(&limit(1))), [""; 0]);
    assert_eq!(found(&tape.try_rules(&limit(2))), ["1 allowed by r, request"]);
}

#[test]
fn after_a_gap_what_depends_on_earlier_calls_is_unknown_until_it_is_too_long_ago() {
    let mut tape = Tape::new();
    tape.put(None, Content::Gap(Gap { facts: 5, reason: "queue_full".to_owned() }));
    tape.plain(1, "one");
    tape.plain(2, "two");
    tape.at += 7200 * SECOND;
    tape.plain(3, "three");
    tape.plain(4, "four");
    let backtest = tape.try_rules(&rule(r#"{ rate_limit = { limit = 1, per = "1h" } }"#));
    let expected =
        ["1 blocked by r, request", "1 unknown by r, request (it depends on calls that are not on the tape)"];
    assert_eq!(found(&backtest), expected);
    assert_eq!((backtest.report().tapes[0].gaps, backtest.report().tapes[0].missing), (1, 5));
    tape.entries.remove(0);
    tape.info.sampling = "share 0.1".to_owned();
    let backtest = tape.try_rules(&rule(r#"{ rate_limit = { limit = 1, per = "1h" } }"#));
    assert_eq!(backtest.report().count(Class::Unknown), 2);
    assert_eq!(backtest.report().tapes[0].sampling.as_deref(), Some("share 0.1"));
}

#[test]
fn what_a_webhook_or_a_person_said_comes_from_the_tape_or_is_unknown() {
    let hook = rule(r#"{ webhook = { url = "http://h/", wait = true, timeout = "1s" } }"#);
    let mut tape = Tape::new();
    tape.plain(1, "one");
    let unknown = "1 unknown by -, request (a webhook would be asked, and its answer is not on the tape)";
    assert_eq!(found(&tape.try_rules(&hook)), [unknown]);
    let held = |tape: &mut Tape, exchange: u64, verdict: &str, detail: &str, inputs: &[(&str, &str)]| {
        tape.asks(exchange, "one");
        let waits = Ruled { rule: Some("r"), verdict: "hold", detail, ..Ruled::default() };
        tape.decide(exchange, "request", &[waits, all("hold")]);
        tape.at += SECOND;
        let told = Ruled { rule: Some("r"), verdict, inputs, ..Ruled::default() };
        let whole = Ruled { inputs: &[("after", "r")], ..all(if verdict == "released" { "pass" } else { verdict }) };
        tape.decide(exchange, "request", &[told, whole]);
    };
    let mut tape = Tape::new();
    held(&mut tape, 1, "refuse", "asks http://h/", &[("webhook", r#"200 {"verdict":"refuse"}"#)]);
    tape.ends(1, End::Refused);
    held(&mut tape, 2, "released", "asks http://h/", &[("webhook", "200 ")]);
    tape.ends(2, End::Result(json!({})));
    assert_eq!(found(&tape.try_rules(&hook)), [""; 0]);
    let other = hook.replace("http://h/", "http://other/");
    let unknown = "2 unknown by r, request (a webhook would be asked, and its answer is not on the tape)";
    assert_eq!(found(&tape.try_rules(&other)), [unknown]);
    assert_eq!(found(&tape.try_rules("")), ["2 allowed by r, request"], "one is not held, one not refused");

    let mut tape = Tape::new();
    held(&mut tape, 1, "reply", "look", &[("person", "answered by eve"), ("result", r#"{"n":1}"#)]);
    tape.ends(1, End::Reply(json!({"n": 1})));
    assert_eq!(found(&tape.try_rules(&rule(r#"{ hold = "look" }"#))), [""; 0]);
    held(&mut tape, 2, "reply", "look", &[("person", "answered by eve"), ("result", "99 bytes, fnv 00")]);
    tape.ends(2, End::Reply(json!({"n": 1})));
    let unknown = "1 unknown by r, request (what ended the wait of the message is not on the tape)";
    assert_eq!(found(&tape.try_rules(&rule(r#"{ hold = "look" }"#))), [unknown]);
}

#[test]
fn random_draws_and_hidden_values_and_missing_bodies_are_not_guessed() {
    let mut tape = Tape::new();
    tape.plain(1, "one");
    let chance = rule(r#"{ fault = { kind = "error", probability = 0.5 } }"#);
    let unknown = "1 unknown by -, request (rule `r` draws a random number that is not on the tape)";
    assert_eq!(found(&tape.try_rules(&chance)), [unknown]);
    let mut tape = Tape::new();
    tape.plain(1, "[redacted]");
    for entry in &mut tape.entries {
        if let Content::Message(message) = &mut entry.content {
            message.redacted = true;
        }
    }
    let looks = r#"[[rules]]
id = "r"
when = { phase = "request", params = { "/arguments/text" = "secret" } }
then = { block = "no" }"#;
    let unknown = "1 unknown by -, request (a rule looks at a value that was redacted)";
    assert_eq!(found(&tape.try_rules(looks)), [unknown]);
    assert_eq!(found(&tape.try_rules(&rule(r#"{ block = "no" }"#))), ["1 blocked by r, request"]);
    for entry in &mut tape.entries {
        if let Content::Message(message) = &mut entry.content {
            message.body = Body::Left;
        }
    }
    assert_eq!(found(&tape.try_rules(looks)), ["1 unknown by -, request (the message is not on the tape)"]);
    let elsewhere = "[[rules]]\nid = \"r\"\nwhen = { method = \"prompts/get\" }\nthen = { block = \"no\" }";
    assert_eq!(found(&tape.try_rules(elsewhere)), [""; 0], "no rule needs it");
}

#[test]
fn a_tape_that_makes_no_sense_is_read_to_its_end() {
    let mut tape = Tape::new();
    tape.decide(1, "request", &[Ruled { inputs: &[("turn", "7 at -99999999999999999999999")], ..all("hold") }]);
    tape.decide(1, "request", &[Ruled { inputs: &[("after", "r")], ..all("pass") }]);
    tape.decide(1, "response", &[all("modify")]);
    tape.decide(2, "question", &[all("refuse")]);
    tape.ends(2, End::Result(json!({})));
    tape.ends(2, End::Refused);
    tape.asks(3, "x");
    tape.asks(3, "y");
    let backtest = tape.try_rules(&rule(r#"{ rate_limit = { limit = 1, per = "1h" } }, { block = "no" }"#));
    assert!(backtest.report().judged > 0);
}
