//! Dialogues over a pair of pipes with a gateway that has one small backend.

mod batches;

use super::*;
use crate::in_process::{InProcessConnector, ServerChannels};
use signalbox_engine::back::Wish;
use signalbox_engine::{Caller, Fact, FactSink, Principal};
use signalbox_runtime::{Backend, BackendSpec, BoxFuture, GatewayParts, Settings};
use signalbox_wire::{builder, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"claude-code","version":"1.0.0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const STUB: &str = r#"{"name":"stub_tool","description":"A stub.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"x":1}"#;

/// A server of the old era with one tool; `slow` takes a while and `never` is never answered.
fn stub(visitor: ServerChannels) -> BoxFuture<()> {
    let ServerChannels { incoming: mut inbox, outgoing: outbox, .. } = visitor;
    Box::pin(async move {
        while let Some(bytes) = inbox.recv().await {
            let message = Envelope::parse(bytes).unwrap();
            let (Some(id), Some(method)) = (message.id(), message.method()) else {
                continue;
            };
            let params = message.params().unwrap_or(b"{}");
            let name = json::member(params, "name").and_then(|span| json::string(span.of(params)));
            let reply = match (method, name.as_deref()) {
                ("initialize", _) => builder::response(
                    &id,
                    br#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}"#,
                ),
                ("tools/list", _) => {
                    let never = STUB.replace("stub_tool", "never");
                    let slow = STUB.replace("stub_tool", "slow");
                    builder::response(&id, format!(r#"{{"tools":[{STUB},{never},{slow}]}}"#).as_bytes())
                }
                ("tools/call", Some("never")) => continue,
                ("tools/call", Some("slow")) => {
                    let (outbox, id) = (outbox.clone(), id.clone());
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        let _ = outbox.send(builder::response(&id, br#"{"content":[]}"#)).await;
                    });
                    continue;
                }
                ("tools/call", _) => builder::response(&id, b"{\"content\":[],\n \"x\":1}"),
                _ => builder::error(Some(&id), -32601, "no such method", None),
            };
            let _ = outbox.send(reply).await;
        }
    })
}

fn gateway(settings: Settings, facts: Vec<Arc<dyn FactSink>>) -> Arc<Gateway> {
    let spec = BackendSpec {
        timeout: Duration::from_secs(10),
        start_timeout: Duration::from_secs(10),
        max_children: 1,
        wish: Wish::Auto,
        strict: Some(settings.limits),
        failing: signalbox_runtime::FailureRules::default(),
        lifetime: signalbox_runtime::Lifetime::default(),
        questions: signalbox_runtime::QuestionTime::default(),
        source: 0,
        allows: Box::new(|_| true),
    };
    let backend = Backend::new("stub", Arc::new(InProcessConnector::new("stub", stub)), spec);
    let gateway = Gateway::new(GatewayParts {
        facts,
        principal: Principal::local("me"),
        ..GatewayParts::unguarded(settings, vec![backend]).unwrap()
    })
    .unwrap();
    gateway.start();
    gateway
}

/// The client's end.
struct Dialogue {
    gateway: Arc<Gateway>,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    served: JoinHandle<Result<(), StdioError>>,
}

impl Dialogue {
    fn with(settings: Settings, drain: Duration) -> Self {
        Self::told(settings, drain, Vec::new())
    }

    fn told(settings: Settings, drain: Duration, facts: Vec<Arc<dyn FactSink>>) -> Self {
        let gateway = gateway(settings, facts);
        let (input, theirs) = tokio::io::duplex(1024);
        let (to, output) = tokio::io::duplex(1024);
        let served = tokio::spawn(serve(theirs, to, Arc::clone(&gateway), Caller::local("me", "stdio"), drain));
        Self { gateway, input, output: BufReader::new(output).lines(), served }
    }

    fn new() -> Self {
        Self::with(Settings::default(), Duration::from_secs(5))
    }

    async fn ready() -> Self {
        let mut dialogue = Self::new();
        dialogue.send(INITIALIZE).await;
        dialogue.answer().await;
        dialogue.send(INITIALIZED).await;
        dialogue
    }

    async fn send(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// The next line that is not about lists that changed: when those come depends on the backend.
    async fn answer(&mut self) -> String {
        loop {
            let line = timeout(Duration::from_secs(5), self.output.next_line()).await;
            let line = line.expect("an answer in time").unwrap().expect("an answer before the end");
            if !line.contains("list_changed") {
                return line;
            }
        }
    }

    async fn expect(&mut self, expected: &str) {
        assert_eq!(self.answer().await, expected);
    }

    /// A ping comes back next, so nothing else was said before it.
    async fn nothing_until_ping(&mut self) {
        self.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
        self.expect(r#"{"jsonrpc":"2.0","id":"p","result":{}}"#).await;
    }

    /// Closes the input and gives what is still said.
    async fn end(mut self) -> (Vec<String>, Result<(), StdioError>) {
        drop(self.input);
        let mut rest = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            if !line.contains("list_changed") {
                rest.push(line);
            }
        }
        (rest, self.served.await.unwrap())
    }
}

/// Proves N-1, N-3, N-25, N-44 and N-45.
#[tokio::test]
async fn the_specified_example_messages_are_answered_as_specified() {
    let mut dialogue = Dialogue::new();
    dialogue.send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{"listChanged":true},"sampling":{}},"clientInfo":{"name":"claude-code","version":"1.0.0"}}}"#).await;
    let answer = dialogue.answer().await;
    assert!(
        answer.starts_with(
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"#
        ),
        "{answer}"
    );
    assert!(answer.contains(r#""serverInfo":{"name":"signalbox","version":""#), "{answer}");
    dialogue.send(INITIALIZED).await;
    dialogue.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    let never = STUB.replace("stub_tool", "never");
    let slow = STUB.replace("stub_tool", "slow");
    dialogue.expect(&format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":[{STUB},{never},{slow}]}}}}"#)).await;
    dialogue.send(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await;
    dialogue.expect(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#).await;
    assert!(matches!(dialogue.end().await, (rest, Ok(())) if rest.is_empty()));
}

/// Proves N-9, N-10 and N-38.
#[tokio::test]
async fn before_it_is_ready_only_ping_is_served() {
    let mut dialogue = Dialogue::new();
    dialogue.nothing_until_ping().await;
    for _ in 0..2 {
        dialogue.send(r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#).await;
        let answer = dialogue.answer().await;
        assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32002,"#), "{answer}");
        dialogue.send(INITIALIZE).await;
        let _ = dialogue.answer().await;
    }
}

/// Proves N-24, N-27 and N-38.
#[tokio::test]
async fn a_notification_is_never_answered() {
    let mut dialogue = Dialogue::new();
    for early in [
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        INITIALIZED,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":5}"#,
    ] {
        dialogue.send(early).await;
        dialogue.nothing_until_ping().await;
    }
    let mut dialogue = Dialogue::ready().await;
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/unheard/of"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"stub_tool"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{"a":1,"a":2}}"#,
        "",
        "   ",
    ] {
        dialogue.send(line).await;
        dialogue.nothing_until_ping().await;
    }
}

/// Proves N-23.
#[tokio::test]
async fn what_cannot_be_read_is_answered_and_the_next_line_works() {
    let limits = signalbox_wire::Limits { line: 512, ..Default::default() };
    let mut dialogue = Dialogue::with(Settings { limits, ..Settings::default() }, Duration::from_secs(5));
    for (line, expected) in [
        ("{".to_owned(), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: "#),
        ("hello".to_owned(), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: "#),
        (
            "[]".to_owned(),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a batch is served only"#,
        ),
        (r#"{"jsonrpc":"2.0","id":5}"#.to_owned(), r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"#),
        ("x".repeat(5000), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#),
        ("y".repeat(513), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#),
    ] {
        dialogue.send(&line).await;
        let answer = dialogue.answer().await;
        assert!(answer.starts_with(expected), "{line}: {answer}");
        dialogue.nothing_until_ping().await;
    }
    assert_eq!(dialogue.gateway.counters.malformed.load(std::sync::atomic::Ordering::Relaxed), 6);
}

/// Proves N-13, N-15 and N-38.
#[tokio::test]
async fn an_answer_with_line_breaks_is_one_line() {
    let mut dialogue = Dialogue::ready().await;
    dialogue.send(r#"{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"stub_tool"}}"#).await;
    dialogue.expect(r#"{"jsonrpc":"2.0","id":7.0,"result":{"content":[],  "x":1}}"#).await;
}

/// Proves N-26.
#[tokio::test]
async fn at_the_end_of_the_input_calls_in_flight_are_answered() {
    let mut dialogue = Dialogue::ready().await;
    dialogue.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    dialogue.send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow"}}"#).await;
    // The last line lacks its end.
    dialogue.input.write_all(br#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#).await.unwrap();
    let gateway = Arc::clone(&dialogue.gateway);
    let (mut rest, served) = dialogue.end().await;
    rest.sort();
    served.unwrap();
    assert_eq!(rest.len(), 3, "{rest:?}");
    assert_eq!(rest[1], r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#);
    assert!(gateway.sessions.is_empty());
}

/// Proves N-26.
#[tokio::test]
async fn a_call_that_is_not_answered_in_time_does_not_hold_up_the_end() {
    let mut dialogue = Dialogue::with(Settings::default(), Duration::from_millis(100));
    dialogue.send(INITIALIZE).await;
    dialogue.send(INITIALIZED).await;
    dialogue.send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"never"}}"#).await;
    let begun = Instant::now();
    let (_, served) = dialogue.end().await;
    served.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_listen_request_of_the_new_era_does_not_hold_up_the_end() {
    let mut dialogue = Dialogue::new();
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let params = format!(r#"{{{meta},"notifications":{{"toolsListChanged":true}}}}"#);
    dialogue.send(&format!(r#"{{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{params}}}"#)).await;
    let acknowledged = dialogue.answer().await;
    assert!(acknowledged.contains("notifications/subscriptions/acknowledged"), "{acknowledged}");
    let begun = Instant::now();
    dialogue.end().await.1.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2));
}

/// Proves N-14.
#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_from_and_loses_nothing() {
    const COUNT: usize = 5000;
    let Dialogue { gateway, mut input, mut output, served } = Dialogue::new();
    let writing = tokio::spawn(async move {
        for id in 0..COUNT {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
            input.write_all(line.as_bytes()).await.unwrap();
        }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!writing.is_finished());
    for id in 0..COUNT {
        let line = output.next_line().await.unwrap().unwrap();
        assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
    writing.await.unwrap();
    served.await.unwrap().unwrap();
    assert!(gateway.counters.all_dropped().is_empty());
}

/// 64 lines wait for the session; the next ones stay with the reader and in the pipe until there is room.
/// Proves N-14 and N-30.
#[tokio::test]
async fn the_reader_waits_when_64_lines_wait() {
    const COUNT: usize = 1000;
    let (mut input, read_from) = tokio::io::duplex(1 << 20);
    input.write_all("{}\n".repeat(COUNT).as_bytes()).await.unwrap();
    drop(input);
    let (sender, mut lines) = mpsc::channel(QUEUE);
    let reading = tokio::spawn(read(read_from, 1 << 20, ReadCharge::new(None), sender));
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!((lines.len(), reading.is_finished()), (64, false));
    let mut read = 0;
    while lines.recv().await.is_some_and(|line| line.is_ok()) {
        read += 1;
    }
    assert_eq!(read, COUNT, "nothing is lost");
}

#[tokio::test]
async fn a_closed_output_ends_the_session() {
    let mut dialogue = Dialogue::ready().await;
    drop(dialogue.output);
    dialogue.input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
    assert!(matches!(dialogue.served.await.unwrap(), Err(StdioError::Output(_))));
    assert!(dialogue.gateway.sessions.is_empty());
}

#[tokio::test]
async fn a_shutdown_ends_the_front() {
    let mut dialogue = Dialogue::ready().await;
    dialogue.send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow"}}"#).await;
    dialogue.nothing_until_ping().await;
    dialogue.gateway.shut_down(Duration::from_secs(5)).await;
    dialogue.expect(r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#).await;
    dialogue.served.await.unwrap().unwrap();
}

/// A sink that has room for facts when it is told so.
struct Crowded(tokio::sync::watch::Sender<bool>);

impl FactSink for Crowded {
    fn wants_messages(&self) -> bool {
        true
    }

    fn room(&self, _bytes: usize) -> Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> {
        let mut room = self.0.subscribe();
        if *room.borrow() {
            return None;
        }
        Some(Box::pin(async move {
            let _ = room.wait_for(|room| *room).await;
        }))
    }

    fn fact(&self, _: &Fact) {}
}

/// A full queue of facts makes clients and backends wait, and no thread: this test has only one.
#[tokio::test]
async fn the_next_message_is_taken_when_there_is_room_for_what_is_told_of_it() {
    let sink = Arc::new(Crowded(tokio::sync::watch::Sender::new(false)));
    let mut dialogue = Dialogue::told(Settings::default(), Duration::from_secs(5), vec![Arc::clone(&sink) as _]);
    dialogue.send(INITIALIZE).await;
    while sink.0.receiver_count() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(timeout(Duration::from_millis(50), dialogue.output.next_line()).await.is_err(), "answered without room");
    sink.0.send_replace(true);
    assert!(dialogue.answer().await.contains("serverInfo"));
}
