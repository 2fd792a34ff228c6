//! A small tape on which something of every kind happens. The file in `tests/golden` holds exactly this, so it must stay.

use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Body, Content, DecisionEntry, Entry, FinishedEntry, Gap, MessageEntry, MessageKind, SessionInfo, TapeInfo, TapeKind,
};
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
    }
}

pub(crate) fn sessions() -> Vec<(u64, SessionInfo)> {
    let info = SessionInfo {
        external: Some("s-1".into()),
        client: Some("ann-code".into()),
        client_version: Some("2.1".into()),
        revision: Some("2025-11-25".into()),
        transport: "http".into(),
    };
    vec![(1, info)]
}

/// A session, a blocked call, a modified call, a call that timed out, a call under a collided name, a call of no session,
/// a line that is no JSON, and a gap.
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
        ("{\"jsonrpc\":\"2.0\",\"id\":", 3),
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
        ("{\"jsonrpc\":\"2.0\",\"id\":", 11),
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
    MessageEntry { point, kind, method: None, subject: None, backend, error_code: None, length, body }
}

impl Tape {
    fn add(&mut self, session: Option<u64>, exchange: Option<u64>, content: Content) {
        let seq = self.entries.len() as u64 + 1;
        let principal = if matches!(content, Content::Gap(_)) { "" } else { "ann" }.into();
        self.entries.push(Entry { seq, at: START + seq * 1_000_000, session, exchange, principal, content });
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
        let subject = Some(["", "files__delete", "math__add", "math__slow", "math__add"][exchange as usize].into());
        let method = Some("tools/call".into());
        self.put(
            exchange,
            Content::Message(MessageEntry { error_code, method, subject, ..message(point, kind, body) }),
        );
    }

    /// An image that begins and ends like the latest whole one.
    fn like(&mut self, exchange: u64, point: Point, kind: MessageKind, (prefix, suffix): (&str, u64), rest: &str) {
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
            }),
        );
    }
}
