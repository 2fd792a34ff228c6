//! `signalbox tape diff` on tapes of real runs, and on tapes that nobody would record.

use crate::program::{Done, Program, run};
use crate::{INITIALIZE, INITIALIZED, call};
use serde_json::{Value, json};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    BackendOffer, Body, Content, Entry, FinishedEntry, MessageEntry, MessageKind, TapeInfo, TapeKind,
};
use signalbox_tape::TapeFileWriter;
use std::path::Path;

/// Records the calls of one client at the demo tools, and writes the tape to a file.
async fn record(folder: &Path, file: &str, calls: &[(&str, Value)]) {
    std::fs::create_dir_all(folder.join("root")).unwrap();
    std::fs::write(folder.join("signalbox.toml"), "[gateway]\ndemo_root = \"root\"\n").unwrap();
    let mut program = Program::start(folder, &["stdio"]);
    program.write(INITIALIZE).await;
    program.answer(1).await;
    program.write(INITIALIZED).await;
    for (index, (tool, arguments)) in calls.iter().enumerate() {
        let id = u32::try_from(index).unwrap() + 2;
        program.write(&call(id, tool, arguments)).await;
        program.answer(u64::from(id)).await;
    }
    program.signal("TERM").await;
    program.ended().await;
    let done = run(folder, &["tape", "export", "last", "-o", file], "").await;
    assert_eq!(done.code, 0, "{}", done.stderr);
}

async fn diff(folder: &Path, args: &[&str]) -> Done {
    let line: Vec<&str> = ["tape", "diff"].into_iter().chain(args.iter().copied()).collect();
    run(folder, &line, "").await
}

/// Two recorded runs are compared by call and field; what is ignored does not count.
/// Proves S-64 and SO-12.
#[tokio::test]
async fn two_runs_of_the_demo_tools_are_compared_by_call_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let echo = |text: &str| ("echo", json!({"text": text}));
    let list = || ("directory_list", json!({"path": "."}));
    // The first run of a gateway may introduce itself before it knows its tools; later ones remember them.
    record(folder, "first.tape", &[echo("x")]).await;
    record(folder, "old.tape", &[echo("hi"), list(), echo("bye")]).await;
    record(folder, "same.tape", &[echo("hi"), list(), echo("bye")]).await;
    let volatile = diff(folder, &["old.tape", "same.tape"]).await;
    assert!(volatile.code == 1 && volatile.stdout.contains("@json/metadata/execution_time"), "{}", volatile.stdout);
    let same = diff(folder, &["old.tape", "same.tape", "--ignore", "/**/execution_time"]).await;
    assert_eq!(same.code, 0, "{} {}", same.stdout, same.stderr);
    assert!(same.stdout.contains("4 calls compared, 0 differ"), "{}", same.stdout);

    std::fs::write(folder.join("root/new.txt"), "x").unwrap();
    record(folder, "new.tape", &[echo("hi"), echo("more"), list(), echo("bye")]).await;
    // One tape is a file, the other is in the store.
    let found = diff(folder, &["old.tape", "last", "--ignore", "/**/execution_time"]).await;
    assert_eq!(found.code, 1, "{} {}", found.stdout, found.stderr);
    let line = |words: &str| found.stdout.lines().find(|line| line.contains(words)).unwrap_or_default().to_owned();
    assert!(
        line("directory_list").contains("tools/call") && line("directory_list").contains("/result/"),
        "{}",
        found.stdout
    );
    assert!(line("only on the new tape").contains("echo"), "{}", found.stdout);
    assert!(
        found.stdout.contains("new.txt") && found.stdout.contains("4 calls compared, 2 differ"),
        "{}",
        found.stdout
    );

    let ignored = diff(folder, &["old.tape", "new.tape", "--ignore", "/result/**", "--tool", "directory_list"]).await;
    assert_eq!(ignored.code, 0, "{} {}", ignored.stdout, ignored.stderr);
    std::fs::write(folder.join("volatile.paths"), "# listings change\n/result/content\n/result/structuredContent\n")
        .unwrap();
    let by_file = ["old.tape", "new.tape", "--ignore-file", "volatile.paths", "--tool", "directory_list"];
    assert_eq!(diff(folder, &by_file).await.code, 0);
    assert_eq!(diff(folder, &["old.tape", "new.tape", "--breaking"]).await.code, 0, "more data breaks nobody");
    assert_eq!(diff(folder, &["old.tape", "new.tape", "--method", "init*"]).await.code, 0);

    let json = diff(folder, &["old.tape", "new.tape", "--json"]).await;
    let json: Value = serde_json::from_str(&json.stdout).expect(&json.stderr);
    assert_eq!((&json["same"], &json["counts"]["added"]), (&json!(false), &json!(1)), "{json}");
    assert!(json["timings"].as_array().unwrap().iter().any(|row| row["tool"] == "echo"), "{json}");
}

#[tokio::test]
async fn what_cannot_be_compared_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tape(&folder.join("a.tape"), json!([]), "x");
    std::fs::write(folder.join("bad.paths"), "/a\nb\n").unwrap();
    for (args, said) in [
        (&["a.tape", "none.tape"][..], "none.tape"),
        (&["a.tape", "a.tape", "--ignore", "b"], "must begin with `/`"),
        (&["a.tape", "a.tape", "--ignore-file", "bad.paths"], "bad.paths, line 2"),
        (&["a.tape", "a.tape", "--tolerance=-1"], "not negative"),
        (&["a.tape", "a.tape", "--session", "x"], "OLD:NEW"),
        (&["a.tape", "bad.paths"], "tape"),
    ] {
        let done = diff(folder, args).await;
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
    }
    assert_eq!(diff(folder, &["a.tape", "a.tape", "--tolerance", "--session", "1:2"]).await.code, 0);
}

/// A tape with one call and what its server offers.
fn tape(path: &Path, tools: Value, answer: &str) {
    let info = TapeInfo::new("t".to_owned(), TapeKind::Serve, "x".to_owned(), 1);
    let mut file = TapeFileWriter::new(std::fs::File::create(path).unwrap(), &info, &[]).unwrap();
    let message = |point, kind, body: Value| {
        let text = body.to_string();
        Content::Message(MessageEntry::new(point, kind, text.len() as u64, Body::Whole(text.into())))
    };
    let request = json!({"id": 1, "method": "tools/call", "params": {"name": "say"}});
    let result = json!({"id": 1, "result": {"content": [{"type": "text", "text": answer}]}});
    let finished = FinishedEntry {
        method: "tools/call".into(),
        subject: Some("say".into()),
        outcome: "success".into(),
        ..FinishedEntry::default()
    };
    let seen = BackendOffer {
        backend: "b".into(),
        hash: tools.to_string(),
        parts: vec![("tools".into(), tools.to_string().into())],
        ..BackendOffer::default()
    };
    let contents = [
        (None, Content::Backend(Box::new(seen))),
        (Some(1), message(Point::ClientIn, MessageKind::Request, request)),
        (Some(1), message(Point::ClientOut, MessageKind::Result, result)),
        (Some(1), Content::Finished(finished)),
    ];
    for (seq, (exchange, content)) in (1..).zip(contents) {
        file.push(&Entry { exchange, ..Entry::new(seq, seq, "ann".into(), content) }).unwrap();
    }
    file.finish(Some(9)).unwrap();
}

#[tokio::test]
async fn a_tool_that_wants_more_is_breaking_and_nothing_speaks_to_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tools = |required: &[&str]| json!([{"name": "say\u{1b}[2J", "inputSchema": {"type": "object", "properties": {"to": {}}, "required": required}}]);
    let said = |who: &str, number: f64| json!({"who": format!("\u{1b}[1m{who}\u{9b}1m"), "n": number}).to_string();
    tape(&folder.join("old.tape"), tools(&[]), &said("ann", 1.0));
    tape(&folder.join("new.tape"), tools(&["to"]), &said("bob", 1.001));
    let found = diff(folder, &["old.tape", "new.tape", "--tolerance", "--breaking"]).await;
    assert_eq!(found.code, 1, "{} {}", found.stdout, found.stderr);
    assert!(found.stdout.contains("/inputSchema/required: the argument `to` is required now"), "{}", found.stdout);
    assert!(found.stdout.contains("/result/content/0/text/@json/who"), "{}", found.stdout);
    assert!(!found.stdout.contains("@json/n:") && !found.stdout.contains(['\u{1b}', '\u{9b}']), "{:?}", found.stdout);
    let back = diff(folder, &["new.tape", "old.tape", "--breaking"]).await;
    assert_eq!(back.code, 0, "{}", back.stdout);
    assert!(back.stdout.contains("compatible") && back.stdout.contains("optional now"), "{}", back.stdout);
}
