//! Entries to keep.

use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Body, Content, Entry, EntryPage, FinishedEntry, Hit, MessageEntry, MessageKind, Query, TapeInfo, TapeKind,
    TapeStore,
};

/// A second, in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

pub fn tape(id: &str, started: u64) -> TapeInfo {
    TapeInfo {
        id: id.into(),
        kind: TapeKind::Serve,
        target: "signalbox.toml".into(),
        started,
        ended: None,
        program: "0.1.0".into(),
        redaction: Vec::new(),
        sampling: "all".into(),
        parent: None,
        seal: None,
    }
}

pub fn entry(seq: u64, content: Content) -> Entry {
    Entry { session: Some(1), ..Entry::new(seq, seq.saturating_mul(SECOND), "local".into(), content) }
}

pub fn message(method: &str, body: &str) -> MessageEntry {
    let whole = Body::Whole(Bytes::copy_from_slice(body.as_bytes()));
    MessageEntry {
        method: Some(method.into()),
        ..MessageEntry::new(Point::ClientIn, MessageKind::Request, body.len() as u64, whole)
    }
}

pub fn request(seq: u64, body: &str) -> Entry {
    entry(seq, Content::Message(message("tools/call", body)))
}

pub fn finished(method: &str, subject: Option<&str>, outcome: &str, took: u64) -> FinishedEntry {
    FinishedEntry {
        method: method.into(),
        subject: subject.map(std::sync::Arc::from),
        backend: Some("b".into()),
        outcome: outcome.to_owned().into(),
        took,
        bytes_in: 100,
        bytes_out: 1_000,
        ..FinishedEntry::default()
    }
}

/// Five entries, as a recorder makes them of a call: two whole images, two that refer to them, and the end.
pub fn call(first: u64, exchange: u64, tool: &str, outcome: &str, took: u64) -> Vec<Entry> {
    let question = format!(
        r#"{{"jsonrpc":"2.0","id":{exchange},"method":"tools/call","params":{{"name":"{tool}","n":{exchange}}}}}"#
    );
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{exchange},"result":{{"content":[{{"type":"text","text":"answer {exchange}"}}]}}}}"#
    );
    let like = |seq: u64, whole: &str| Body::Like { seq, prefix: whole.len() as u64, suffix: 0, middle: Bytes::new() };
    let whole = |text: &str| Body::Whole(Bytes::copy_from_slice(text.as_bytes()));
    let failed = outcome == "error";
    let answered = if failed { MessageKind::Error } else { MessageKind::Result };
    let at = |seq: u64, point, kind, body, length: usize| {
        let error_code = (kind == MessageKind::Error).then_some(-32602);
        let content = Content::Message(MessageEntry {
            point,
            kind,
            error_code,
            subject: Some(tool.into()),
            backend: Some("b".into()),
            length: length as u64,
            body,
            ..message("tools/call", "")
        });
        Entry { exchange: Some(exchange), ..entry(seq, content) }
    };
    vec![
        at(first, Point::ClientIn, MessageKind::Request, whole(&question), question.len()),
        at(first + 1, Point::BackendOut, MessageKind::Request, like(first, &question), question.len()),
        at(first + 2, Point::BackendIn, answered, whole(&answer), answer.len()),
        at(first + 3, Point::ClientOut, answered, like(first + 2, &answer), answer.len()),
        Entry {
            exchange: Some(exchange),
            ..entry(first + 4, Content::Finished(finished("tools/call", Some(tool), outcome, took)))
        },
    ]
}

/// Keeps a tape of these entries, and ends it.
pub fn keep(store: &dyn TapeStore, id: &str, entries: &[Entry]) {
    let started = entries.first().map_or(0, |entry| entry.at);
    let mut writer = store.begin(&tape(id, started)).unwrap();
    for batch in entries.chunks(500) {
        writer.append(batch, false).unwrap();
    }
    writer.end(entries.last().map_or(0, |entry| entry.at), None).unwrap();
}

pub fn find(store: &dyn TapeStore, query: &Query) -> EntryPage {
    store.find(query).unwrap_or_else(|error| panic!("{query:?}: {error}"))
}

pub fn all() -> Query {
    Query { limit: Some(10_000), ..Query::default() }
}

/// The places that a query finds.
pub fn places(store: &dyn TapeStore, query: &Query) -> Vec<u64> {
    find(store, query).hits.iter().map(|hit| hit.entry.seq).collect()
}

pub fn body(hit: &Hit) -> Bytes {
    match &hit.entry.content {
        Content::Message(MessageEntry { body: Body::Whole(whole), .. }) => whole.clone(),
        other => panic!("no whole body: {other:?}"),
    }
}
