//! Mutated messages at each front: every one is answered as it deserves, and nothing is harmed.

use super::mutate::{LEGACY, MODERN, Mutator};
use super::pipe::Pipe;
use super::raw::{Raw, Reply};
use super::{asked_for, fixture_config, gateway, memory, no_panic, session, unharmed, works};
use bytes::Bytes;
use serde_json::Value;
use signalbox_wire::{Envelope, Kind, Limits, RawId, scan};
use std::collections::HashMap;

/// Messages for each front, unless `MCP_TEST_MUTATIONS` says otherwise.
const MESSAGES: usize = 3_000;
/// After how many the gateway must show that it still works.
const CHECK: usize = 500;
/// How much memory the process may have gained at the end, in KiB. It gains 50 to 90 MiB in the first 3,000 messages,
/// which the allocator keeps, and no more in 300,000; all messages together are over 1 GiB.
const GROWTH: u64 = 160 * 1024;
/// Connections that mutate at the same time.
const CONNECTIONS: usize = 4;

fn messages() -> usize {
    asked_for().unwrap_or(MESSAGES)
}

/// What a message is to the gateway.
enum Verdict {
    /// Not JSON, or JSON that is no message: the code, and the id where it could be read.
    Refused(i64, Option<RawId>),
    /// A request with this id.
    Request(RawId),
    /// What gets no answer.
    Silent,
}

fn judge(bytes: &[u8]) -> Verdict {
    if let Err(error) = scan(bytes, &Limits::default()) {
        return Verdict::Refused(error.code(), None);
    }
    match Envelope::parse(Bytes::copy_from_slice(bytes)) {
        Err(rejected) => Verdict::Refused(rejected.error.code(), rejected.id),
        Ok(message) => match (message.kind(), message.id()) {
            (Kind::Request, Some(id)) => Verdict::Request(id),
            _ => Verdict::Silent,
        },
    }
}

/// An id as another parser reads it.
fn read_id(id: &RawId) -> Value {
    serde_json::from_slice(id.token()).expect("an id that passed the scan")
}

/// The beginning and the end of a message.
fn shown(bytes: &[u8]) -> String {
    let (head, tail) = (&bytes[..bytes.len().min(400)], &bytes[bytes.len().saturating_sub(400)..]);
    format!("{} [of {} bytes] {}", String::from_utf8_lossy(head), bytes.len(), String::from_utf8_lossy(tail))
}

fn is_message(message: &Value) -> bool {
    let answer = message.get("result").is_some() != message.get("error").is_some() && message.get("id").is_some();
    message["jsonrpc"] == "2.0" && (message["method"].is_string() || answer)
}

/// The reply to a message is what it deserves.
fn check(bytes: &[u8], reply: &Reply, modern: bool) {
    let told = || format!("{}\n{reply:?}\n{}", shown(bytes), shown(&reply.body));
    assert!(reply.status < 500, "{}", told());
    let messages = reply.messages().unwrap_or_else(|error| panic!("{error:#}: {}", told()));
    assert!(messages.iter().all(is_message), "{}", told());
    let answers = messages.iter().filter(|message| message["method"].is_null()).count();
    match judge(bytes) {
        Verdict::Refused(code, id) => {
            assert_eq!((reply.status, answers, reply.code()), (400, 1, code), "{}", told());
            let expected = id.as_ref().map_or(Value::Null, read_id);
            assert_eq!(messages.last().unwrap()["id"], expected, "{}", told());
        }
        Verdict::Request(id) => {
            assert_eq!(answers, 1, "{}", told());
            assert_eq!(messages.last().unwrap()["id"], read_id(&id), "{}", told());
        }
        Verdict::Silent => {
            assert!(reply.status == 202 && answers == 0 || modern && reply.status == 400, "{}", told());
        }
    }
}

/// Sends the messages of one connection to a session of the old era.
async fn mutate_legacy(mut client: Raw, seed: u64, count: usize) {
    let mut random = Mutator::new(seed);
    let lines = session(&mut client).await;
    for done in 1..=count {
        let bytes = random.next(LEGACY);
        let reply = client.post(&lines, &bytes).await.unwrap_or_else(|error| panic!("{error:#}: {}", shown(&bytes)));
        check(&bytes, &reply, false);
        if let Some(id) = reply.header("mcp-session-id") {
            let end = format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {id}\r\n\r\n");
            client.write(end.as_bytes()).await.unwrap();
            assert_eq!(client.reply().await.unwrap().status, 200);
        }
        if done % CHECK == 0 {
            works(&mut client, &lines).await;
        }
    }
    works(&mut client, &lines).await;
}

/// The headers that belong to a seed of the new era; some of them are broken.
fn modern_headers(random: &mut Mutator, bytes: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes);
    let after = |key: &str| text.split(key).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let (method, name) = (after(r#""method":""#), after(r#""name":""#));
    let name = if name.is_empty() { after(r#""uri":""#) } else { name };
    let visible = |text: &str| text.chars().filter(|one| matches!(one, ' '..='~')).take(200).collect::<String>();
    let mut lines = format!(
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: {}\r\nmcp-name: {}\r\n",
        visible(method),
        visible(name)
    );
    let broken = random.below(8) == 0;
    if broken {
        let at = random.below(lines.len() - 2);
        let byte = [b' ', b'=', b'?', b':', b'\t', 0x7f, 0x01, b'A'][random.below(8)];
        lines.replace_range(at..=at, &char::from(byte).to_string());
    }
    (lines, broken)
}

async fn mutate_modern(mut client: Raw, seed: u64, count: usize) {
    const LIST: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut random = Mutator::new(seed);
    for done in 1..=count {
        let bytes = random.next(MODERN);
        let (lines, broken) = modern_headers(&mut random, &bytes);
        let reply = client.post(&lines, &bytes).await;
        let reply = reply.unwrap_or_else(|error| panic!("{error:#}: {lines:?} {}", shown(&bytes)));
        if !broken {
            check(&bytes, &reply, true);
        }
        assert!(reply.status < 500, "{lines:?} {}\n{reply:?}", shown(&bytes));
        if done % CHECK == 0 || done == count {
            let lines = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n";
            let reply = client.post(lines, LIST).await.unwrap();
            assert!(reply.messages().unwrap()[0]["result"]["tools"].is_array(), "{reply:?}");
        }
    }
}

async fn mutate_http(modern: bool) {
    let gateway = gateway().await;
    let pid = gateway.process.pid().unwrap();
    let before = memory(pid);
    let mut all = tokio::task::JoinSet::new();
    for one in 0..CONNECTIONS {
        let client = Raw::connect(gateway.address()).await.unwrap();
        let (seed, count) = (0x9E37_79B9 + 77 * one as u64, messages() / CONNECTIONS);
        if modern {
            all.spawn(mutate_modern(client, seed, count));
        } else {
            all.spawn(mutate_legacy(client, seed, count));
        }
    }
    while let Some(ended) = all.join_next().await {
        ended.unwrap();
    }
    unharmed(&gateway);
    let after = memory(pid);
    println!("{} messages; memory {before} KiB before, {after} KiB after", messages());
    assert!(after < before + GROWTH, "{before} KiB before, {after} KiB after");
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_messages_to_an_http_session() {
    mutate_http(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_messages_of_the_new_era_over_http() {
    mutate_http(true).await;
}

/// What came back over a pipe, against what was sent.
#[derive(Default)]
struct CallLog {
    requests: HashMap<String, usize>,
    refused: HashMap<String, usize>,
    parse_errors: usize,
    answers: HashMap<String, usize>,
    parse_answers: usize,
}

impl CallLog {
    fn sent(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            return;
        }
        match judge(line) {
            Verdict::Refused(-32700, _) => self.parse_errors += 1,
            Verdict::Refused(..) => {
                let id = Envelope::parse(Bytes::copy_from_slice(line));
                let id = id.map_or_else(|rejected| rejected.id, |message| message.id());
                // An id that is itself refused cannot be answered to.
                let id = id.and_then(|id| serde_json::from_slice(id.token()).ok()).unwrap_or(Value::Null);
                *self.refused.entry(id.to_string()).or_default() += 1;
            }
            Verdict::Request(id) => *self.requests.entry(read_id(&id).to_string()).or_default() += 1,
            Verdict::Silent => {}
        }
    }

    fn came(&mut self, messages: Vec<Value>) {
        for message in messages {
            assert!(is_message(&message), "{message}");
            if message["error"]["code"] == -32700 && message["id"].is_null() {
                self.parse_answers += 1;
            } else if message["method"].is_null() {
                *self.answers.entry(message["id"].to_string()).or_default() += 1;
            }
        }
    }

    fn unanswered(&self) -> Vec<&String> {
        let short = |(id, count): &(&String, &usize)| self.answers.get(*id).copied().unwrap_or(0) < **count;
        self.requests.iter().filter(short).map(|(id, _)| id).collect()
    }

    fn check(&self) {
        assert_eq!(self.parse_answers, self.parse_errors);
        assert!(self.unanswered().is_empty(), "{:?}", self.unanswered());
        for (id, count) in &self.answers {
            let may = self.requests.get(id).unwrap_or(&0) + self.refused.get(id).unwrap_or(&0);
            assert!(*count <= may, "{count} answers to {id}, which was sent {may} times");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_messages_to_a_pipe() {
    const TOGETHER: usize = 50;
    let seeds = [LEGACY, MODERN].concat();
    let mut pipe = Pipe::start(&fixture_config()).await.unwrap();
    let mut random = Mutator::new(0x5EED);
    let mut call_log = CallLog::default();
    let before = memory(pipe.pid().unwrap());
    for done in 1..=messages() {
        let mut line = random.next(&seeds);
        line.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        call_log.sent(&line);
        pipe.line(&line).await.unwrap();
        if done % TOGETHER == 0 {
            call_log.came(pipe.sync().await.unwrap());
        }
        if done % CHECK == 0 {
            assert!(pipe.pid().is_some(), "{}", pipe.errors());
        }
    }
    for _ in 0..100 {
        call_log.came(pipe.sync().await.unwrap());
        if call_log.unanswered().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    call_log.check();
    no_panic(&pipe.errors());
    let after = memory(pipe.pid().expect("the gateway lives"));
    println!("{} messages; memory {before} KiB before, {after} KiB after", messages());
    assert!(after < before + GROWTH, "{before} KiB before, {after} KiB after");
}
