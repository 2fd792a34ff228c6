//! Arrays of messages on a pipe.

use super::*;

fn call(id: u32, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

fn ping(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)
}

fn pong(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// The elements of an array.
fn elements(line: &str) -> Vec<String> {
    let line = Bytes::copy_from_slice(line.as_bytes());
    let all = signalbox_wire::batch::split(&line, 1000).unwrap();
    all.iter().map(|one| String::from_utf8(one.to_vec()).unwrap()).collect()
}

/// Proves S-51.
#[tokio::test]
async fn the_answers_to_a_batch_come_together_and_the_rest_does_not_wait_for_them() {
    let mut dialogue = Dialogue::ready().await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/unheard/of"}"#;
    let unknown = r#"{"jsonrpc":"2.0","id":"u","method":"no/such/method"}"#;
    let doubled = r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":{"a":1,"a":2}}"#;
    let all = [&*call(1, "slow"), note, unknown, "5", doubled, "[[]]", &call(2, "stub_tool")].join(" , ");
    dialogue.send(&format!(" [ {all} ] ")).await;
    // The slow call holds up the array and nothing else.
    dialogue.nothing_until_ping().await;
    let mut answers = elements(&dialogue.answer().await);
    answers.sort();
    assert_eq!(answers.len(), 6, "{answers:#?}");
    let expected = [
        r#"{"jsonrpc":"2.0","id":"u","error":{"code":-32601,"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"content":[],  "x":1}}"#,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"Invalid request: duplicate key"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a batch cannot be part"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message must be an object"#,
    ];
    for (answer, expected) in answers.iter().zip(expected) {
        assert!(answer.starts_with(expected), "{answer}");
    }
    assert_eq!(dialogue.gateway.counters.malformed.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_batch_that_is_due_no_answer_gets_none() {
    let mut dialogue = Dialogue::ready().await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/unheard/of"}"#;
    let answer = r#"{"jsonrpc":"2.0","id":99,"result":{}}"#;
    let bad_note = r#"{"jsonrpc":"2.0","method":"notifications/x","params":5}"#;
    dialogue.send(&format!("[{note},{answer},{bad_note}]")).await;
    dialogue.nothing_until_ping().await;
}

#[tokio::test]
async fn a_cancelled_call_is_left_out_and_the_batch_ends_without_it() {
    let mut dialogue = Dialogue::ready().await;
    let cancel =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
    dialogue.send(&format!("[{},{}]", call(1, "never"), ping(2))).await;
    dialogue.nothing_until_ping().await;
    dialogue.send(&cancel(1)).await;
    dialogue.expect(&format!("[{}]", pong(2))).await;
    dialogue.send(&format!("[{},{},{}]", call(3, "never"), cancel(3), ping(4))).await;
    dialogue.expect(&format!("[{}]", pong(4))).await;
    dialogue.send(&format!("[{},{}]", call(5, "never"), cancel(5))).await;
    dialogue.nothing_until_ping().await;
}

#[tokio::test]
async fn what_is_no_batch_is_refused_as_a_whole() {
    let mut dialogue = Dialogue::ready().await;
    let long = format!("[{}]", vec![ping(1); 1000].join(","));
    let deep = "[".repeat(200);
    for (line, expected) in [
        ("[]", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: the batch is empty"#),
        (
            &*long,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: the batch holds more than 100"#,
        ),
        (
            &*format!("[{},{INITIALIZE}]", ping(1)),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: initialize must not"#,
        ),
        (&*format!("[{}", ping(1)), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"#),
        (&*format!("[{},{{\"a\" 1}}]", ping(1)), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"#),
        (&*deep, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"#),
    ] {
        dialogue.send(line).await;
        let answer = dialogue.answer().await;
        assert!(answer.starts_with(expected), "{answer}");
        dialogue.nothing_until_ping().await;
    }
    dialogue.send(&format!("{deep}{}", "]".repeat(200))).await;
    let answers = elements(&dialogue.answer().await);
    assert!(answers.len() == 1 && answers[0].contains("-32600"), "{answers:?}");
}

#[tokio::test]
async fn an_id_that_occurs_twice_is_refused_the_second_time() {
    let mut dialogue = Dialogue::ready().await;
    dialogue.send(&format!("[{},{}]", ping(1), ping(1))).await;
    let mut answers = elements(&dialogue.answer().await);
    answers.sort();
    assert_eq!(answers[1], pong(1));
    assert!(answers[0].starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"#), "{answers:?}");
}

#[tokio::test]
async fn only_a_session_of_2025_03_26_has_batches_and_none_of_the_new_era() {
    let mut dialogue = Dialogue::new();
    let refused = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a batch is served only in a session that has agreed on revision 2025-03-26"#;
    dialogue.send(&format!("[{INITIALIZE}]")).await;
    let answer = dialogue.answer().await;
    assert!(answer.starts_with(refused), "{answer}");
    dialogue.send(&INITIALIZE.replace("2025-03-26", "2025-06-18")).await;
    dialogue.answer().await;
    dialogue.send(INITIALIZED).await;
    dialogue.send(&format!("[{}]", ping(1))).await;
    let answer = dialogue.answer().await;
    assert!(answer.starts_with(refused), "{answer}");

    let mut dialogue = Dialogue::ready().await;
    let modern = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    dialogue.send(&format!("[{modern}]")).await;
    let answer = dialogue.answer().await;
    let expected = r#"[{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Invalid request: a request of revision 2026-07-28 cannot"#;
    assert!(answer.starts_with(expected), "{answer}");
}

#[tokio::test]
async fn at_the_end_of_the_input_a_batch_is_answered_as_far_as_it_can_be() {
    let mut dialogue = Dialogue::ready().await;
    dialogue.send(&format!("[{},{}]", call(1, "slow"), ping(2))).await;
    let (rest, ended) = dialogue.end().await;
    assert!(ended.is_ok());
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(elements(&rest[0]).len(), 2);
}
