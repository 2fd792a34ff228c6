//! Rules in a chain with others, and rules that many threads ask at once.

use super::*;
use signalbox_engine::Chain;
use signalbox_engine::chain::Resume;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Adds a letter to the text of every message, so that it shows how often and when it was asked.
struct Marks(&'static str);

impl Interceptor for Marks {
    fn name(&self) -> &'static str {
        self.0
    }

    fn judge(&self, case: &Case<'_>, _resumed: Option<HoldResponse<'_>>) -> Judgement {
        let marked = text(case.message.bytes()).replace("hello", &format!("hello {}", self.0));
        Verdict::Modify(envelope(&marked)).into()
    }
}

fn case<'a>(message: &'a Envelope, caller: &'a Caller, now: Instant) -> Case<'a> {
    Case {
        phase: Phase::Request,
        message,
        exchange: None,
        caller,
        acts_for: caller.principal(),
        session: None,
        session_started: now,
        revision: None,
        backend: None,
        now,
        definition: None,
        attempt: 1,
        round: 1,
        can_wait: true,
        by_task: false,
        task_tool: None,
        unix_ms: 0,
    }
}

/// Proves S-27.
#[test]
fn a_chain_goes_on_behind_the_rule_that_held_and_asks_nobody_twice() {
    let text_of_rules = r#"
        [[rules]]
        id = "a"
        when = { tool = "echo" }
        then = [{ set = { "/params/arguments/n" = 9 } }, { hold = "look" }, { set = { "/params/arguments/n" = 10 } }]
    "#;
    let rules = RuleInterceptor::new(RuleSet::parse("rules.toml", text_of_rules).unwrap(), 1);
    let chain = Chain::new(vec![Arc::new(Marks("before")), Arc::new(rules), Arc::new(Marks("after"))]);
    let (message, caller, now) = (envelope(CALL), Caller::anonymous("test"), Instant::now());
    let held = chain.judge(&case(&message, &caller, now), None);
    let Verdict::Hold(hold) = held.verdict else { panic!("{:?}", held.verdict) };
    let waiting = hold.message.unwrap();
    let marked = CALL.replace("hello", "hello before");
    assert_eq!(text(waiting.bytes()), marked.replace("\"n\":3", "\"n\":9"));
    assert_eq!(held.passed, 1);

    let told = HoldResponse { cursor: hold.cursor, answer: &HoldAnswer::GoOn { by: None } };
    let done = chain.judge(&case(&waiting, &caller, now), Some(Resume { passed: held.passed, told }));
    let Verdict::Modify(sent) = done.verdict else { panic!("{:?}", done.verdict) };
    assert_eq!(text(sent.bytes()), CALL.replace("hello", "hello after before").replace("\"n\":3", "\"n\":10"));
    let by: Vec<_> = done.rulings.iter().flat_map(|(by, some)| some.iter().map(|one| (*by, one.verdict))).collect();
    assert_eq!(by, [("rules", "modify"), ("rules", "modify")]);
}

#[test]
fn nobody_is_asked_about_answers_where_no_rule_looks_at_them() {
    let looks = |rule: &str| {
        let rules =
            RuleInterceptor::new(RuleSet::parse("rules.toml", &format!("[[rules]]\nid = \"a\"\n{rule}")).unwrap(), 1);
        let chain = Chain::new(vec![Arc::new(rules)]);
        (chain.looks_at(Phase::Request), chain.looks_at(Phase::Response))
    };
    assert_eq!(looks("then = \"block\""), (true, false));
    assert_eq!(looks("when = { phase = \"response\" }\nthen = { log = \"x\" }"), (false, true));
    assert_eq!(looks("then = { cache = { ttl = \"1m\" } }"), (true, true), "a cache is filled from answers");
    assert_eq!(looks("enabled = false\nthen = \"block\""), (false, false));
}

#[test]
fn a_limit_lets_exactly_as_many_pass_as_it_says_from_however_many_threads() {
    let text = "[[rules]]\nid = \"a\"\nthen = { rate_limit = { limit = 50, per = \"1h\" } }";
    let rules = RuleInterceptor::new(RuleSet::parse("rules.toml", text).unwrap(), 1);
    let (message, caller, now) = (envelope(CALL), Caller::anonymous("test"), Instant::now());
    let passed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    if let Verdict::Pass = rules.judge(&case(&message, &caller, now), None).verdict {
                        passed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(passed.load(Ordering::Relaxed), 50);
}

/// Proves SO-14.
#[test]
fn a_message_is_judged_by_one_version_of_the_rules_while_they_change() {
    let set = |word: &str| {
        let rule = |id: &str| {
            format!("[[rules]]\nid = \"{id}\"\nthen = {{ set = {{ \"/params/arguments/{id}\" = \"{word}\" }} }}\n")
        };
        RuleSet::parse("rules.toml", &format!("{}{}", rule("a"), rule("b"))).unwrap()
    };
    let (old, new) = (set("old"), set("new"));
    let rules = RuleInterceptor::new(old.clone(), 1);
    let (message, caller, now) = (envelope(CALL), Caller::anonymous("test"), Instant::now());
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let judged = rules.judge(&case(&message, &caller, now), None);
                    let Verdict::Modify(message) = judged.verdict else { panic!("{:?}", judged.verdict) };
                    let sent = text(message.bytes());
                    assert_ne!(sent.contains("\"old\""), sent.contains("\"new\""), "{sent}");
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        while done.load(Ordering::Relaxed) < 3 && !std::thread::panicking() {
            rules.replace(new.clone());
            rules.replace(old.clone());
            std::thread::yield_now();
        }
    });
}
