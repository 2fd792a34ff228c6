//! What a collector gets, and what a backend is told.

use crate::backend::{Era, RESULT};
use crate::collector::{Collector, Span};
use crate::program::eventually;
use crate::scene::{PARENT, SECRET, Scene, call, id_of};
use serde_json::Value;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

fn parent_of(span: &Span) -> String {
    format!("00-{}-{}-01", span.trace, span.id)
}

fn told(message: &str) -> String {
    let message: Value = serde_json::from_str(message).unwrap();
    message["params"]["_meta"]["traceparent"].as_str().expect("a traceparent").to_owned()
}

/// The two spans of a call, after checking that one is the other's child.
async fn spans_of(collector: &Collector, tool: &str) -> (Span, Span) {
    let name = format!("tools/call {tool}");
    let (server, client) = (collector.span("server", &name).await, collector.span("client", &name).await);
    assert_eq!((&client.trace, client.parent.as_ref()), (&server.trace, Some(&server.id)));
    assert!(server.start <= client.start && client.start <= client.end && client.end <= server.end);
    (server, client)
}

/// Proves NO-17.
#[tokio::test]
async fn a_call_of_the_old_era_is_two_spans_under_the_client_s_own() {
    let collector = Collector::start().await;
    let config = collector.config("service_name = \"my box\"\nheaders = { x-key = \"k\" }");
    let scene = Scene::new(Era::Old, &config).await;
    let own = format!(r#""traceparent" : "{PARENT}" , "tracestate":"a=1" ,"baggage":"user=ann""#);
    let sent = call(Era::Old, "echo", &own);
    let client = scene.client(Era::Old).await;
    let answer =
        client.post(&sent, &[("traceparent", "00-11111111111111111111111111111111-2222222222222222-01")]).await;
    assert!(answer.contains(RESULT), "{answer}");
    let (server, inner) = spans_of(&collector, "echo").await;
    assert_eq!((server.trace.as_str(), server.parent.as_deref()), (TRACE, Some(CALLER)));
    let got = scene.backend.last_call();
    assert_eq!(got, sent.replace("\"mine\"", &id_of(&got)).replace(PARENT, &parent_of(&inner)));
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "echo"),
        ("mcp.protocol.version", "2025-06-18"),
        ("network.transport", "tcp"),
        ("signalbox.backend", "only"),
        ("signalbox.outcome", "success"),
        ("error.type", ""),
    ] {
        assert_eq!((server.get(key), inner.get(key)), (value, value), "{key}");
    }
    assert_eq!((server.get("jsonrpc.request.id"), inner.get("jsonrpc.request.id")), ("mine", id_of(&got).as_str()));
    assert_eq!(inner.get("server.address"), "127.0.0.1");
    assert_eq!(inner.get("server.port"), scene.backend.address().port().to_string());
    let session = server.get("mcp.session.id");
    assert!(session.len() == 32 && Some(session) != client.session.as_deref(), "{session}");
    let hello = collector.span("server", "initialize").await;
    assert_eq!((hello.parent, hello.attributes["mcp.protocol.version"].as_str()), (None, "2025-06-18"));
    let export = collector.exports().remove(0);
    assert_eq!(
        (export.path.as_str(), &export.headers["content-type"]),
        ("/v1/traces", &"application/x-protobuf".parse().unwrap())
    );
    assert_eq!(export.headers["x-key"], "k");
    assert!(String::from_utf8_lossy(&export.body).contains("my box"));
    let session = client.session.unwrap();
    for export in collector.exports() {
        let text = String::from_utf8_lossy(&export.body).into_owned();
        assert!(!text.contains(SECRET) && !text.contains(RESULT) && !text.contains(&session), "{text}");
    }
}

#[tokio::test]
async fn a_call_of_the_new_era_belongs_to_the_trace_of_its_header() {
    let collector = Collector::start().await;
    let scene = Scene::new(Era::New, &collector.config("")).await;
    let client = scene.client(Era::New).await;
    let headers = [("traceparent", PARENT), ("tracestate", "a=1")];
    let answer = client.post(&call(Era::New, "echo", ""), &headers).await;
    assert!(answer.contains(RESULT), "{answer}");
    let (server, inner) = spans_of(&collector, "echo").await;
    assert_eq!((server.trace.as_str(), server.parent.as_deref()), (TRACE, Some(CALLER)));
    assert_eq!((server.get("mcp.protocol.version"), server.get("mcp.session.id")), ("2026-07-28", ""));
    let got: Value = serde_json::from_str(&scene.backend.last_call()).unwrap();
    assert_eq!(got["params"]["_meta"]["traceparent"], parent_of(&inner));
    assert_eq!(got["params"]["_meta"]["tracestate"], "a=1");
}

#[tokio::test]
async fn a_trace_begins_here_when_nobody_began_it_and_crosses_the_eras() {
    for (client, backend) in [(Era::Old, Era::New), (Era::New, Era::Old), (Era::Old, Era::Old)] {
        let collector = Collector::start().await;
        let scene = Scene::new(backend, &collector.config("")).await;
        // A state without its parent, or with one that cannot be read, belongs to no trace.
        let own = r#""traceparent":"00-XX","tracestate":"lost=1","a/b":1"#;
        let own = if backend == client { "" } else { own };
        let answer = scene.client(client).await.post(&call(client, "echo", own), &[]).await;
        assert!(answer.contains(RESULT), "{answer}");
        let (server, inner) = spans_of(&collector, "echo").await;
        assert_eq!(server.parent, None);
        let got = scene.backend.last_call();
        assert_eq!(told(&got), parent_of(&inner), "{got}");
        assert!(!got.contains("tracestate"), "{got}");
        let revision = |era| if era == Era::Old { "2025-06-18" } else { "2026-07-28" };
        let revisions = (server.get("mcp.protocol.version"), inner.get("mcp.protocol.version"));
        assert_eq!(revisions, (revision(client), revision(backend)));
    }
}

#[tokio::test]
async fn what_fails_is_an_error_span() {
    let collector = Collector::start().await;
    let scene = Scene::new(Era::New, &collector.config("")).await;
    let client = scene.client(Era::New).await;
    for tool in ["sad", "broken", "nowhere"] {
        client.post(&call(Era::New, tool, ""), &[]).await;
    }
    let (server, inner) = spans_of(&collector, "sad").await;
    for span in [server, inner] {
        assert_eq!((span.error.as_deref(), span.get("error.type")), (Some("tool_error"), "tool_error"));
        assert_eq!(span.get("rpc.response.status_code"), "");
    }
    let (server, inner) = spans_of(&collector, "broken").await;
    for span in [server, inner] {
        assert_eq!((span.error.as_deref(), span.get("error.type")), (Some("error"), "-7"));
        assert_eq!(span.get("rpc.response.status_code"), "-7");
    }
    // A tool that nobody has is no name for a span, and no call.
    let unknown = collector.span("server", "tools/call").await;
    assert_eq!((unknown.error.as_deref(), unknown.get("error.type")), (Some("unknown_tool"), "-32602"));
    let of_unknown = |span: &Span| span.parent.as_ref() == Some(&unknown.id);
    assert!(!collector.spans().iter().any(of_unknown));
}

#[tokio::test]
async fn who_does_not_record_is_not_recorded() {
    let collector = Collector::start().await;
    let scene = Scene::new(Era::Old, &collector.config("sample_ratio = 0")).await;
    let client = scene.client(Era::Old).await;
    let unsampled = PARENT.replace("-01", "-00");
    let sent = call(Era::Old, "echo", &format!(r#" "traceparent" :"{unsampled}" "#));
    client.post(&sent, &[]).await;
    let got = scene.backend.last_call();
    assert_eq!(got, sent.replace("\"mine\"", &id_of(&got)));
    // By a header alone it is written where the backend looks for it.
    client.post(&call(Era::Old, "echo", ""), &[("traceparent", &unsampled)]).await;
    assert_eq!(told(&scene.backend.last_call()), unsampled);
    // What begins here and is not chosen tells the backend so.
    client.post(&call(Era::Old, "echo", ""), &[]).await;
    let begun = told(&scene.backend.last_call());
    assert!(begun.ends_with("-00") && !begun.contains(TRACE), "{begun}");
    // Whoever records is followed, whatever the ratio; and nothing else has come by then.
    client.post(&call(Era::Old, "sad", &format!(r#""traceparent":"{PARENT}""#)), &[]).await;
    spans_of(&collector, "sad").await;
    assert_eq!(collector.spans().len(), 2);
}

#[tokio::test]
async fn the_last_spans_are_exported_before_the_program_ends() {
    let collector = Collector::start().await;
    let mut scene = Scene::new(Era::Old, &collector.config("")).await;
    scene.client(Era::Old).await.post(&call(Era::Old, "echo", ""), &[]).await;
    scene.program.signal("TERM").await;
    assert_eq!(scene.program.ended().await, Some(0));
    let all = |_: &()| collector.spans().iter().filter(|span| span.name == "tools/call echo").count() == 2;
    eventually(async || Some(()).filter(all)).await;
}
