//! Writes the golden stores: every kind of entry, in every form that a store keeps.

use crate::postgres_server::PostgresServer;
use crate::{golden, show};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Body, Content, DecisionEntry, Entry, FinishedEntry, Gap, MessageEntry, MessageKind, Retention, SessionInfo,
    TapeInfo, TapeKind, TapeStore,
};
use signalbox_store::{PostgresStore, SqliteStore};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const START: u64 = 1_790_000_000_000_000_000;
const DAY: u64 = 24 * 3_600 * 1_000_000_000;

#[test]
#[ignore = "writes the golden stores anew, which nobody should need"]
fn the_golden_stores_are_written() {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(golden(&format!("version-1.db{end}")));
    }
    let store = SqliteStore::open(golden("version-1.db")).unwrap();
    small(&store);
    many(&store);
    drop(store);
    let store = SqliteStore::open(golden("version-1.db")).unwrap();
    std::fs::write(golden("version-1.sqlite.txt"), show::all(&store)).unwrap();
    drop(store);
    let server = PostgresServer::start().unwrap();
    let url = server.database();
    let store = PostgresStore::open(&url).unwrap();
    small(&store);
    std::fs::write(golden("version-1.postgres.txt"), show::all(&store)).unwrap();
    let dumped = Command::new("pg_dump")
        .args(["--inserts", "--rows-per-insert=20", "--no-owner", "--no-acl", "--schema=signalbox", &url])
        .output()
        .unwrap();
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    let text = String::from_utf8(dumped.stdout).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("--") && !line.starts_with('\\'));
    std::fs::write(golden("version-1.sql"), lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

fn small(store: &dyn TapeStore) {
    pruned(store);
    everything(store);
    backwards(store);
    open_end(store);
}

fn info(id: &str, kind: TapeKind, started: u64) -> TapeInfo {
    TapeInfo {
        id: id.into(),
        kind,
        target: "signalbox.toml".into(),
        started,
        ended: None,
        program: "0.1.0".into(),
        redaction: Vec::new(),
        sampling: "all".into(),
    }
}

/// A tape under way.
struct Tape {
    entries: Vec<Entry>,
    at: u64,
    session: Option<u64>,
    exchange: Option<u64>,
    principal: Arc<str>,
}

impl Tape {
    fn new(at: u64) -> Self {
        Self { entries: Vec::new(), at, session: Some(1), exchange: None, principal: "local".into() }
    }

    fn next(&self) -> u64 {
        self.entries.last().map_or(1, |entry| entry.seq + 1)
    }

    fn put_at(&mut self, seq: u64, content: Content) -> u64 {
        self.at += 1_000_000;
        let (session, exchange, principal) = (self.session, self.exchange, self.principal.clone());
        self.entries.push(Entry { seq, at: self.at, session, exchange, principal, content });
        seq
    }

    fn put(&mut self, content: Content) -> u64 {
        self.put_at(self.next(), content)
    }

    /// A tool call: whole at the client, changed a little toward the backend, and back.
    fn call(&mut self, exchange: u64, tool: &str, question: &str, answer: &str) {
        self.exchange = Some(exchange);
        let asked = format!(
            r#"{{"jsonrpc":"2.0","id":{exchange},"method":"tools/call","params":{{"name":"{tool}","arguments":{question}}}}}"#
        );
        let first = self.put(message(Point::ClientIn, MessageKind::Request, tool, whole(asked.as_bytes())));
        let length = asked.len() as u64;
        let middle = Bytes::from(format!("9{exchange:03}"));
        let digits = exchange.to_string().len() as u64;
        let like = Body::Like { seq: first, prefix: 22, suffix: length - 22 - digits, middle };
        self.put(message(Point::BackendOut, MessageKind::Request, tool, like));
        let answered = format!(r#"{{"jsonrpc":"2.0","id":{exchange},"result":{answer}}}"#);
        let second = self.put(message(Point::BackendIn, MessageKind::Result, tool, whole(answered.as_bytes())));
        let like = Body::Like { seq: second, prefix: answered.len() as u64, suffix: 0, middle: Bytes::new() };
        self.put(message(Point::ClientOut, MessageKind::Result, tool, like));
    }

    fn finish(&mut self, tool: Option<&str>, outcome: &'static str, took: u64) {
        self.put(Content::Finished(FinishedEntry {
            method: "tools/call".into(),
            subject: tool.map(Arc::from),
            backend: (outcome != "refused").then(|| "weather".into()),
            outcome: outcome.into(),
            took,
            bytes_in: 110 + took % 7,
            bytes_out: 220,
        }));
        self.exchange = None;
    }
}

fn whole(bytes: &[u8]) -> Body {
    Body::Whole(Bytes::copy_from_slice(bytes))
}

fn message_of(
    point: Point,
    kind: MessageKind,
    method: Option<&str>,
    subject: Option<&str>,
    body: Body,
) -> MessageEntry {
    let length = match &body {
        Body::Whole(bytes) => bytes.len() as u64,
        Body::Like { prefix, suffix, middle, .. } => prefix + suffix + middle.len() as u64,
        Body::Left => 20_000_000,
    };
    MessageEntry {
        point,
        kind,
        method: method.map(Arc::from),
        subject: subject.map(Arc::from),
        backend: matches!(point, Point::BackendIn | Point::BackendOut).then(|| "weather".into()),
        error_code: (kind == MessageKind::Error).then_some(-32_001),
        length,
        body,
    }
}

fn message(point: Point, kind: MessageKind, tool: &str, body: Body) -> Content {
    Content::Message(message_of(point, kind, Some("tools/call"), Some(tool), body))
}

fn decision(rule: Option<&str>, verdict: &'static str, inputs: Vec<(&'static str, &str)>) -> Arc<DecisionEntry> {
    Arc::new(DecisionEntry {
        by: if rule.is_some() { "rules" } else { "route" }.into(),
        rule: rule.map(Arc::from),
        phase: "request".into(),
        verdict: verdict.into(),
        detail: format!("„{verdict}“ \\ was the \0 word of it"),
        conditions: if rule.is_some() {
            [("tool equals `wetter`".into(), true), ("hour is after 18 Uhr, ±1".into(), false)].into()
        } else {
            [].into()
        },
        inputs: inputs.into_iter().map(|(name, input)| (name.into(), input.to_owned())).collect(),
    })
}

fn session(client: bool) -> Content {
    let told = |text: &str| client.then(|| text.to_owned());
    Content::Session(SessionInfo {
        external: told("s-0c1d\\2e"),
        client: told("café-code"),
        client_version: told("2.1"),
        revision: told("2025-11-25"),
        transport: if client { "http" } else { "stdio" }.into(),
    })
}

/// Something of everything.
fn everything(store: &dyn TapeStore) {
    let head = TapeInfo {
        target: "http://127.0.0.1:8080/mcp für Zoë".into(),
        redaction: vec!["key password: replace".into(), "path /params/arguments/card: hash".into()],
        sampling: "share 0.5".into(),
        ..info("20260921T142640-1", TapeKind::Serve, START)
    };
    let mut writer = store.begin(&head).unwrap();
    let mut tape = Tape::new(START);
    tape.put(Content::Session(SessionInfo { transport: "http".into(), ..SessionInfo::default() }));
    tape.put(session(true));
    tape.call(
        1,
        "weather__wetter",
        r#"{"ort":"Århus","customer_id":4711}"#,
        r#"{"content":[{"type":"text","text":"Grüße aus Århus, das Wetter ist gut: 天気"}]}"#,
    );
    tape.finish(Some("weather__wetter"), "success", 12_000_000);
    tape.session = Some(2);
    tape.put(session(false));
    tape.exchange = Some(2);
    let question = r#"{"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"files__delete","arguments":{"password":"[redacted]","path":"the red fox"}}}"#;
    tape.put(message(Point::ClientIn, MessageKind::Request, "files__delete", whole(question.as_bytes())));
    tape.put(Content::Decisions(vec![
        decision(None, "pass", vec![]),
        decision(Some("no-deletes"), "refuse", vec![("clock", "2026-09-21T14:26:40Z"), ("human", "Zoë sagte nein")]),
    ]));
    let refused = br#"{"jsonrpc":"2.0","id":"2","error":{"code":-32001,"message":"the fox is red"}}"#;
    tape.put(message(Point::ClientOut, MessageKind::Error, "files__delete", whole(refused)));
    tape.finish(Some("files__delete"), "refused", 400_000);
    odds(&mut tape);
    tape.session = Some(1);
    tape.put(Content::SessionEnded);
    writer.append(&tape.entries[..9], true).unwrap();
    writer.append(&tape.entries[9..], false).unwrap();
    writer.end(START + 60_000_000_000).unwrap();
}

/// Messages without a session, of every kind at every point, and bodies of every form.
fn odds(tape: &mut Tape) {
    tape.session = None;
    tape.principal = "zoë \\ \0 ann".into();
    tape.exchange = Some(3);
    let slow = br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow","arguments":{}}}"#;
    let base = tape.put(message(Point::ClientIn, MessageKind::Request, "weather__slow", whole(slow)));
    let like = Body::Like { seq: base, prefix: 50, suffix: 3, middle: Bytes::from_static(b" shouted \xc3\x85") };
    tape.put(message(Point::BackendOut, MessageKind::Request, "weather__slow", like));
    tape.put(Content::Decisions(vec![decision(Some("später"), "delay", vec![("random", "0.25")])]));
    tape.put(message(Point::ClientOut, MessageKind::Error, "weather__slow", Body::Left));
    tape.finish(Some("weather__slow"), "timeout", 30_000_000_000);
    for (place, point) in
        [Point::ClientIn, Point::BackendOut, Point::BackendIn, Point::ClientOut].into_iter().enumerate()
    {
        for kind in MessageKind::ALL {
            let text = format!("{{\"n\":{place},\"kind\":\"{}\"}}", kind.word());
            let method = (kind != MessageKind::Raw).then_some(if place % 2 == 0 { "ping" } else { "resources/read" });
            let message = message_of(point, kind, method, None, whole(text.as_bytes()));
            tape.put(Content::Message(MessageEntry { backend: Some("büro".into()), ..message }));
        }
    }
    let raw = [&b"Server started\x07"[..], b"\xff\xfe\x00 not UTF-8", b"", b"\0"];
    for bytes in raw {
        tape.put(Content::Message(message_of(Point::BackendIn, MessageKind::Raw, None, None, whole(bytes))));
    }
    // Larger than what a dictionary helps with, and one that hardly becomes smaller.
    let large = format!("{{\"text\":\"{} sediment\"}}", "layer upon layer ".repeat(1_200));
    let uri = Some("file:///Straße.txt");
    let read =
        |body| Content::Message(message_of(Point::BackendIn, MessageKind::Result, Some("resources/read"), uri, body));
    tape.put(read(whole(large.as_bytes())));
    let noise: Vec<u8> = (0..500u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    tape.put(read(whole(&noise)));
    // The base of the first is not there, and that of the second is not whole itself.
    for seq in [4_000, 4] {
        tape.put(read(Body::Like { seq, prefix: 1, suffix: 0, middle: Bytes::new() }));
    }
    tape.put(Content::Gap(Gap { facts: 12, reason: "queue_full".into() }));
    let far = tape.next() + 2_000;
    tape.put_at(far, read(Body::Like { seq: base, prefix: slow.len() as u64, suffix: 0, middle: Bytes::new() }));
}

/// A tape that came from elsewhere, whose clock went backwards.
fn backwards(store: &dyn TapeStore) {
    let mut tape = Tape::new(START - 5 * DAY);
    tape.call(1, "weather__wetter", r#"{"ort":"Köln"}"#, r#"{"content":[]}"#);
    tape.finish(None, "tool_error", 2_000_000_000);
    tape.at -= 60_000_000_000;
    tape.call(2, "weather__wetter", r#"{"ort":"red fox"}"#, r#"{"content":[],"isError":true}"#);
    tape.finish(Some("weather__wetter"), "cancelled", 5_000_000);
    let head = TapeInfo { ended: Some(START - 4 * DAY), ..info("20260916T142640-7", TapeKind::Wrap, START - 5 * DAY) };
    assert_eq!(store.import(&head, &mut tape.entries.into_iter().map(Ok)), Ok(10));
}

/// A tape whose beginning was pruned, so that the first that referred to it took its place.
fn pruned(store: &dyn TapeStore) {
    let mut tape = Tape::new(START - 30 * DAY);
    let list = format!("{{\"tools\":[{}]}}", "\"tool with a name\",".repeat(40));
    tape.put(message(Point::BackendIn, MessageKind::Result, "lists", whole(list.as_bytes())));
    tape.call(1, "weather__wetter", r#"{"ort":"Ulm"}"#, "{}");
    tape.finish(Some("weather__wetter"), "success", 1_000_000);
    tape.at = START - 10 * DAY;
    for middle in ["", "X", "\"Ä\""] {
        let prefix = list.len() as u64 - 1;
        let body = Body::Like { seq: 1, prefix, suffix: 1, middle: Bytes::from_static(middle.as_bytes()) };
        tape.put(message(Point::ClientOut, MessageKind::Result, "lists", body));
    }
    tape.call(2, "weather__wetter", r#"{"ort":"Rom"}"#, "{}");
    tape.finish(Some("weather__wetter"), "success", 3_000_000);
    let mut writer = store.begin(&info("20260822T142640-3", TapeKind::Proxy, START - 30 * DAY)).unwrap();
    writer.append(&tape.entries, false).unwrap();
    writer.end(START - 9 * DAY).unwrap();
    let retention = Retention { max_age: Some(Duration::from_secs(20 * 24 * 3_600)), ..Retention::default() };
    assert_eq!(store.prune(&retention, START).unwrap().entries, 6);
}

/// A tape without an end, not indexed where that waits.
fn open_end(store: &dyn TapeStore) {
    let mut tape = Tape::new(START + DAY);
    tape.put(session(true));
    for exchange in 1..=5 {
        let answer = format!(r#"{{"content":[{{"type":"text","text":"a red fox, {exchange} times"}}]}}"#);
        tape.call(exchange, "zoo__fox", "{}", &answer);
        tape.finish(Some("zoo__fox"), if exchange == 4 { "error" } else { "success" }, exchange * 700_000_000);
    }
    let mut writer = store.begin(&info("20260922T142640-2", TapeKind::Stdio, START + DAY)).unwrap();
    writer.append(&tape.entries, false).unwrap();
}

/// A tape of many small bodies, the last of which are squeezed by a dictionary made of the first.
fn many(store: &dyn TapeStore) {
    let mut tape = Tape::new(START + 2 * DAY);
    for n in 1..=440u64 {
        let text = format!("invoice {n} was sent by the usual clerk on day {} of a rainy month", n % 31);
        tape.put(message(Point::ClientIn, MessageKind::Notification, "clerk", whole(text.as_bytes())));
    }
    let mut writer = store.begin(&info("20260923T142640-4", TapeKind::Serve, START + 2 * DAY)).unwrap();
    let (first, last) = tape.entries.split_at(410);
    writer.append(first, false).unwrap();
    while writer.idle().unwrap() {}
    writer.append(last, false).unwrap();
    writer.end(START + 3 * DAY).unwrap();
}
