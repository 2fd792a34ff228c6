//! Reading recorded messages of the store is an act of administration, whichever command does it.
//!
//! No route of the API reads a tape of the store: those of `replay run --control` belong to the process of that
//! command, and the tools by which clients ask about tapes are calls, which have records of their own.

use crate::{config, greet, log_of, records, session};
use serde_json::Value;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::process::built;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Commands that are given a tape and show, send or try its messages, with their arguments; `OUT` is a file.
const READERS: [(&str, &[&str]); 12] = [
    ("tape show", &["last"]),
    ("tape search", &["Ada", "--tape", "last"]),
    ("tape diff", &["last", "last"]),
    ("tape export", &["last", "-o", "OUT.jsonl"]),
    ("tape prove", &["last", "--entry", "1", "-o", "OUT.json"]),
    ("tape redact", &["last", "--path", "/params/arguments/name", "-o", "OUT.tape"]),
    ("replay serve", &["last", "--stdio"]),
    ("replay run", &["last", "--", "false"]),
    ("replay shrink", &["last", "-o", "OUT.tape", "--", "false"]),
    ("backtest", &["last"]),
    ("policy backtest", &["last"]),
    // Records a tape of its own, which is the last one from then on.
    ("replay branch", &["last", "--at", "1", "--answer", "{}", "--stdio"]),
];
/// Commands that are given a tape and show none of its messages; deletion has a record of its own.
const OTHERS: [&str; 3] = ["tape stats", "tape verify", "tape delete"];

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.output().unwrap()
}

fn with_config<'a>(args: &[&'a str]) -> Vec<&'a str> {
    // What follows `--` belongs to another program.
    let split = args.iter().position(|arg| *arg == "--").unwrap_or(args.len());
    [&args[..split], &["-c", "signalbox.toml", "--data-dir", "data"], &args[split..]].concat()
}

/// All commands below this one whose help names a tape as an argument.
fn given_a_tape(folder: &Path, path: &[&str], found: &mut BTreeSet<String>) {
    let help = String::from_utf8(run(folder, &[path, &["--help"]].concat()).stdout).unwrap();
    let below = help.split_once("\nCommands:\n").map_or("", |(_, below)| below);
    let names = below.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then_some(name)
    });
    let names: Vec<&str> = names.collect();
    for name in &names {
        given_a_tape(folder, &[path, &[*name]].concat(), found);
    }
    let is_given = ["<TAPE", "[TAPE", "<OLD>"].iter().any(|word| help.contains(word));
    if names.is_empty() && is_given {
        found.insert(path.join(" "));
    }
}

fn reads(folder: &Path) -> Vec<Value> {
    records(&log_of(folder)).into_iter().filter(|one| one["details"]["action"] == "tape.read").collect()
}

/// Every command that reads messages of a tape in the store leaves a record that names the tape by its id.
#[tokio::test(flavor = "multi_thread")]
async fn every_command_that_reads_a_tape_leaves_a_record() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let client = session(&gateway).await;
    greet(&client, 1, "Ada").await;
    let folder = gateway.terminate().await.unwrap();
    let folder = folder.path();

    let mut found = BTreeSet::new();
    given_a_tape(folder, &[], &mut found);
    let known = READERS.iter().map(|(command, _)| *command).chain(OTHERS);
    assert_eq!(found, known.map(str::to_owned).collect(), "a command is not in the lists of this test");

    let list = run(folder, &with_config(&["tape", "list", "--json"])).stdout;
    let tapes: Value = serde_json::from_slice(&list).unwrap();
    let id = tapes[0]["id"].as_str().unwrap();
    for (number, (command, args)) in READERS.into_iter().enumerate() {
        let before = reads(folder).len();
        let args = args.iter().map(|arg| arg.replace("OUT", &format!("out-{number}"))).collect::<Vec<_>>();
        let words = command.split(' ').chain(args.iter().map(String::as_str)).collect::<Vec<_>>();
        let said = run(folder, &with_config(&words));
        let new = reads(folder).split_off(before);
        assert!(!new.is_empty(), "{command}: {said:?}");
        for record in new {
            assert_eq!(record["details"]["target"], id, "{command}");
            assert_eq!(record["details"]["after"]["command"], command);
        }
    }
    let before = reads(folder).len();
    run(folder, &with_config(&["tape", "search", "Ada"]));
    let all = &reads(folder)[before];
    let named = all["details"]["after"]["tapes"]["newest"].as_array().unwrap();
    assert!(all["details"]["target"] == "*" && named.iter().any(|one| one == id), "{all}");
}

/// Administration by command that fails has a record that says so.
#[tokio::test(flavor = "multi_thread")]
async fn commands_that_fail_are_in_the_log() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let client = session(&gateway).await;
    greet(&client, 1, "Ada").await;
    let folder = gateway.terminate().await.unwrap();
    let folder = folder.path();
    for (action, args) in [
        ("key.revoke", &["keys", "revoke", "zz"][..]),
        ("user.remove", &["users", "remove", "zz"]),
        ("seal_key.revoke", &["seal", "keys", "revoke", "zz"]),
        ("tape.delete", &["tape", "delete", "zz"]),
        ("backend.logout", &["logout", "zz"]),
        ("backend.login", &["login", "zz"]),
    ] {
        let said = run(folder, &with_config(args));
        assert!(!said.status.success(), "{args:?}");
        let all = records(&log_of(folder));
        let one = all.iter().find(|one| one["details"]["action"] == action);
        let one = one.unwrap_or_else(|| panic!("{args:?}: {said:?}"));
        assert_eq!(one["details"]["status"], "error", "{one}");
        assert!(one["details"]["target"].as_str().unwrap().ends_with("zz"), "{one}");
    }
}
