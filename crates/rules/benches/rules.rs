//! What a hundred rules cost for one call of 300 bytes.
#![allow(clippy::unwrap_used, reason = "the inputs are written here")]
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use signalbox_engine::Caller;
use signalbox_engine::chain::{Case, Interceptor, Phase};
use signalbox_rules::{RuleInterceptor, RuleSet};
use signalbox_wire::{Envelope, Limits};
use std::hint::black_box;
use std::time::{Duration, Instant};

fn hundred(rule: impl Fn(usize) -> String) -> RuleInterceptor {
    let text: String = (0..100).map(|number| format!("[[rules]]\nid = \"r{number}\"\n{}\n", rule(number))).collect();
    RuleInterceptor::new(RuleSet::parse("bench", &text).unwrap(), 1)
}

fn rules(criterion: &mut Criterion) {
    let call = r#"{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"name":"get_weather","arguments":{"location":"a place of some length, so that this call is as long as an ordinary one","units":"metric","days":3,"detail":{"hourly":true,"fields":["temperature","wind","rain"]}},"_meta":{"progressToken":"abc-123"}}}"#;
    let message = Envelope::read(Bytes::from_static(call.as_bytes()), &Limits::default()).unwrap();
    let now = Instant::now();
    let caller = Caller::anonymous("http");
    let case = Case {
        phase: Phase::Request,
        message: &message,
        exchange: None,
        caller: &caller,
        acts_for: caller.principal(),
        session: Some("s"),
        session_started: now,
        revision: Some("2025-06-18"),
        backend: Some("weather"),
        now,
        definition: None,
        attempt: 1,
        round: 1,
        can_wait: true,
        by_task: false,
        task_tool: None,
        unix_ms: 0,
    };
    let sets = [
        ("other_methods", hundred(|number| format!("when = {{ method = \"other/{number}\" }}\nthen = \"block\""))),
        ("other_tools", hundred(|number| format!("when = {{ tool = \"tool{number}_*\" }}\nthen = \"block\""))),
        (
            "all_conditions",
            hundred(|number| {
                format!(
                    "when = {{ tool = \"get_*\", params = {{ \"/params/arguments/days\" = {{ less = 5 }}, \"/params/arguments/location\" = {{ matches = \"^x{number}\" }} }} }}\nthen = \"block\""
                )
            }),
        ),
        // As in `script/bench record`: every tenth counts each call, the others look at its arguments in vain.
        (
            "some_match",
            hundred(|number| match number % 10 {
                0 => format!("when = {{ method = \"tools/call\" }}\nthen = {{ count = \"c{number}\" }}"),
                _ => format!(
                    "when = {{ method = \"tools/call\", params = {{ \"/params/arguments/location\" = {{ starts_with = \"never {number:03}\" }} }} }}\nthen = {{ block = \"never\" }}"
                ),
            }),
        ),
        ("all_match", hundred(|number| format!("when = {{ tool = \"get_*\" }}\nthen = {{ count = \"c{number}\" }}"))),
    ];
    let mut group = criterion.benchmark_group("100_rules");
    for (name, rules) in &sets {
        group.bench_function(*name, |bencher| bencher.iter(|| black_box(rules.judge(black_box(&case), None))));
    }
    group.finish();
    let text: String = (0..100).map(|number| format!("[[rules]]\nid = \"r{number}\"\nwhen = {{ tool = \"t{number}\", params = {{ \"/params/arguments/a\" = {{ matches = \"^x{number}\" }} }} }}\nthen = \"block\"\n")).collect();
    criterion.bench_function("load_100_rules", |bencher| bencher.iter(|| RuleSet::parse("bench", black_box(&text))));
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).sample_size(30);
    targets = rules
}
criterion_main!(benches);
