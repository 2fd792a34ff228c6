//! Recordings of each format, most of them made by the programs themselves (see `tests/recordings`).

use super::*;
use crate::recorder::SessionHash;
use crate::redact::{RedactionSettings, Redactor};
use crate::{Gather, Piece, Story};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content as Told, Entry, SessionInfo};

pub(super) fn entries(file: &[u8]) -> Result<Vec<Entry>, ImportError> {
    let FileContent::Other(format) = FileContent::of(file)? else { panic!("not of another program") };
    let recording = read(&Bytes::copy_from_slice(file), format)?;
    let redactor = Redactor::new(&RedactionSettings::default(), [1; 32]).unwrap();
    let started = recording.times().map_or(5, |(started, _)| started);
    Ok(Entries::new(recording, redactor, Some(&SessionHash::new(&[2; 32])), started).collect())
}

/// The exchanges: number, session, server, method, subject, outcome and milliseconds.
pub(super) fn exchanges(entries: &[Entry]) -> Vec<String> {
    let mut all = entries.iter().cloned().map(Ok);
    let told = |piece| match piece {
        Piece::Exchange(entries) => {
            let story = Story::new(&entries).unwrap();
            let (session, server) = (story.session.unwrap_or_default(), story.backend.unwrap_or("-"));
            let (subject, took) = (story.subject.unwrap_or("-"), story.took / 1_000_000);
            Some(format!("{} {session} {server} {} {subject} {} {took}", story.number, story.method, story.outcome))
        }
        Piece::Loose(_) => None,
    };
    Gather::new(&mut all).filter_map(|piece| told(piece.unwrap())).collect()
}

pub(super) fn session(entries: &[Entry]) -> &SessionInfo {
    let sessions = entries.iter().filter_map(|entry| match &entry.content {
        Told::Session(info) => Some(info),
        _ => None,
    });
    sessions.last().unwrap()
}

pub(super) fn text(entry: &Entry) -> &str {
    match &entry.content {
        Told::Message(message) => match &message.body {
            Body::Whole(bytes) => std::str::from_utf8(bytes).unwrap(),
            _ => "",
        },
        _ => "",
    }
}

/// What the last offer of a server has as this part.
fn offer(entries: &[Entry], part: &str) -> String {
    let offers = entries.iter().filter_map(|entry| match &entry.content {
        Told::Backend(seen) => Some(seen),
        _ => None,
    });
    let (_, bytes) = offers.last().unwrap().parts.iter().find(|(name, _)| name == part).unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(super) fn in_order(entries: &[Entry]) {
    assert!(entries.iter().zip(1..).all(|(entry, seq)| entry.seq == seq));
    assert!(entries.is_sorted_by_key(|entry| entry.at));
}

#[test]
fn mcporter_records_several_servers() {
    let all = entries(include_bytes!("../../tests/recordings/mcporter.ndjson")).unwrap();
    in_order(&all);
    assert_eq!(
        exchanges(&all),
        [
            "1 1 time initialize - success 1444",
            "2 1 time tools/call convert_time success 10",
            "3 2 everything initialize - success 666",
            "4 2 everything tools/call echo success 16",
        ]
    );
    assert_eq!(
        (session(&all).client.as_deref(), session(&all).revision.as_deref()),
        (Some("mcporter"), Some("2025-11-25"))
    );
    assert!(all.iter().all(|entry| !text(entry).contains("_meta")), "what mcporter added is not a part of messages");
    assert!(offer(&all, "server").contains("Everything Reference Server"));
    assert!(offer(&all, "instructions").starts_with("# Everything Server"));
}

#[test]
fn mcp_rec_records_a_pipe() {
    let all = entries(include_bytes!("../../tests/recordings/mcp-rec.jsonl")).unwrap();
    in_order(&all);
    let expected = [
        "1 1 mcp-time initialize - success 1464",
        "2 1 mcp-time tools/list - success 7",
        "3 1 mcp-time tools/call convert_time success 2",
        "4 1 mcp-time tools/call convert_time tool_error 1",
    ];
    assert_eq!(exchanges(&all), expected);
    assert!(offer(&all, "tools").contains("get_current_time"));
    assert!(
        all.iter().any(|entry| matches!(&entry.content, Told::Message(message) if message.point == Point::ClientOut))
    );
}

#[test]
fn mcp_recorder_records_pairs() {
    let all = entries(include_bytes!("../../tests/recordings/mcp-recorder.json")).unwrap();
    in_order(&all);
    let names: Vec<String> = exchanges(&all).iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect();
    let expected = [
        "1 1 mcp-time initialize - success",
        "2 1 mcp-time tools/list - success",
        "3 1 mcp-time tools/call convert_time success",
        "4 1 mcp-time tools/call convert_time tool_error",
    ];
    assert_eq!(names, expected);
    assert!(all.iter().all(|entry| !text(entry).contains("\n")), "messages have one line");
    assert!(offer(&all, "tools").contains("get_current_time"));
}

/// In the form that the source and the documentation of mcpsnoop show; the program itself is in no package index.
#[test]
fn mcpsnoop_has_frames_with_a_direction() {
    let file = r#"{"session_id":"s-1","server_label":"math","seq":0,"ts":"2026-07-01T10:00:00Z","direction":"meta","transport":"stdio","raw":{"command":["x"]}}
{"session_id":"s-1","server_label":"math","seq":1,"ts":"2026-07-01T10:00:00.5Z","direction":"c2s","transport":"stdio","raw":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}}
{"session_id":"s-1","server_label":"math","seq":2,"ts":"2026-07-01T10:00:00.6Z","direction":"stderr","transport":"stdio","text":"adding"}
{"session_id":"s-1","server_label":"math","seq":3,"ts":"2026-07-01T10:00:00.75Z","direction":"s2c","transport":"stdio","raw":{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}}
"#;
    let all = entries(file.as_bytes()).unwrap();
    assert_eq!(exchanges(&all), ["1 1 math tools/call add error 250"]);
    assert_eq!(session(&all).transport, "stdio");
}

const BARE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","_meta":{"progressToken":"p"}}}

{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[]}}
{"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m"}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}
{"jsonrpc":"2.0","id":1,"result":{"content":[]}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
"#;

#[test]
fn the_direction_of_bare_messages_is_inferred() {
    let all = entries(BARE.as_bytes()).unwrap();
    let way = |entry: &Entry| match &entry.content {
        Told::Message(message) => Some((message.point == Point::ClientIn, entry.exchange)),
        _ => None,
    };
    let ways: Vec<_> = all.iter().filter_map(way).collect();
    // The question of the server has the id of the call, and belongs to it.
    let call = Some(1);
    assert_eq!(ways[..5], [(true, call), (false, call), (true, call), (false, call), (false, call)]);
    assert_eq!(ways[5..], [(true, Some(2)), (true, Some(2))]);
    assert_eq!(exchanges(&all)[0], "1 1 server tools/call ask success 0");
    assert_eq!(exchanges(&all)[1], "2 1 server tools/call slow cancelled 0");
}

#[test]
fn in_and_out_are_told_apart_by_the_first_request() {
    for (asks, answers) in [("in", "out"), ("out", "in"), ("sent", "received"), ("client->server", "server->client")] {
        let file = format!(
            "{{\"direction\":\"{answers}\",\"timestamp\":1750000000.0,\"message\":{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{}}}}}}\n\
             {{\"direction\":\"{asks}\",\"timestamp\":1750000001000,\"message\":\"{{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":7,\\\"method\\\":\\\"ping\\\"}}\"}}\n\
             {{\"direction\":\"{answers}\",\"timestamp\":\"2025-06-15T15:06:41.5Z\",\"message\":{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{}}}}}}\n"
        );
        assert_eq!(exchanges(&entries(file.as_bytes()).unwrap()), ["1 1 server ping - success 500"], "{asks}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let wrong = |file: &str| entries(file.as_bytes()).unwrap_err().to_string();
    let good = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    assert_eq!(wrong(&format!("{good}\n{{\"id\":")), "line 3: no JSON that can be used: unexpected end at byte 6");
    assert!(wrong(&format!("{good}{{\"a\":1}}")).starts_with("line 2: neither an MCP message nor an object"));
    assert!(wrong("").contains("cannot be told"));
    assert!(wrong("{\"log\":{\"entries\":[{\"request\":{}}]}}").starts_with("line 1: missing field `method`"));
    assert!(wrong("{\"log\":{\"entries\":[]}}").starts_with("the file holds no MCP messages"));
    let base64 = r#"{"log":{"entries":[{"request":{"method":"POST","postData":{"text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"}},"response":{"content":{"text":"?","encoding":"base64"}}}]}}"#;
    assert!(wrong(base64).starts_with("log.entries[0]: a body in base64"));
    assert!(wrong("{\"version\":\"2.0\",\"interactions\":[]}").starts_with("version: cassettes of version 2.0"));
}

#[test]
fn secrets_are_taken_out_of_everything() {
    let file = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"https://x.invalid/?k=AKIAABCDEFGHIJKLMNOP"}}
{"jsonrpc":"2.0","id":1,"result":{"contents":[{"password":"hunter2"}]}}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","description":"AKIAABCDEFGHIJKLMNOP"}]}}
"#;
    let all = entries(file.as_bytes()).unwrap();
    let told = format!("{all:?}");
    assert!(!told.contains("AKIAABCDEFGHIJKLMNOP") && !told.contains("hunter2"), "{told}");
}

fn har(entries: &str) -> String {
    format!("{{\"log\":{{\"version\":\"1.2\",\"creator\":{{\"name\":\"Firefox\"}},\"entries\":[{entries}]}}}}")
}

#[test]
fn har_of_a_browser_has_sessions_events_and_other_requests() {
    let file = har(r#"
      {"startedDateTime":"2026-01-01T00:00:00Z","time":3,"request":{"method":"GET","url":"https://x.invalid/a.css","headers":[]},"response":{"status":200,"headers":[],"content":{"text":"a"}}},
      {"startedDateTime":"2026-01-01T00:00:00Z","time":3,"request":{"method":"POST","url":"https://x.invalid/rpc","headers":[],"postData":{"text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_call\"}"}},"response":{"status":200,"headers":[],"content":{"text":"{}"}}},
      {"startedDateTime":"2026-01-01T00:00:01Z","time":20.5,"request":{"method":"POST","url":"https://x.invalid/mcp?key=k-1","headers":[{"name":"Authorization","value":"Bearer k-2"}],"postData":{"mimeType":"application/json","text":"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"clientInfo\":{\"name\":\"web\",\"version\":\"1\"}}}"}},
       "response":{"status":200,"headers":[{"name":"Mcp-Session-Id","value":"k-3"}],"content":{"mimeType":"application/json","text":"eyJqc29ucnBjIjoiMi4wIiwiaWQiOjAsInJlc3VsdCI6eyJwcm90b2NvbFZlcnNpb24iOiIyMDI1LTAzLTI2Iiwic2VydmVySW5mbyI6eyJuYW1lIjoibWF0aCJ9fX0=","encoding":"base64"}}},
      {"startedDateTime":"2026-01-01T00:00:02Z","time":40,"request":{"method":"POST","url":"https://x.invalid/mcp","headers":[{"name":"mcp-session-id","value":"k-3"}],"postData":{"text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"add\"}}"}},
       "response":{"status":200,"headers":[{"name":"Content-Type","value":"text/event-stream; charset=utf-8"}],"content":{"text":"id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}"}}},
      {"startedDateTime":"2026-01-01T00:00:02.010Z","time":1,"request":{"method":"POST","url":"https://x.invalid/mcp","headers":[{"name":"mcp-session-id","value":"k-4"}],"postData":{"text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"}},
       "response":{"status":502,"headers":[],"content":{"text":"<h1>Bad gateway</h1>"}}}"#);
    let all = entries(file.as_bytes()).unwrap();
    in_order(&all);
    assert_eq!(
        exchanges(&all),
        ["1 1 math initialize - success 20", "2 1 math tools/call add success 40", "3 2 server ping - http_error 1",]
    );
    let told = format!("{all:?}");
    for secret in ["k-1", "k-2", "k-3", "k-4"] {
        assert!(!told.contains(secret), "{secret}: {told}");
    }
    assert!(told.contains("hmac:") && told.contains("revision: Some(\"2025-03-26\")"));
    let loud = all.iter().find(|entry| text(entry).contains("notifications/message")).unwrap();
    assert_eq!(loud.exchange, Some(2), "what comes in the stream of a call belongs to it");
}

#[test]
fn requests_of_the_new_era_have_a_caller_and_no_session() {
    let request = r#"{"startedDateTime":"2026-01-01T00:00:01Z","time":2,"request":{"method":"POST","url":"https://x.invalid/mcp","headers":[{"name":"MCP-Protocol-Version","value":"2026-07-28"}],"postData":{"text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/clientInfo\":{\"name\":\"new\",\"version\":\"2\"}}}}"}},
       "response":{"status":200,"headers":[],"content":{"text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}"}}}"#;
    let all = entries(har(request).as_bytes()).unwrap();
    assert!(all.iter().all(|entry| entry.session.is_none()));
    let client = all.iter().find_map(|entry| match &entry.content {
        Told::Client(client) => Some(client),
        _ => None,
    });
    assert_eq!(client.unwrap().info.client.as_deref(), Some("new"));
    let ends = |entry: &Entry| matches!(&entry.content, Told::Finished(end) if end.client == Some(1));
    assert!(all.iter().any(ends));
}

#[test]
fn our_own_har_is_read_again() {
    let (info, sessions) = (crate::sample::info(), crate::sample::sessions());
    let (mut out, mut all) = (Vec::new(), crate::sample::entries().into_iter().map(Ok));
    let source = crate::export::Source { info: &info, sessions: &sessions, entries: &mut all };
    crate::export::har::write(source, &mut out).unwrap();
    let read = entries(&out).unwrap();
    in_order(&read);
    let told = exchanges(&read).join("\n");
    assert!(told.contains("math tools/call math__add"), "{told}");
}

#[test]
fn mitmproxy_records_http() {
    let all = entries(include_bytes!("../../tests/recordings/mitmproxy.har")).unwrap();
    in_order(&all);
    let names: Vec<String> = exchanges(&all).iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect();
    let expected = [
        "1 1 signalbox initialize - success",
        "2 1 signalbox tools/call echo success",
        "3 1 signalbox tools/list - success",
        "4 1 signalbox tools/call echo success",
        "5 1 signalbox tools/call no-such-tool error",
    ];
    assert_eq!(names, expected);
    assert!(offer(&all, "tools").contains("countdown"));
    assert_eq!((session(&all).transport.as_str(), session(&all).client.as_deref()), ("http", Some("mcp")));
}

#[test]
fn text_that_mitmproxy_wrote_byte_by_byte_is_mended() {
    let file = r#"{"log":{"creator":{"name":"mitmproxy"},"entries":[{"request":{"method":"POST","postData":{"text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"}},
        "response":{"headers":[{"name":"content-type","value":"text/event-stream"}],"content":{"text":"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\u00e2\u0080\u0093\"}}\n\n"}}}]}}"#;
    let mended = entries(file.as_bytes()).unwrap();
    assert!(mended.iter().any(|entry| text(entry).contains("\u{2013}")));
    let other = entries(file.replace("mitmproxy", "x").as_bytes()).unwrap();
    assert!(other.iter().any(|entry| text(entry).contains("\u{e2}\u{80}\u{93}")), "others mean what they write");
}
