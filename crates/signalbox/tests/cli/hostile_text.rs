//! Text of clients and backends in every output: it neither forges a line nor speaks to the terminal.

use crate::program::{Program, eventually, run};
use crate::status::terminal;
use crate::{INITIALIZE, INITIALIZED, call};
use serde_json::{Value, json};
use std::path::Path;

/// An escape, a colour, a title, a line break, C1, a line separator and what turns the direction, as JSON writes them.
const CANARY: &str = r"x\u001b[31m\u001b]0;t\u0007\nINFO forged\r\u009b1m\u0085\u2028\u202e\u2066\ufeff\u007fy";

/// A backend whose every word is hostile. It answers by the id that it was asked with.
const BACKEND: &str = r#"while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"CANARY","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"say","description":"CANARY","inputSchema":{"type":"object"}},{"name":"fail","description":"CANARY","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"fail"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"CANARY"}}\n' "$id" ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"CANARY"}]}}\n' "$id" ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"CANARY"}}\n' "$id" ;;
  esac
done"#;

/// Starts a gateway before that backend on a pipe, with calls that are on its tape.
async fn gateway(folder: &Path) -> Program {
    // `printf` of the shell reads backslashes too.
    let script = BACKEND.replace("CANARY", &CANARY.replace('\\', r"\\"));
    std::fs::write(folder.join("backend.sh"), script).unwrap();
    let config = "[backends.hostile]\ncommand = \"/bin/sh\"\nargs = [\"backend.sh\"]\n";
    std::fs::write(folder.join("signalbox.toml"), config).unwrap();
    let mut program = Program::start(folder, &["stdio", "--log-level", "debug"]);
    program.write(INITIALIZE).await;
    program.answer(1).await;
    program.write(INITIALIZED).await;
    for (id, tool) in [(2, "say"), (3, "fail")] {
        program.write(&call(id, tool, &json!({}))).await;
        program.answer(u64::from(id)).await;
    }
    let method = format!(r#"{{"jsonrpc":"2.0","id":4,"method":"{CANARY}","params":{{}}}}"#);
    program.write(&method).await;
    program.answer(4).await;
    let unknown = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"{CANARY}","arguments":{{"a":"{CANARY}"}}}}}}"#
    );
    program.write(&unknown).await;
    program.answer(5).await;
    program
}

fn assert_harmless(what: &str, text: &str) {
    let harmful = |char: &char| signalbox_wire::printable::is_harmful(*char) && !matches!(char, '\n' | '\t');
    assert_eq!(text.chars().find(harmful), None, "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("INFO forged")), "{what}: {text:?}");
}

#[tokio::test]
async fn no_text_of_clients_or_backends_speaks_to_the_terminal_or_forges_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut gateway = gateway(folder).await;
    eventually(async || {
        let shown = run(folder, &["tape", "show", "last"], "").await;
        (shown.stdout.matches("tools/call").count() >= 3).then_some(())
    })
    .await;
    let commands: [&[&str]; 13] = [
        &["status"],
        &["doctor"],
        &["sessions", "list"],
        &["tools", "list"],
        &["tools", "call", "fail"],
        &["tape", "list"],
        &["tape", "show", "last"],
        &["tape", "show", "last", "--exchange", "2"],
        &["tape", "search", "forged"],
        &["tape", "stats", "last"],
        &["tape", "diff", "last", "last"],
        &["tape", "show", "no\u{1b}[1mtape"],
        &["replay", "run", "last", "--", "/bin/sh", "backend.sh"],
    ];
    for args in commands {
        for json in [false, true] {
            let args: Vec<&str> = args.iter().copied().chain(json.then_some("--json")).collect();
            let done = run(folder, &args, "").await;
            assert_harmless(&format!("{args:?} on stdout"), &done.stdout);
            assert_harmless(&format!("{args:?} on stderr"), &done.stderr);
        }
    }
    // A program gets the text as it is; a terminal would act on it.
    let exact = run(folder, &["tools", "call", "say"], "").await;
    let canary: Value = serde_json::from_str(&format!("\"{CANARY}\"")).unwrap();
    assert_eq!(exact.stdout.trim_end_matches('\n'), canary.as_str().unwrap(), "{}", exact.stderr);
    let shown = terminal(200).run(folder, &["tools", "call", "say"], &[]).await;
    // A result may have lines of its own.
    assert_harmless("tools call on a terminal", &shown.stdout.replace("\r\n", " ").replace('\n', " "));
    assert!(shown.stdout.contains("forged"), "{:?}", shown.stdout);

    gateway.signal("TERM").await;
    gateway.ended().await;
    let log = gateway.stderr();
    assert!(log.contains("forged"), "the log tells of the calls: {log}");
    assert_harmless("the log", &log);
    let deleted = run(folder, &["tape", "delete", "last", "--yes"], "").await;
    assert_eq!(deleted.code, 0, "{}", deleted.stderr);
    assert_harmless("tape delete", &deleted.stdout);
}
