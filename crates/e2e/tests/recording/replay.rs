//! Tapes that answer: real clients talk to a recorded server that is gone (rows S-38, S-45, S-64, S-75, SO-2, SO-12).

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use serde_json::{Value, json};
use signalbox_testkit::clients::{run, run_script};
use signalbox_testkit::notes_tape::{Talk, note_of, notes_tape, recording};
use signalbox_testkit::process::built;
use signalbox_testkit::served_tape::{ServedTape, record, talk, text, told};
use std::path::{Path, PathBuf};
use tokio::process::Command;

const CLIENTS: [&[&str]; 5] =
    [&["ts-sdk1"], &["py-mcp1"], &["ts-client2", "--era", "old"], &["ts-client2", "--era", "new"], &["py-mcp2"]];

const STEPS: [&str; 10] = [
    "--steps",
    "tools,call,elicit,progress,prompts,resources",
    "--answer",
    "Ada",
    "--call",
    r#"echo={"message":"häł😀"}"#,
    "--call",
    "trigger-elicitation-request={}",
    "--call",
    r#"trigger-long-running-operation={"duration":1,"steps":4}"#,
];

/// Records a client's steps with server-everything behind the gateway.
async fn recorded(client: &[&str], folder: &Path) -> Option<(Value, PathBuf)> {
    let script = json!(text(&run_script()));
    let backend = format!("[backends.ev]\ncommand = {script}\nargs = [\"everything\", \"stdio\"]\n");
    record(client, &STEPS, &backend, folder).await.unwrap()
}

/// What a client was told, but for the list of tools.
fn without_tools(document: &Value) -> Value {
    let mut told = told(document);
    told.as_object_mut().unwrap().remove("tools");
    told
}

fn names(document: &Value) -> Vec<Value> {
    told(document)["tools"]["names"].as_array().unwrap().clone()
}

/// Proves S-38, S-75 and SO-2.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_session_is_served_back_over_stdio_with_the_server_gone() {
    for client in CLIENTS {
        let folder = tempfile::tempdir().unwrap();
        let Some((live, tape)) = recorded(client, folder.path()).await else { return };
        let (program, data) = (built("signalbox").unwrap(), folder.path().join("replay"));
        // SO-2: a tape alone on the command line, with a pipe as input, is served.
        let replayed =
            talk(client, &STEPS, &[text(&program), "--data-dir", text(&data), text(&tape)]).await.unwrap().unwrap();
        assert!(told(&live)["call"].to_string().contains("häł😀"), "{client:?}: {live}");
        assert_eq!(without_tools(&replayed), without_tools(&live), "{client:?}");
        // The server adds tools after the handshake; a tape lists all that it can answer from the beginning.
        let (names, recorded) = (names(&replayed), names(&live));
        assert!(recorded.iter().all(|name| names.contains(name)), "{client:?}: {names:?}, {recorded:?}");
        assert!(replayed["progress"]["count"].as_u64() > Some(0), "{client:?}: {replayed}");
    }
}

/// Proves S-45.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_session_is_served_to_clients_of_other_revisions_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let Some((_, tape)) = recorded(CLIENTS[0], folder.path()).await else { return };
    let served = ServedTape::start(folder.path(), &tape, &[]).await.unwrap();
    for client in CLIENTS {
        let line = [client, &STEPS[..], &["--url", &served.url]].concat();
        let replayed = run(&line).await.unwrap().unwrap();
        let calls = told(&replayed)["call"].to_string();
        assert!(calls.contains("häł😀") && calls.contains("Long running operation completed"), "{client:?}: {calls}");
        assert!(!calls.contains("not on the tape"), "{client:?}: {calls}");
    }
}

/// `replay run` of a tape against the notes server: its exit code, what it printed, and how often the server wrote.
async fn run_notes(folder: &Path, tape: &Path, flags: &[&str], server: &[&str]) -> (i32, String, String) {
    let writes = folder.join("writes");
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["replay", "run", text(tape), "--data-dir", text(&folder.join("run"))]).args(flags).arg("--");
    command.arg(built("notes-server").unwrap()).arg(&writes).args(server);
    let output = command.output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), said, std::fs::read_to_string(writes).unwrap())
}

/// Proves S-38 and S-45.
#[tokio::test(flavor = "multi_thread")]
async fn create_read_delete_with_ids_that_the_server_mints_passes_against_a_fresh_server() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let (code, said, writes) = run_notes(folder.path(), &tape, &["--allow-writes"], &[]).await;
    assert_eq!((code, &*writes), (0, "2"), "{said}");
    assert!(said.contains("5 the same") && said.contains("made up was replaced"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_allow_writes_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let (code, said, writes) = run_notes(folder.path(), &tape, &["--json"], &[]).await;
    assert_eq!(writes, "0", "{said}");
    let report: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    let verdicts =
        |word: &str| report["calls"].as_array().unwrap().iter().filter(|call| call["verdict"] == word).count();
    assert_eq!((verdicts("from_tape"), verdicts("same")), (2, 1), "{said}");
    // The note that would be read was never created.
    assert_eq!((code, verdicts("depends")), (0, 2), "{said}");
}

/// Proves SO-12.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_one_changed_tool_fails_and_the_call_and_the_field_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let junit = folder.path().join("report.xml");
    let flags = ["--allow-writes", "--junit", text(&junit), "--github"];
    let (code, said, _) = run_notes(folder.path(), &tape, &flags, &["--changed"]).await;
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("tools/call read_note") && said.contains("/result/content/0/text/@json/text missing"),
        "{said}"
    );
    assert!(said.contains("::error file=") && said.contains("1 different"), "{said}");
    let report = std::fs::read_to_string(&junit).unwrap();
    assert!(report.contains("failures=\"1\"") && report.contains("@json/text missing"), "{report}");
    let (_, said, _) =
        run_notes(folder.path(), &tape, &["--allow-writes", "--json", "--on-error", "stop"], &["--changed"]).await;
    let stopped: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    let verdicts: Vec<&str> =
        stopped["calls"].as_array().unwrap().iter().map(|call| call["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts[verdicts.len() - 3..], ["different", "skipped", "skipped"], "{said}");
    let ignored = ["--allow-writes", "--ignore", "/result/content/*/text/@json"];
    let (code, said, _) = run_notes(folder.path(), &tape, &ignored, &["--changed"]).await;
    assert_eq!(code, 0, "{said}");
}

/// Proves S-46, S-48 and S-64.
#[tokio::test(flavor = "multi_thread")]
async fn rules_between_tape_and_server_change_params_and_inject_errors() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let rules = folder.path().join("rules.toml");
    let run = async |then: &str| {
        std::fs::write(
            &rules,
            format!("[[rules]]\nid = \"one\"\nwhen = {{ tool = \"create_note\" }}\nthen = {then}\n"),
        )
        .unwrap();
        run_notes(folder.path(), &tape, &["--allow-writes", "--rules", text(&rules)], &[]).await
    };
    let (code, said, _) =
        run(r#"{ set = { "/params/arguments/text" = "{{/params/arguments/text}} and bread" } }"#).await;
    assert!(code == 1 && said.contains("tools/call read_note") && said.contains("milk and bread"), "{said}");
    let (code, said, writes) = run(r#"{ error = { code = -32050, message = "{{/params/name}} is down" } }"#).await;
    assert!(code == 1 && said.contains("create_note is down"), "{said}");
    assert_eq!(writes, "0", "a note that was not made is not deleted: {said}");
    assert!(said.contains("call 5: tools/call delete_note") && said.contains("it depends on call 3"), "{said}");
}

/// Proves SO-12.
#[tokio::test(flavor = "multi_thread")]
async fn learn_finds_what_differs_from_run_to_run_and_update_makes_a_child_tape() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let (code, said, _) = run_notes(folder.path(), &tape, &["--allow-writes", "--learn"], &[]).await;
    assert_eq!(code, 0, "{said}");
    assert!(said.lines().any(|line| line == r#"/result/content/*/text ~ "Created <word>.""#), "{said}");
    assert!(!said.lines().any(|line| line == "/result/content/*/text"), "no text is learned away: {said}");
    let learned = folder.path().join("volatile.paths");
    let save = ["--allow-writes", "--learn", "--save", text(&learned)];
    let (code, said, _) = run_notes(folder.path(), &tape, &save, &[]).await;
    assert!(code == 0 && said.contains("--yes writes it") && !learned.exists(), "{said}");
    run_notes(folder.path(), &tape, &[&save[..], &["--yes"]].concat(), &[]).await;
    let with = ["--allow-writes", "--ignore-file", text(&learned)];
    let (code, said, _) = run_notes(folder.path(), &tape, &with, &[]).await;
    assert_eq!(code, 0, "{said}");
    let (code, said, _) = run_notes(folder.path(), &tape, &with, &["--changed"]).await;
    assert!(code == 1 && said.contains("@json/text missing"), "a changed server fails all the same: {said}");
    let child = folder.path().join("child.tape");
    let (code, said, _) = run_notes(folder.path(), &tape, &["--allow-writes", "--update", text(&child)], &[]).await;
    assert_eq!(code, 0, "{said}");
    let head = |path: &Path| signalbox_tape::TapeSource::open(path).unwrap().info().clone();
    assert_eq!(head(&child).parent, Some(head(&tape).id));
    assert_eq!(head(&tape).parent, None, "a tape is never rewritten");
}

/// A server that does not start or answer is no difference.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_start_or_answer_ends_the_run_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let run = async |server: &[&str]| {
        let mut command = Command::new(built("signalbox").unwrap());
        command.args(["replay", "run", text(&tape), "--timeout", "2s", "--data-dir", text(&folder.path().join("run"))]);
        let output = command.args(server).output().await.unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for server in [&["--", "/nonexistent/server"][..], &["--", "false"], &["--against", "http://127.0.0.1:9/mcp"]] {
        let (code, said) = run(server).await;
        assert!(code == 2 && said.contains("the server did not start"), "{server:?}: {code} {said}");
    }
    let (code, said) = run(&["--", "sleep", "60"]).await;
    assert!(code == 2 && said.contains("did not answer the handshake"), "{code} {said}");
}

/// A branch begins at a call that there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_at_a_call_that_the_tape_does_not_have_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["replay", "branch", text(&tape), "--at", "99", "--answer", "{}", "--stdio"]);
    let output = command.args(["--data-dir", text(&folder.path().join("branch"))]).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("has no call 99; its calls are 1 to 6"), "{said}");
}

/// `--explain` shows where each value comes from.
#[tokio::test(flavor = "multi_thread")]
async fn the_way_of_each_value_is_shown_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let (code, said, _) = run_notes(folder.path(), &tape, &["--allow-writes", "--explain"], &[]).await;
    assert!(code == 0 && said.contains("1 value that the server made up was replaced"), "{said}");
    let line = said.lines().find(|line| line.contains(" of call 3 ")).unwrap_or_default();
    assert!(line.contains("is now note-") && line.ends_with("wanted by calls 4, 5, 6"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_are_answered_in_order_and_unknown_ones_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let served = ServedTape::start(folder.path(), &tape, &[]).await.unwrap();
    let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
    let client =
        signalbox_testkit::http_client::HttpClient::new(address).initialize("2025-06-18", json!({})).await.unwrap();
    let mut id = 0;
    let mut call = async |tool: &str, arguments: Value| {
        id += 1;
        client.request(id, "tools/call", json!({"name": tool, "arguments": arguments})).await.unwrap()
    };
    let created = call("create_note", json!({"text": "milk"})).await;
    let note = note_of(created["result"]["content"][0]["text"].as_str().unwrap());
    // Recorded before and after the note was deleted.
    let read = json!({"note": note});
    assert!(call("read_note", read.clone()).await["result"]["content"][0]["text"].as_str().unwrap().contains("milk"));
    assert_eq!(call("read_note", read.clone()).await["result"]["isError"], true);
    let third = call("read_note", read).await;
    assert_eq!(third["error"]["data"], json!({"reason": "not_on_tape", "recorded": 2}), "{third}");
    let unknown = call("create_note", json!({"text": "bread"})).await;
    assert_eq!(unknown["error"]["data"]["reason"], "not_on_tape", "{unknown}");
    assert_eq!(unknown["error"]["data"]["differs"], json!(["/params/arguments/text"]), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_calls_go_to_the_live_server_and_onto_a_child_tape_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let (child, writes, server) =
        (folder.path().join("more.tape"), folder.path().join("w"), built("notes-server").unwrap());
    let live = ["--record", "new", "--tape-to", text(&child), "--", text(&server), text(&writes)];
    let served = ServedTape::start(folder.path(), &tape, &live).await.unwrap();
    let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
    let client =
        signalbox_testkit::http_client::HttpClient::new(address).initialize("2025-06-18", json!({})).await.unwrap();
    let create = async |id: u64, text: &str| {
        let params = json!({"name": "create_note", "arguments": {"text": text}});
        client.request(id, "tools/call", params).await.unwrap()["result"].to_string()
    };
    assert!(create(1, "milk").await.contains("Created"));
    assert_eq!(std::fs::read_to_string(&writes).unwrap(), "0", "what is on the tape is not sent");
    assert!(create(2, "bread").await.contains("Created"));
    assert_eq!(std::fs::read_to_string(&writes).unwrap(), "1");
    drop(served);
    let parent = signalbox_tape::TapeSource::open(&child).unwrap().info().parent.clone();
    assert_eq!(parent, Some(signalbox_tape::TapeSource::open(&tape).unwrap().info().id.clone()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_tape_of_200_calls_shrinks_to_the_two_that_matter() {
    let folder = tempfile::tempdir().unwrap();
    let (mut talk, tape) = recording(folder.path()).await.unwrap();
    talk.ask("tools/list", json!({})).await.unwrap();
    let mut notes = Vec::new();
    for number in 0..100 {
        notes.push(note_of(&talk.call("create_note", json!({"text": format!("note {number}")})).await.unwrap()));
    }
    for note in notes.iter().filter(|note| **note != notes[77]) {
        talk.call("delete_note", json!({"note": note})).await.unwrap();
    }
    talk.call("read_note", json!({"note": notes[77]})).await.unwrap();
    talk.end().await.unwrap();
    let least = folder.path().join("least.tape");
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["replay", "shrink", text(&tape), "-o", text(&least), "--allow-writes"]);
    command.args(["--data-dir", text(&folder.path().join("shrink")), "--"]);
    command.arg(built("notes-server").unwrap()).arg(folder.path().join("writes")).arg("--changed");
    let output = command.output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.starts_with("2 of 20"), "{said}");
    let (code, told, _) = run_notes(folder.path(), &least, &["--allow-writes"], &["--changed"]).await;
    assert!(code == 1 && told.contains("1 the same, 1 different"), "{told}");
    let (code, told, _) = run_notes(folder.path(), &least, &["--allow-writes"], &[]).await;
    assert!(code == 0 && told.contains("2 the same"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_goes_on_live_from_a_call_and_is_a_child_tape() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let (child, writes) = (folder.path().join("branch.tape"), folder.path().join("writes"));
    let mut command = Command::new(built("signalbox").unwrap());
    // Call 1 is the handshake, 2 the list, 3 creates the note, 4 reads it.
    command.args(["replay", "branch", text(&tape), "--at", "4", "--tape-to", text(&child)]);
    command.args(["--data-dir", text(&folder.path().join("branch")), "--"]);
    command.arg(built("notes-server").unwrap()).arg(&writes);
    let mut talk = Talk::begin(command).await.unwrap();
    let note = note_of(&talk.call("create_note", json!({"text": "milk"})).await.unwrap());
    assert!(talk.call("read_note", json!({"note": note})).await.unwrap().contains("milk"));
    assert_eq!(std::fs::read_to_string(&writes).unwrap(), "0", "the tape answers up to call 4");
    assert_eq!(
        talk.call("delete_note", json!({"note": note})).await.unwrap(),
        "There is no such note.",
        "the server answers"
    );
    assert_eq!(std::fs::read_to_string(&writes).unwrap(), "1");
    talk.end().await.unwrap();
    let head = |path: &Path| signalbox_tape::TapeSource::open(path).unwrap().info().clone();
    assert_eq!(head(&child).parent, Some(head(&tape).id));
}

/// Proves S-47.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_may_begin_with_another_answer() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let mut command = Command::new(built("signalbox").unwrap());
    let answer = r#"{"content":[{"type":"text","text":"bread"}]}"#;
    command.args(["replay", "branch", text(&tape), "--at", "4", "--answer", answer]);
    command.args(["--data-dir", text(&folder.path().join("branch"))]);
    let mut talk = Talk::begin(command).await.unwrap();
    let note = note_of(&talk.call("create_note", json!({"text": "milk"})).await.unwrap());
    assert_eq!(talk.call("read_note", json!({"note": note})).await.unwrap(), "bread");
    assert!(talk.call("delete_note", json!({"note": note})).await.unwrap().starts_with("Deleted"), "the tape goes on");
    talk.end().await.unwrap();
}

/// Runs a program of the tests with a tape; `None` where it is not installed.
async fn run_with_tape(command: &mut Command, folder: &Path, tape: &Path) -> Option<(bool, String)> {
    command.env("SIGNALBOX", built("signalbox").unwrap()).env("TAPE", tape).env("SIGNALBOX_DATA_DIR", folder.join("d"));
    let output = command.output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{said}");
        eprintln!("SKIP a program that reads tapes: run script/install-test-deps");
        return None;
    }
    Some((output.status.success(), said))
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_for_pytest_and_vitest_pass_against_their_tape_and_fail_against_another() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let other = folder.path().join("other.tape");
    let answer = r#"{"content":[{"type":"text","text":"bread"}]}"#;
    let mut branch = Command::new(built("signalbox").unwrap());
    branch.args(["replay", "branch", text(&tape), "--at", "4", "--answer", answer, "--tape-to", text(&other)]);
    branch.args(["--data-dir", text(&folder.path().join("branch"))]);
    let mut talk = Talk::begin(branch).await.unwrap();
    talk.ask("tools/list", json!({})).await.unwrap();
    let note = note_of(&talk.call("create_note", json!({"text": "milk"})).await.unwrap());
    talk.call("read_note", json!({"note": note})).await.unwrap();
    talk.end().await.unwrap();
    for (program, file) in [("pytest", "test_calls.py"), ("vitest", "calls.test.js")] {
        let file = folder.path().join(file);
        let mut export = Command::new(built("signalbox").unwrap());
        export.args(["tape", "export", text(&tape), "-o", text(&file), "--data-dir", text(&folder.path().join("d"))]);
        assert!(export.output().await.unwrap().status.success());
        for (tape, passes) in [(&tape, true), (&other, false)] {
            let mut command = Command::new(run_script());
            command.args([program, text(&file)]);
            let Some((passed, said)) = run_with_tape(&mut command, folder.path(), tape).await else { return };
            assert_eq!(passed, passes, "{program}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_github_action_of_the_examples_checks_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/github-action/action.yml");
    let action = std::fs::read_to_string(action).unwrap();
    let script = action.split("run: |\n").nth(1).unwrap();
    let server = format!("{} {}/writes", text(&built("notes-server").unwrap()), text(folder.path()));
    for (server, passes) in [(server.clone(), true), (format!("{server} --changed"), false)] {
        let (junit, output) = (folder.path().join("report.xml"), folder.path().join("output"));
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("AGAINST", server).env("JUNIT", &junit).env("GITHUB_OUTPUT", &output);
        command.env("ARGS", "--allow-writes\n");
        let (passed, said) = run_with_tape(&mut command, folder.path(), &tape).await.unwrap();
        assert_eq!(passed, passes, "{said}");
        assert_eq!(said.contains("::error file="), !passes, "{said}");
        assert!(std::fs::read_to_string(&junit).unwrap().contains("<testsuite"));
        assert!(std::fs::read_to_string(&output).unwrap().contains("junit="));
    }
}
