//! Exports that make the calls again: what they hold, and that no text of a tape becomes code.

use super::*;
use crate::import::{self, Entries, ImportFormat};
use crate::redact::Redactor;
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::record::{Content, TapeKind};
use std::process::{Command, Stdio};

type Exporter = fn(Source<'_>, &ExportTarget, &mut Vec<u8>) -> Result<(), ExportError>;

const CURL: Exporter = |source, target, out| curl::write(source, target, out);
const POSTMAN: Exporter = |source, target, out| postman::write(source, target, out);
const INSOMNIA: Exporter = |source, target, out| insomnia::write(source, target, out);
const K6: Exporter = |source, target, out| k6::write(source, target, out);
const PLAYWRIGHT: Exporter = |source, target, out| playwright::write(source, target, out);
const PYTEST: Exporter = |source, target, out| pytest::write(source, target, out);
const VITEST: Exporter = |source, target, out| vitest::write(source, target, out);

/// A tool and arguments that try to end every kind of literal, comment and template.
const HOSTILE: &str = "x'\"`$(touch pwned)\\\n*/ # // {{url}} {% now %} \u{2028}''' \"\"\"";

fn messages() -> String {
    let call = |id: u64, name: &str| {
        let params = serde_json::json!({"name": name, "arguments": {HOSTILE: [name, {"a": {}}]}});
        serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let lines = [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#.to_owned(),
        call(1, HOSTILE),
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": HOSTILE}]}}).to_string(),
        call(2, "plain"),
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}"#.to_owned(),
        serde_json::json!({"jsonrpc": "2.0", "id": 3, "method": HOSTILE}).to_string(),
        r#"{"jsonrpc":"2.0","id":3,"result":{}}"#.to_owned(),
        call(4, "unanswered"),
    ];
    lines.join("\n")
}

fn made(write: Exporter) -> String {
    let recording = import::read(&Bytes::from(messages()), ImportFormat::Messages).unwrap();
    let entries: Vec<_> = Entries::new(recording, Redactor::none(), None, 1).collect();
    let session = |entry: &Entry| match &entry.content {
        Content::Session(info) => Some((entry.session?, info.clone())),
        _ => None,
    };
    let mut sessions: Vec<_> = entries.iter().filter_map(session).collect();
    sessions.reverse();
    sessions.truncate(1);
    let info = TapeInfo::new(HOSTILE.to_owned(), TapeKind::Import, format!("\n# coding: utf-7\n{HOSTILE}"), 1);
    let target = ExportTarget::new(&info, Some("http://127.0.0.1:1/mcp?a='b'".to_owned()), HOSTILE.to_owned());
    let (mut out, mut all) = (Vec::new(), entries.into_iter().map(Ok));
    write(Source { info: &info, sessions: &sessions, entries: &mut all }, &target, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Runs a program on a file of this name with this text. False if there is no such program.
fn passes(program: &str, args: &[&str], name: &str, text: &str) -> bool {
    let folder = std::env::temp_dir().join(format!("signalbox-export-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
    let done = Command::new(program).args(args).arg(name).current_dir(&folder).stdin(Stdio::null()).output();
    let harmless = !folder.join("pwned").exists();
    std::fs::remove_dir_all(&folder).unwrap();
    let Ok(done) = done else { return false };
    assert!(done.status.success(), "{program}: {}\n{text}", String::from_utf8_lossy(&done.stderr));
    assert!(harmless, "{text}");
    true
}

#[test]
fn scripts_are_valid_whatever_a_tool_is_called() {
    assert!(passes("bash", &["-n"], "calls.sh", &made(CURL)));
    // Run with a curl that only swallows what it is given.
    let harmless = made(CURL).replacen("set -euo pipefail", "curl() { cat > /dev/null; }", 1);
    assert!(passes("bash", &[], "run.sh", &harmless));
    for (name, write) in [("k6.mjs", K6), ("play.mjs", PLAYWRIGHT), ("vitest.mjs", VITEST)] {
        passes("node", &["--check"], name, &made(write));
    }
    passes("python3", &["-m", "py_compile"], "test_tape.py", &made(PYTEST));
}

#[test]
fn sessions_are_opened_at_their_revision_and_calls_carry_the_id() {
    let script = made(CURL);
    assert!(script.contains(r#"session_1=$(open '{"jsonrpc":"2.0","id":"open-1","method":"initialize","params":{"protocolVersion":"2025-06-18""#));
    assert_eq!(script.matches("\nsend \"$session_1\" '{").count(), 4, "{script}");
    assert!(script.contains("'MCP-Protocol-Version: 2025-06-18'"));
    assert!(script.contains("url=${MCP_URL:-'http://127.0.0.1:1/mcp?a='\\''b'\\'''}"), "{script}");
}

#[test]
fn a_postman_collection_has_its_shape() {
    let collection: Value = serde_json::from_str(&made(POSTMAN)).unwrap();
    assert!(collection["info"]["schema"].as_str().unwrap().ends_with("/v2.1.0/collection.json"));
    let items = collection["item"].as_array().unwrap();
    assert_eq!(items.len(), 6, "two to open the session, four calls");
    for item in items {
        assert!(item["name"].is_string() && item["response"].is_array());
        let request = &item["request"];
        assert_eq!((&request["method"], &request["url"]), (&"POST".into(), &"{{url}}".into()));
        assert!(
            request["header"].as_array().unwrap().iter().all(|one| one["key"].is_string() && one["value"].is_string())
        );
        let raw = request["body"]["raw"].as_str().unwrap();
        assert!(!raw.contains("{{"), "{raw}");
        serde_json::from_str::<Value>(raw).unwrap();
    }
    let raw: Value = serde_json::from_str(items[2]["request"]["body"]["raw"].as_str().unwrap()).unwrap();
    assert_eq!(raw["params"]["name"], HOSTILE);
    assert_eq!(collection["variable"][1]["key"], "session_1");
    assert!(items[0]["event"][0]["script"]["exec"][0].as_str().unwrap().contains("set(\"session_1\""));
}

#[test]
fn an_insomnia_workspace_has_its_shape() {
    let workspace: Value = serde_json::from_str(&made(INSOMNIA)).unwrap();
    assert_eq!((&workspace["_type"], &workspace["__export_format"]), (&"export".into(), &4.into()));
    let requests: Vec<&Value> =
        workspace["resources"].as_array().unwrap().iter().filter(|one| one["_type"] == "request").collect();
    assert_eq!(requests.len(), 6);
    for request in requests {
        let text = request["body"]["text"].as_str().unwrap();
        assert!(!text.contains("{{") && !text.contains("{%") && !text.contains("{#"), "{text}");
    }
}

#[test]
fn tests_expect_what_was_recorded() {
    let pytest = made(PYTEST);
    assert!(pytest.contains("await expect_error(session.call_tool(\"plain\", json.loads("), "{pytest}");
    assert!(pytest.contains(", -32602)") && pytest.contains("is left out: it has no answer on the tape"));
    assert!(pytest.contains("is left out: the client of the package has no method for it"));
    let vitest = made(VITEST);
    assert!(
        vitest.contains("rejects.toMatchObject({ code: -32602 })")
            && vitest.contains("toMatchObject(plain(JSON.parse(")
    );
    let playwright = made(PLAYWRIGHT);
    assert!(playwright.contains("expect(answer.error?.code).toBe(-32602);"));
}

#[test]
fn calls_of_the_new_era_need_no_session_and_name_their_subject() {
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"{{x}}","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let recording = import::read(&Bytes::from(line), ImportFormat::Messages).unwrap();
    let (mut out, mut all) = (Vec::new(), Entries::new(recording, Redactor::none(), None, 1).map(Ok));
    let info = TapeInfo::new("t".to_owned(), TapeKind::Proxy, "https://x.invalid/mcp".to_owned(), 1);
    let target = ExportTarget::new(&info, None, "t".to_owned());
    curl::write(Source { info: &info, sessions: &[], entries: &mut all }, &target, &mut out).unwrap();
    let script = String::from_utf8(out).unwrap();
    assert!(!script.contains("$(open ") && script.contains("url=${MCP_URL:-'https://x.invalid/mcp'}"), "{script}");
    assert!(
        script.contains("'MCP-Protocol-Version: 2026-07-28' 'Mcp-Method: tools/call' 'Mcp-Name: =?base64?e3t4fX0=?='")
    );
}

#[test]
fn addresses_are_http_and_printable() {
    assert!(is_url("https://a.invalid/mcp?x=1") && is_url("http://[::1]:80/"));
    for bad in ["", "http://", "ftp://x", "file:///x", "http://x/\n", "http://x y", "javascript:1"] {
        assert!(!is_url(bad), "{bad}");
    }
}
