//! A small tape with an entry of every kind. The files in `tests/golden` hold exactly this tape, so it must not change:
//! [`entries`] covers version 1, [`all_entries`] version 2.

use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::fact::{HttpHead, TransportData};
use signalbox_engine::record::{
    BackendOffer, Body, ClientEntry, Content, DecisionEntry, Entry, FinishedEntry, Gap, LostEntry, MessageEntry,
    MessageKind, RefusedEntry, RulesEntry, SessionInfo, TapeInfo, TapeKind,
};
use std::num::NonZeroU64;
use std::sync::Arc;

pub(crate) const START: u64 = 1_790_000_000_000_000_000;

pub(crate) fn info() -> TapeInfo {
    TapeInfo {
        id: "20260921T142640-1".into(),
        kind: TapeKind::Serve,
        target: "signalbox.toml".into(),
        started: START,
        ended: Some(START + 60_000_000_000),
        program: "0.1.0".into(),
        redaction: vec!["key password: replace".into()],
        sampling: "all".into(),
        parent: None,
        seal: None,
    }
}

/// Returns the same head with the fields that version 2 adds.
pub(crate) fn sealed_info() -> TapeInfo {
    TapeInfo { parent: Some("20260920T080000-1".into()), seal: Some([0, 159, 146, 150].into()), ..info() }
}

pub(crate) fn sessions() -> Vec<(u64, SessionInfo)> {
    let info = SessionInfo {
        external: Some("s-1".into()),
        client: Some("ann-code".into()),
        client_version: Some("2.1".into()),
        revision: Some("2025-11-25".into()),
        transport: "http".into(),
        ..SessionInfo::default()
    };
    vec![(1, info)]
}

/// Returns entries with a session, a blocked call, a modified call, a call that timed out, a call under a collided
/// name, a call without a session, a line that is not JSON, and a gap.
pub(crate) fn entries() -> Vec<Entry> {
    let mut tape = Tape::default();
    tape.add(Some(1), None, Content::Session(sessions().remove(0).1));
    tape.request(1, Point::ClientIn, "files__delete", r#"{"path":"/etc/passwd <b>"}"#, 1);
    tape.decision(1, "rules", Some("no-deletes"), "refuse", "deleting is not allowed here");
    tape.message(
        1,
        Point::ClientOut,
        MessageKind::Error,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}"#,
    );
    tape.finished(1, "files__delete", "refused", 400_000);

    tape.request(2, Point::ClientIn, "math__add", r#"{"a":1,"b":2}"#, 2);
    tape.decision(2, "rules", Some("double"), "modify", "b was set to 4");
    tape.like(
        2,
        Point::BackendOut,
        MessageKind::Request,
        "{\"jsonrpc\":\"2.0\",\"id\":",
        3,
        "9001,\"method\":\"tools/call\",\"params\":{\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":4}}}",
    );
    tape.message(
        2,
        Point::BackendIn,
        MessageKind::Result,
        r#"{"jsonrpc":"2.0","id":9001,"result":{"content":[{"type":"text","text":"5"}]}}"#,
    );
    tape.like(
        2,
        Point::ClientOut,
        MessageKind::Result,
        "{\"jsonrpc\":\"2.0\",\"id\":",
        11,
        "2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"5\"}]}}",
    );
    tape.finished(2, "math__add", "success", 12_000_000);

    tape.request(3, Point::ClientIn, "math__slow", "{}", 3);
    tape.decision(3, "route", None, "collided", "two backends have a tool `slow`; this one is math's");
    tape.request(3, Point::BackendOut, "slow", "{}", 9002);
    tape.decision(3, "timeout", None, "timeout", "math did not answer within 30 s");
    tape.message(
        3,
        Point::ClientOut,
        MessageKind::Error,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32002,"message":"timed out"}}"#,
    );
    tape.finished(3, "math__slow", "timeout", 30_000_000_000);

    tape.add(
        None,
        None,
        Content::Message(message(Point::BackendIn, MessageKind::Raw, Body::Whole("Server started\u{7}".into()))),
    );
    tape.add(None, None, Content::Gap(Gap { facts: 12, reason: "queue_full".into() }));
    tape.stateless = true;
    tape.request(4, Point::ClientIn, "math__add", r#"{"a":0}"#, 4);
    tape.add(
        None,
        Some(4),
        Content::Message(MessageEntry {
            length: 20_000_000,
            ..message(Point::ClientOut, MessageKind::Result, Body::Left)
        }),
    );
    tape.finished(4, "math__add", "success", 3_000_000);
    tape.add(Some(1), None, Content::SessionEnded);
    tape.entries
}

/// Adds the kinds of version 2: callers without a session, the offer of a backend, rules, the gateway's own traffic, a
/// repeated message, a lost one, a call of two rounds, HTTP heads, and a seal.
pub(crate) fn all_entries() -> Vec<Entry> {
    let mut tape = Tape { entries: entries(), stateless: true };
    tape.add(
        None,
        None,
        Content::Rules(RulesEntry { hash: "0badcafe".into(), text: "[[rules]]\n".into(), redacted: true }),
    );
    tape.add(None, None, Content::Backend(Box::new(backend())));
    let own = MessageEntry {
        own: true,
        number: 41,
        method: Some("ping".into()),
        ..message(
            Point::BackendOut,
            MessageKind::Request,
            Body::Whole(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into()),
        )
    };
    tape.add(None, None, Content::Message(own));
    tape.request(5, Point::ClientIn, "math__add", r#"{"a":5}"#, 5);
    tape.mark(|message| {
        message.number = 42;
        message.redacted = true;
        message.carried = Some(Arc::new(TransportData { event_id: None, http: Some(http()) }));
    });
    tape.message(5, Point::ClientOut, MessageKind::Result, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#);
    tape.mark(|message| {
        message.number = 43;
        message.again = NonZeroU64::new(42);
        message.lost = Some("closed".into());
        message.carried = Some(Arc::new(TransportData { event_id: Some("7_1".into()), http: None }));
    });
    tape.put(5, Content::Lost(LostEntry { number: 43, point: Point::ClientOut, reason: "overflow".into() }));
    let info = SessionInfo {
        proof: Some("certificate".into()),
        claims: vec![("subject".into(), "CN=ann".into())],
        address: Some("10.0.0.7".into()),
        external: Some("hmac:00".into()),
        ..sessions().remove(0).1
    };
    tape.add(None, None, Content::Client(ClientEntry { number: 1, info: info.clone() }));
    tape.add(Some(2), None, Content::Session(info));
    tape.finished(5, "math__add", "success", 3_000_000);
    if let Some(Entry { content: Content::Finished(finished), .. }) = tape.entries.last_mut() {
        *finished = FinishedEntry { operation: Some(4), round: 2, client: Some(1), redacted: true, ..finished.clone() };
    }
    let detail = "no session <x>".to_owned();
    let refused = RefusedEntry { status: Some(404), reason: "unknown_session".into(), detail, client: Some(1) };
    tape.add(None, None, Content::Refused(refused));
    tape.decision(5, "rules", Some("tell"), "log", "a call came");
    if let Some(Entry { content: Content::Decisions(list), seal, .. }) = tape.entries.last_mut() {
        Arc::make_mut(&mut list[0]).redacted = true;
        *seal = Some([1, 2, 255].into());
    }
    tape.entries
}

fn backend() -> BackendOffer {
    BackendOffer {
        backend: "math".into(),
        view: "2025-11-25".into(),
        revision: Some("2025-11-25".into()),
        hash: "00ff".into(),
        parts: vec![
            ("server".into(), r#"{"name":"math","version":"1"}"#.into()),
            ("instructions".into(), Bytes::from_static(b"Add \xff")),
            ("tools".into(), r#"[{"name":"add"}]"#.into()),
        ],
        left: vec!["resources".into()],
        redacted: true,
    }
}

fn http() -> HttpHead {
    HttpHead {
        method: Some("POST".into()),
        url: Some("/mcp".into()),
        status: Some(202),
        headers: vec![("authorization".into(), "[redacted]".into())],
        redacted: true,
    }
}

#[derive(Default)]
struct Tape {
    entries: Vec<Entry>,
    stateless: bool,
}

fn message(point: Point, kind: MessageKind, body: Body) -> MessageEntry {
    let length = match &body {
        Body::Whole(bytes) => bytes.len() as u64,
        _ => 0,
    };
    let backend = matches!(point, Point::BackendIn | Point::BackendOut).then(|| Arc::from("math"));
    MessageEntry { backend, ..MessageEntry::new(point, kind, length, body) }
}

impl Tape {
    fn add(&mut self, session: Option<u64>, exchange: Option<u64>, content: Content) {
        let seq = self.entries.len() as u64 + 1;
        let principal = if matches!(content, Content::Gap(_)) { "" } else { "ann" }.into();
        let entry = Entry::new(seq, START + seq * 1_000_000, principal, content);
        self.entries.push(Entry { session, exchange, ..entry });
    }

    /// Changes the latest entry, which is a message.
    fn mark(&mut self, more: impl FnOnce(&mut MessageEntry)) {
        if let Some(Entry { content: Content::Message(message), .. }) = self.entries.last_mut() {
            more(message);
        }
    }

    fn put(&mut self, exchange: u64, content: Content) {
        self.add((!self.stateless).then_some(1), Some(exchange), content);
    }

    fn request(&mut self, exchange: u64, point: Point, tool: &str, arguments: &str, id: u64) {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        self.message(exchange, point, MessageKind::Request, &text);
    }

    fn message(&mut self, exchange: u64, point: Point, kind: MessageKind, text: &str) {
        let error_code = (kind == MessageKind::Error).then_some(-32001);
        let body = Body::Whole(Bytes::copy_from_slice(text.as_bytes()));
        let subject =
            Some(["", "files__delete", "math__add", "math__slow", "math__add", "math__add"][exchange as usize].into());
        let method = Some("tools/call".into());
        self.put(
            exchange,
            Content::Message(MessageEntry { error_code, method, subject, ..message(point, kind, body) }),
        );
    }

    /// Adds an image that begins and ends like the latest complete one.
    fn like(&mut self, exchange: u64, point: Point, kind: MessageKind, prefix: &str, suffix: u64, rest: &str) {
        let base = self.entries.iter().rev().find(
            |entry| matches!(&entry.content, Content::Message(message) if matches!(message.body, Body::Whole(_))),
        );
        let seq = base.map_or(0, |base| base.seq);
        let middle = Bytes::copy_from_slice(&rest.as_bytes()[..rest.len() - suffix as usize]);
        let length = (prefix.len() + rest.len()) as u64;
        let body = Body::Like { seq, prefix: prefix.len() as u64, suffix, middle };
        let (method, subject) = (Some("tools/call".into()), Some("math__add".into()));
        self.put(exchange, Content::Message(MessageEntry { length, method, subject, ..message(point, kind, body) }));
    }

    fn decision(&mut self, exchange: u64, by: &str, rule: Option<&str>, verdict: &str, detail: &str) {
        self.put(
            exchange,
            Content::Decisions(vec![Arc::new(DecisionEntry {
                by: by.to_owned().into(),
                rule: rule.map(Arc::from),
                phase: "request".into(),
                verdict: verdict.to_owned().into(),
                detail: detail.into(),
                conditions: [("tool equals `x`".into(), true), ("hour is after 18".into(), false)].into(),
                inputs: vec![("clock".into(), "2026-09-21T14:26:40Z".into())],
                redacted: false,
            })]),
        );
    }

    fn finished(&mut self, exchange: u64, tool: &str, outcome: &str, took: u64) {
        self.put(
            exchange,
            Content::Finished(FinishedEntry {
                method: "tools/call".into(),
                subject: Some(tool.into()),
                backend: (outcome != "refused").then(|| "math".into()),
                outcome: outcome.to_owned().into(),
                took,
                bytes_in: 90,
                bytes_out: 70,
                ..FinishedEntry::default()
            }),
        );
    }
}
