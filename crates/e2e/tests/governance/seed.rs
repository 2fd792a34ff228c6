//! Faults by seed: the same seed makes the same faults, in every run of the gateway and when a tape is played.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, MessageKind};
use signalbox_tape::TapeSource;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{PATIENCE, child, eventually, signalbox};
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// How many calls each run makes.
const CALLS: u64 = 60;

/// Every fault that shows in bytes, and a result by chance. None of them has a seed of its own.
const RULES: &str = r#"
[[rules]]
id = "down"
when = { backend = "only", tool = "only__greet" }
then = { fault = { kind = "refused", probability = 0.15 } }

[[rules]]
id = "broken"
when = { tool = "greet" }
then = [{ fault = { kind = "reset", probability = 0.1 } }, { fault = { kind = "error", probability = 0.15 } }]

[[rules]]
id = "dice"
when = { tool = "greet", params = { "/params/arguments/name" = { ends_with = "7" } } }
then = { mock = { random = [{ content = [{ type = "text", text = "one" }] }, { content = [{ type = "text", text = "two" }] }, { content = [{ type = "text", text = "three" }] }] } }

[[rules]]
id = "noise"
when = { phase = "response", tool = "greet" }
then = [{ fault = { kind = "garble", probability = 0.4 } }, { fault = { kind = "truncate", probability = 0.2 } }]
"#;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

struct Scene {
    folder: tempfile::TempDir,
    rules: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join("rules.toml");
        std::fs::write(&rules, RULES).unwrap();
        Self { folder, rules }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The gateway before the fixture, with this line of configuration.
    fn live(&self, name: &str, seed: &str) -> Command {
        let (config, rules) = (self.path(&format!("{name}.toml")), json!(text(&self.rules)));
        let backend = child("only", ServedEra::Old, "").unwrap();
        std::fs::write(&config, format!("[gateway]\nrule_files = [{rules}]\n{seed}\n{backend}")).unwrap();
        let mut command = Command::new(built("signalbox").unwrap());
        command.args(["stdio", "-c", text(&config), "--data-dir", text(&self.path(name))]);
        command
    }

    /// The tape in the place of the fixture, behind the same rules.
    fn played(&self, tape: &Path, seed: &str) -> Command {
        let mut command = Command::new(built("signalbox").unwrap());
        command.args(["replay", "serve", text(tape), "--stdio", "--backend", "only", "--rules", text(&self.rules)]);
        command.args(["--seed", seed, "--data-dir", text(&self.path("played"))]);
        command
    }

    /// `replay run` against a fresh fixture behind the same rules: its exit code, and the answers on the tape that it
    /// writes.
    async fn run_again(&self, tape: &Path, seed: &str) -> (Option<i32>, Vec<String>) {
        let update = self.path(&format!("again-{seed}.tape"));
        let mut command = Command::new(built("signalbox").unwrap());
        command.args(["replay", "run", text(tape), "--allow-writes", "--rules", text(&self.rules), "--seed", seed]);
        command.args(["--update", text(&update), "--data-dir", text(&self.path("again")), "--"]);
        command.arg(built("fixture-server").unwrap()).args(["--stdio", "--era", "old", "--name", "only"]);
        let output = command.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(update.exists(), "{said}");
        (output.status.code(), answers_on(&update))
    }
}

/// An answer from its result or error on: ids are those of whoever asked.
fn without_id(answer: &str) -> String {
    let at = answer.find("\"result\"").into_iter().chain(answer.find("\"error\"")).min();
    answer[at.unwrap_or_else(|| panic!("no answer: {answer}"))..].to_owned()
}

/// Makes all calls, one after the other, over the pipe of a program, and returns its answers as they came.
async fn answers_of(command: Command) -> Vec<String> {
    let mut process = Spawned::start(command).unwrap();
    let mut answers = Vec::new();
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let greet = |number: u64| json!({"name": "greet", "arguments": {"name": format!("caller {number}")}});
    let calls = (1..=CALLS).map(|number| ("tools/call", greet(number)));
    for (id, (method, params)) in (0..).zip([("initialize", hello)].into_iter().chain(calls)) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        process.write_line(&request.to_string()).await.unwrap();
        let own = |line: &String| {
            serde_json::from_str::<Value>(line).is_ok_and(|line| line["id"] == id && line.get("method").is_none())
        };
        let answer = eventually("an answer", async || process.lines().into_iter().find(own)).await.unwrap();
        match id {
            0 => process.write_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.unwrap(),
            _ => answers.push(without_id(&answer)),
        }
    }
    process.close_input();
    process.wait(PATIENCE).await.unwrap();
    answers
}

/// The answers that clients got to tool calls, as a tape has them.
fn answers_on(tape: &Path) -> Vec<String> {
    let mut source = TapeSource::open(tape).unwrap();
    let messages = source.entries(None).filter_map(|entry| match entry.unwrap().content {
        Content::Message(message) => Some(message),
        _ => None,
    });
    let answers = messages.filter(|message| {
        message.point == Point::ClientOut
            && message.method.as_deref() == Some("tools/call")
            && matches!(message.kind, MessageKind::Result | MessageKind::Error)
    });
    let bytes = answers.map(|message| match message.body {
        Body::Whole(bytes) => without_id(std::str::from_utf8(&bytes).unwrap()),
        other => panic!("an answer without its body: {other:?}"),
    });
    bytes.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_makes_the_same_faults_byte_for_byte_live_and_on_replay() {
    let scene = Scene::new();
    let first = answers_of(scene.live("first", "rule_seed = 42")).await;
    assert_eq!(first.len() as u64, CALLS);
    let count = |part: &str| first.iter().filter(|answer| answer.contains(part)).count();
    let (broken, garbled, whole) = (count("\"error\""), count("\u{fffd}"), count("Hello, caller"));
    assert!(broken > 5 && garbled > 5 && whole > 5, "{broken} errors, {garbled} garbled: {first:#?}");

    assert_eq!(answers_of(scene.live("second", "rule_seed = 42")).await, first, "live, with the same seed");
    assert_ne!(answers_of(scene.live("third", "rule_seed = 43")).await, first, "live, with another seed");
    let free = [answers_of(scene.live("fourth", "")).await, answers_of(scene.live("fifth", "")).await];
    assert_ne!(free[0], free[1], "without a seed, every start has its own");

    let tape = scene.path("first.tape");
    signalbox(&scene.path("first"), &["tape", "export", "last", "-o", text(&tape)]).await.unwrap();
    assert_eq!(answers_on(&tape), first);
    assert_eq!(answers_of(scene.played(&tape, "42")).await, first, "the backend's answers behind the same rules");
    assert_ne!(answers_of(scene.played(&tape, "43")).await, first);

    assert_eq!(scene.run_again(&tape, "42").await, (Some(0), first.clone()), "the tape's calls sent again");
    let (code, other) = scene.run_again(&tape, "43").await;
    assert!(code == Some(1) && other != first);
}
