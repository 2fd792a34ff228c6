//! Calls between their request and their answer: ids, bounds, cancellation and lost streams.

use super::*;

#[test]
fn ids_keep_their_type_and_a_second_use_in_flight_is_refused() {
    let mut dialogue = Dialogue::operational();
    for id in ["1", "\"1\"", "1.0"] {
        let said =
            dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one"}}}}"#));
        assert!(said[0].starts_with("a> "));
    }
    let again = dialogue.says(r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"one"}}"#);
    assert!(again[0].contains("duplicate_id"), "{again:?}");
    for id in ["1.0", "\"1\"", "1"] {
        assert_eq!(
            dialogue.answers(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#),
            [format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)]
        );
    }
}

#[test]
fn requests_in_flight_are_bounded() {
    let mut dialogue = Dialogue::operational();
    for id in 0..4 {
        dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one"}}}}"#));
    }
    let said = dialogue.says(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"one"}}"#);
    assert_eq!(said[0], "refused in_flight");
    assert!(said[1].contains("overloaded"), "{said:?}");
}

#[test]
fn a_cancelled_call_is_stopped_and_never_answered() {
    let mut dialogue = Dialogue::operational();
    dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one"}}"#);
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}}"#),
        ["cancel at a"]
    );
    assert_eq!(dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), ["dropped late_answer"]);
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#),
        ["dropped stray_cancel"]
    );
}

#[test]
fn a_lost_stream_ends_a_new_request_and_not_an_old_one() {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.says(&modern("1", "tools/call", r#""name":"one""#));
    assert_eq!(dialogue.event(Event::Gone { stream: STREAM }), ["cancel at a"]);
    assert_eq!(dialogue.machine.in_flight(), 0);

    let mut dialogue = Dialogue::operational();
    dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one"}}"#);
    assert!(dialogue.event(Event::Gone { stream: STREAM }).is_empty());
    assert_eq!(dialogue.machine.in_flight(), 1);
    assert_eq!(dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), ["dropped client_gone"]);
}

/// Proves S-58.
#[test]
fn ten_thousand_pending_calls_fit() {
    let mut dialogue = Dialogue::operational();
    let snapshot = dialogue.catalog.snapshot();
    let chain = Chain::default();
    let ctx = Context {
        now: Instant::now(),
        unix_ms: &|| 0,
        task_home: &|_| None,
        catalog: &snapshot,
        caller: None,
        user: &crate::Principal::anonymous().into(),
        refusal: None,
        operations: &Operations::default(),
        task_calls: &crate::TaskCalls::default(),
        numbers: &Numbers::default(),
        chain: &chain,
        session: None,
        session_started: Instant::now(),
        face: None,
        server_info: "{}",
        instance: "1",
        instructions: "",
        max_in_flight: 20_000,
        round_timeout: Duration::from_secs(300),
        changes: &|_, _| Generation::default(),
        dialect: None,
        error_detail: crate::fault::ErrorDetail::Full,
        message_facts: false,
        trace: None,
        clock: &Instant::now,
        sight: None,
        lists_ready: &|_| true,
        sign_ins: &Vec::new,
    };
    let mut out = Vec::new();
    let before = resident();
    for id in 0..10_000 {
        let json = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one"}}}}"#);
        dialogue.machine.handle(Event::Received { stream: STREAM, message: envelope(&json) }, &ctx, &mut out);
    }
    assert_eq!(dialogue.machine.in_flight(), 10_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 100 << 20, "10,000 pending calls take {grown} bytes");
    for exchange in (1..=10_001).rev() {
        let message = envelope(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let event = Event::Answered { exchange: ExchangeId(exchange), message, edits: Edits::new(), status: None };
        dialogue.machine.handle(event, &ctx, &mut out);
    }
    assert_eq!(dialogue.machine.in_flight(), 0);
}

/// The memory of this process in bytes, where the system tells; the commands that wait for their backends are in it.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

#[test]
fn a_cancelled_call_of_a_batch_on_a_pipe_ends_its_own_stream_and_never_the_pipe() {
    let mut dialogue = Dialogue::operational();
    let call = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one"}}}}"#);
    let cancel =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
    dialogue.says(&call(1));
    assert_eq!(dialogue.says(&cancel(1)), ["cancel at a"]);
    let (stream, message) = (StreamId(9), envelope(&call(2)));
    dialogue.event(Event::Received { stream, message });
    assert_eq!(dialogue.says(&cancel(2)), ["cancel at a", "end"]);
}
