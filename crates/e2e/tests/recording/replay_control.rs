//! A run of a tape under control: in the view on a terminal, and by the control socket (rows S-41 to S-44, SO-12).
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::notes_tape::notes_tape;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{PATIENCE, signalbox};
use signalbox_testkit::terminal::Terminal;
use std::path::Path;
use tokio::process::Command;

/// `replay run` of a tape against the notes server, which counts its writes in a file.
fn run(folder: &Path, tape: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["replay", "run"]).arg(tape).arg("--data-dir").arg(folder.join("run")).args(flags).arg("--");
    command.arg(built("notes-server").unwrap()).arg(folder.join("writes"));
    command
}

fn writes(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("writes")).unwrap()
}

/// Proves S-41, S-42, S-43 and S-44.
#[tokio::test(flavor = "multi_thread")]
async fn the_view_breaks_steps_edits_continues_and_seeks_back() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    let editor = folder.path().join("editor.sh");
    std::fs::write(&editor, "sed -i 's/\"note-[^\"]*\"/\"no-such-note\"/' \"$1\"\n").unwrap();
    let terminal = Terminal::open().unwrap();
    terminal.resize(100, 40).unwrap();
    let before = terminal.mode().unwrap();
    let mut command = run(folder.path(), &tape, &["--interactive", "--allow-writes"]);
    command.env("EDITOR", format!("sh {}", editor.display())).env_remove("VISUAL");
    let mut running = terminal.start(command).unwrap();
    let row = |place: usize| {
        let start = format!("{place} tools/");
        terminal.screen().lines().find(|line| line.contains(&start)).unwrap_or_default().to_owned()
    };

    // A breakpoint at the first read.
    terminal.shows("PAUSED  call 1 of 6").await.unwrap();
    terminal.press("]]]b").unwrap();
    terminal.shows("breakpoint 1: call 4").await.unwrap();
    terminal.press(" ").unwrap();
    terminal.shows("PAUSED  call 4 of 6  speed max  breakpoint 1: call 4").await.unwrap();
    assert!(row(2).ends_with("same") && row(3).ends_with("same"), "{}", terminal.screen());
    assert!(row(4).starts_with(">▶●") && row(4).trim_end().ends_with("read_note"), "{}", terminal.screen());
    assert_eq!(writes(folder.path()), "1");

    // The next request is edited, and sent by a step.
    terminal.press("e").unwrap();
    terminal.shows("the request of call 4 is edited").await.unwrap();
    terminal.shows("no-such-note").await.unwrap();
    terminal.press("n").unwrap();
    terminal.shows("PAUSED  call 5 of 6").await.unwrap();
    terminal.shows("different edited").await.unwrap();
    terminal.press("[").unwrap();
    terminal.shows("/result/isError added: (none) → true").await.unwrap();
    assert!(terminal.screen().contains("Verdict: different"), "{}", terminal.screen());

    // The run goes on to its end.
    terminal.press(" ").unwrap();
    terminal.shows("FINISHED").await.unwrap();
    assert!(row(5).ends_with("same") && row(6).ends_with("same"), "{}", terminal.screen());
    assert_eq!(writes(folder.path()), "2");

    // Back to the third call: the note is created again, and the read finds it now.
    terminal.press("\u{1b}[H]]g").unwrap();
    terminal.shows("PAUSED  call 3 of 6").await.unwrap();
    assert!(row(4).ends_with("different edited"), "{}", terminal.screen());
    terminal.press("n").unwrap();
    terminal.shows("PAUSED  call 4 of 6").await.unwrap();
    terminal.press("n").unwrap();
    terminal.shows("PAUSED  call 5 of 6").await.unwrap();
    assert!(row(3).ends_with("same") && row(4).ends_with("same"), "{}", terminal.screen());
    assert_eq!(writes(folder.path()), "3");
    terminal.press(" ").unwrap();
    terminal.shows("FINISHED").await.unwrap();

    terminal.press("q").unwrap();
    let ended = tokio::time::timeout(PATIENCE, running.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0), "{}", terminal.seen());
    terminal.shows("5 the same").await.unwrap();
    assert_eq!(terminal.mode().unwrap(), before);
}

/// Drives the run from another process.
async fn drive(folder: &Path, args: &[&str]) -> Value {
    let line = [&["--json", "replay", "control"], args].concat();
    serde_json::from_str(&signalbox(&folder.join("run"), &line).await.unwrap()).unwrap()
}

/// Proves SO-12.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_driven_from_another_process_and_reports_when_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, tape) = (folder.path(), notes_tape(folder.path()).await.unwrap());
    let mut running =
        Spawned::start(run(folder, &tape, &["--control", "--json", "--on-error", "pause", "--read-only", "*_note"]))
            .unwrap();
    let begun = drive(folder, &["show"]).await;
    assert_eq!((&begun["state"], &begun["position"], &begun["count"]), (&json!("paused"), &json!(1), &json!(6)));
    assert_eq!(begun["breakpoints"][0]["words"], "a difference", "{begun}");
    assert_eq!(
        (&begun["current"]["method"], &begun["current"]["not_sent"]),
        (&json!("initialize"), &json!("handshake"))
    );

    let set = drive(folder, &["break", "--tool", "create_*"]).await;
    assert_eq!(set["breakpoints"][1], json!({"id": 2, "words": "tool create_*", "hits": 0}));
    drive(folder, &["play"]).await;
    let at_create =
        async || Some(drive(folder, &["show"]).await).filter(|run| run["why"] == "breakpoint 2: tool create_*");
    let paused = signalbox_testkit::scene::eventually("the breakpoint", at_create).await.unwrap();
    assert_eq!((&paused["position"], &paused["last"]["verdict"]), (&json!(3), &json!("same")), "{paused}");

    // Injected, it moves nothing and is compared with nothing.
    let request = r#"{"method":"tools/call","params":{"name":"create_note","arguments":{"text":"bread"}}}"#;
    let injected = drive(folder, &["inject", request]).await;
    let answer = injected["injected"][0]["answer"]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(answer.starts_with("Created note-"), "{injected}");
    assert_eq!((&injected["position"], &injected["state"]), (&json!(3), &json!("paused")));
    assert_eq!(writes(folder), "1");

    // Forward past the creation: the note is not there, and the difference stops the run.
    drive(folder, &["seek", "4"]).await;
    drive(folder, &["play"]).await;
    let differs =
        async || Some(drive(folder, &["show"]).await).filter(|run| run["why"] == "breakpoint 1: a difference");
    let differs = signalbox_testkit::scene::eventually("the difference", differs).await.unwrap();
    assert_eq!((&differs["last"]["place"], &differs["last"]["verdict"]), (&json!(4), &json!("different")), "{differs}");
    assert!(differs["last"]["differences"].as_array().is_some_and(|all| !all.is_empty()), "{differs}");

    // Back, with another text: the call is marked as edited, and its answer is the recorded one but for the id.
    drive(folder, &["seek", "3"]).await;
    let params = r#"{"name":"create_note","arguments":{"text":"milk"}}"#;
    let edited = drive(folder, &["modify", "--params", params]).await;
    assert_eq!((&edited["current"]["edited"], &edited["current"]["place"]), (&json!(true), &json!(3)));
    let stepped = drive(folder, &["step"]).await;
    assert_eq!((&stepped["last"]["verdict"], &stepped["last"]["edited"]), (&json!("same"), &json!(true)), "{stepped}");
    assert_eq!(stepped["state"], "paused");
    assert_eq!(drive(folder, &["speed", "0.5"]).await["speed"], 0.5);
    let read = drive(folder, &["step"]).await;
    assert_eq!((&read["last"]["place"], &read["last"]["verdict"]), (&json!(4), &json!("same")), "{read}");

    for (wrong, why) in [
        (&["seek", "7"][..], "there is no call 7; the run has calls 1 to 6"),
        (&["speed", "100"], "the speed must be from 0.1 to 10, or max"),
        (&["clear", "9"], "there is no breakpoint 9"),
        (&["inject", "[]"], "a request must be a JSON object"),
    ] {
        let mut command = Command::new(built("signalbox").unwrap());
        command.args(["replay", "control", "--data-dir"]).arg(folder.join("run")).args(wrong);
        let refused = command.output().await.unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && said.contains(why), "{wrong:?}: {said}");
    }
    // Whoever asks all processes finds this one, too.
    assert!(signalbox(&folder.join("run"), &["status"]).await.unwrap().contains("replay"));

    assert_eq!(drive(folder, &["stop"]).await["state"], "stopped");
    let ended = running.wait(PATIENCE).await.unwrap();
    let report: Value = serde_json::from_str(&running.lines().concat()).unwrap();
    let verdicts: Vec<&str> =
        report["calls"].as_array().unwrap().iter().filter_map(|call| call["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["handshake", "same", "same", "same", "skipped", "skipped"], "{report}");
    assert_eq!((ended.code(), &report["calls"][2]["edited"]), (Some(0), &json!(true)), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_controlled_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tape = notes_tape(folder.path()).await.unwrap();
    for (flags, why) in [
        (&["--interactive"][..], "--interactive needs a terminal"),
        (&["--control", "--order", "random"], "leave --order out"),
        (&["--control", "--learn"], "cannot be controlled"),
        (&["--on-error", "pause"], "needs --control or --interactive"),
    ] {
        let output = run(folder.path(), &tape, flags).output().await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{flags:?}: {said}");
    }
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["replay", "control", "show", "--data-dir"]).arg(folder.path().join("run"));
    let output = command.output().await.unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("no controlled replay runs"));
}
