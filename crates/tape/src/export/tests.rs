//! What exports say of the sample.

use super::*;
use crate::sample;
use serde_json::Value;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, FinishedEntry, MessageEntry, MessageKind};

fn with_source(make: impl FnOnce(Source<'_>) -> Result<(), ExportError>) {
    let (info, sessions) = (sample::info(), sample::sessions());
    let mut entries = sample::entries().into_iter().map(Ok);
    make(Source { info: &info, sessions: &sessions, entries: &mut entries }).unwrap();
}

fn text(make: impl FnOnce(Source<'_>, &mut Vec<u8>) -> Result<(), ExportError>) -> String {
    let mut out = Vec::new();
    with_source(|source| make(source, &mut out));
    String::from_utf8(out).unwrap()
}

#[test]
fn har_has_an_entry_for_each_exchange() {
    let har: Value = serde_json::from_str(&text(|source, out| har::write(source, out))).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 4);
    assert_eq!(entries[0]["request"]["url"], "http://signalbox.invalid/tools/call/files__delete");
    assert_eq!(entries[0]["_decisions"][0]["verdict"], "refuse");
    assert_eq!(entries[1]["request"]["url"], "http://math.invalid/tools/call/math__add");
    let second = entries[1]["_images"][1]["text"].as_str().unwrap();
    assert!(second.contains("\"id\":9001") && second.ends_with("\"b\":4}}}"), "bodies are made whole: {second}");
    assert_eq!((&entries[1]["time"], &entries[1]["response"]["status"]), (&Value::from(12.0), &Value::from(200)));
    assert_eq!(entries[2]["response"]["statusText"], "timeout");
}

/// A call as a transparent proxy sees it: each message once, on its way in.
fn overheard(answer: MessageKind, body: &'static str, outcome: &'static str) -> Vec<Entry> {
    let message = |point, kind, text: &'static str| {
        let body = Body::Whole(bytes::Bytes::from_static(text.as_bytes()));
        Content::Message(MessageEntry {
            backend: Some("srv".into()),
            ..MessageEntry::new(point, kind, text.len() as u64, body)
        })
    };
    let finished = FinishedEntry {
        method: "ping".into(),
        backend: Some("srv".into()),
        outcome: outcome.into(),
        ..FinishedEntry::default()
    };
    let contents = [
        message(Point::ClientIn, MessageKind::Request, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        message(Point::BackendIn, answer, body),
        Content::Finished(finished),
    ];
    let entry = |(seq, content)| Entry { exchange: Some(1), ..Entry::new(seq, seq, "ann".into(), content) };
    (1..).zip(contents).map(entry).collect()
}

#[test]
fn a_call_through_a_transparent_proxy_has_its_answer_and_reached_its_server() {
    for (kind, body, outcome) in
        [(MessageKind::Result, "{\"result\":{}}", "success"), (MessageKind::Raw, "not implemented", "http_error")]
    {
        let (info, mut out) = (sample::info(), Vec::new());
        let entries = overheard(kind, body, outcome);
        assert!(!crate::explain(&entries).contains("never reached"), "{}", crate::explain(&entries));
        har::write(Source { info: &info, sessions: &[], entries: &mut entries.into_iter().map(Ok) }, &mut out).unwrap();
        let har: Value = serde_json::from_slice(&out).unwrap();
        let entry = &har["log"]["entries"][0];
        assert_eq!(entry["response"]["content"]["text"], body);
        assert!(entry["request"]["postData"]["text"].as_str().unwrap().contains("ping"));
    }
}

#[test]
fn the_report_is_in_order_with_numbers_and_indented() {
    // The second call began before the first ended.
    let mut all = sample::entries();
    let html = text(|source, out| html::write(source, html::Bounds::default(), out));
    let places: Vec<usize> = (1..=4).filter_map(|number| html.find(&format!("id=\"x{number}\""))).collect();
    assert!(places.len() == 4 && places.is_sorted(), "{places:?}");
    assert!(html.contains("<span class=\"number\">2</span>"), "{html}");
    assert!(html.contains("{\n  &quot;jsonrpc&quot;: &quot;2.0&quot;"), "{html}");
    // A call that never ends stands where it began, not at the end.
    all.retain(|entry| !(entry.exchange == Some(1) && matches!(entry.content, Content::Finished(_))));
    let (info, mut out) = (sample::info(), Vec::new());
    let source = Source { info: &info, sessions: &[], entries: &mut all.into_iter().map(Ok) };
    html::write(source, html::Bounds::default(), &mut out).unwrap();
    let html = String::from_utf8(out).unwrap();
    assert!(html.find("id=\"x1\"").unwrap() < html.find("id=\"x2\"").unwrap());
}

#[test]
fn otlp_has_a_span_for_each_exchange_and_an_event_for_each_decision() {
    let otlp: Value = serde_json::from_str(&text(|source, out| otlp::write(source, out))).unwrap();
    let spans = otlp["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 4);
    assert_eq!(spans[0]["name"], "tools/call files__delete");
    assert_eq!((spans[0]["traceId"].as_str().unwrap().len(), spans[0]["spanId"].as_str().unwrap().len()), (32, 16));
    assert_ne!(spans[0]["traceId"], spans[1]["traceId"]);
    assert_eq!((&spans[0]["status"]["code"], &spans[1]["status"]["code"]), (&Value::from(2), &Value::from(1)));
    let names: Vec<&str> =
        spans[2]["events"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["client to gateway", "decision", "gateway to backend", "decision", "gateway to client"]);
}

#[test]
fn the_report_holds_everything_escaped() {
    let html = text(|source, out| html::write(source, html::Bounds::default(), out));
    assert!(html.contains("/etc/passwd &lt;b&gt;") && !html.contains("passwd <b>"));
    assert_eq!(html.matches("<details class=\"exchange").count(), 4);
    assert!(html.contains("12 facts are missing") && html.contains("rule <code>no-deletes</code>"));
    assert!(!html.contains('\u{7}'), "a control character of a raw line is shown as an escape");
    for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
}

/// A name of a tool, method or client could move what stands beside it, or hide a part of itself.
#[test]
fn the_report_shows_invisible_characters() {
    let harmful = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{e0041}', '\u{7}'];
    let mut all = sample::entries();
    for entry in &mut all {
        match &mut entry.content {
            Content::Finished(told) => {
                told.subject = Some(harmful.iter().map(|char| format!("a{char}b")).collect::<String>().into());
                told.method = "tools\u{202e}call".into();
            }
            Content::Session(info) => info.client = Some("c\u{202e}lient".to_owned()),
            _ => {}
        }
    }
    let (info, mut out) = (sample::info(), Vec::new());
    let source = Source { info: &info, sessions: &[], entries: &mut all.into_iter().map(Ok) };
    html::write(source, html::Bounds::default(), &mut out).unwrap();
    let html = String::from_utf8(out).unwrap();
    for char in harmful {
        assert!(!html.contains(char), "{char:?}");
    }
    let shown = r#"<span class="subject">a\u{202e}ba\u{2066}ba\u{200b}ba\u{feff}ba\u{e0041}ba\u{7}b</span>"#;
    assert!(html.contains(shown), "{html}");
    assert!(html.contains(r"tools\u{202e}call") && html.contains(r"c\u{202e}lient"), "{html}");
}

#[test]
fn the_report_is_bounded_and_says_what_had_no_room() {
    let bounds = html::Bounds { bytes: 1 << 20, exchanges: 3 };
    let html = text(|source, out| html::write(source, bounds, out));
    assert!(html.contains("more exchanges did not fit"), "{html}");
}

#[test]
fn what_never_ends_and_what_comes_late_is_there_all_the_same() {
    let mut all = sample::entries();
    // The last image of the modified call comes after its end.
    let late = all.iter().position(|entry| entry.exchange == Some(2) && matches!(entry.content, Content::Finished(_)));
    all.swap(late.unwrap(), late.unwrap() - 1);
    all.retain(|entry| !(entry.exchange == Some(3) && matches!(entry.content, Content::Finished(_))));
    let mut entries = all.into_iter().map(Ok);
    let pieces: Vec<_> = crate::gather::Gather::new(&mut entries).map(Result::unwrap).collect();
    let exchanges: Vec<usize> = pieces
        .iter()
        .filter_map(|piece| match piece {
            crate::gather::Piece::Exchange(entries) => Some(entries.len()),
            crate::gather::Piece::Loose(_) => None,
        })
        .collect();
    assert_eq!(exchanges, [4, 6, 5, 3]);
    let like = |entry: &Entry| matches!(&entry.content, Content::Message(one) if matches!(one.body, Body::Like { .. }));
    assert!(
        !pieces
            .iter()
            .any(|piece| matches!(piece, crate::gather::Piece::Exchange(entries) if entries.iter().any(like)))
    );
}

#[test]
fn an_error_of_the_source_ends_the_export() {
    let info = sample::info();
    let mut entries = std::iter::once(Err(StoreError::NoTape("x".into())));
    let source = Source { info: &info, sessions: &[], entries: &mut entries };
    assert_eq!(har::write(source, vec![]).unwrap_err().to_string(), "no tape x; see `signalbox tape list`");
}

fn all(make: impl FnOnce(Source<'_>, &mut Vec<u8>) -> Result<(), ExportError>) -> String {
    let (info, sessions, mut out) = (sample::sealed_info(), sample::sessions(), Vec::new());
    let mut entries = sample::all_entries().into_iter().map(Ok);
    make(Source { info: &info, sessions: &sessions, entries: &mut entries }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Proves S-16, S-28, S-29 and S-71.
#[test]
fn har_and_otlp_tell_rounds_marks_and_heads() {
    let har: Value = serde_json::from_str(&all(|source, out| har::write(source, out))).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    let round = entries.iter().find(|entry| entry["_exchange"] == 5).unwrap();
    assert_eq!((&round["_operation"], &round["_round"], &round["_client"]), (&4.into(), &2.into(), &1.into()));
    assert_eq!(round["request"]["headers"][0]["value"], "[redacted]");
    assert_eq!((&round["_images"][1]["again"], &round["_images"][1]["lost"]), (&42.into(), &"closed".into()));
    assert_eq!((&round["_images"][0]["redacted"], &round["_images"][1]["event_id"]), (&true.into(), &"7_1".into()));
    let otlp = all(|source, out| otlp::write(source, out));
    serde_json::from_str::<Value>(&otlp).unwrap();
    for told in
        ["signalbox.operation", "signalbox.round", "signalbox.lost", "signalbox.event_id", "http.request.method"]
    {
        assert!(otlp.contains(told), "{told}");
    }
}

#[test]
fn the_report_tells_callers_backends_rules_losses_and_refusals() {
    let html = all(|source, out| html::write(source, html::Bounds::default(), out));
    for told in [
        "caller 1, for ann: ann-code 2.1, 2025-11-25, over http from 10.0.0.7, proved by certificate, subject CN=ann",
        "backend math 2025-11-25 offers 00ff",
        "resources was too large to be kept",
        "rules 0badcafe apply from here on",
        "the gateway&#39;s own, message 41",
        "message 43 (gateway to client) did not arrive after all: overflow",
        "refused with status 404, unknown_session: no session &lt;x&gt;",
        "round 2 of the operation that began with exchange 4",
    ] {
        assert!(html.contains(told), "{told} is not in\n{html}");
    }
}
