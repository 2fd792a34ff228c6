//! A command of administration that finds nothing to act on fails, says so, and is recorded as an error.

use crate::{config, log_of, records, session};
use serde_json::Value;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::eventually;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Commands that name something which is not there, the action that their records have, and a part of what they say.
const COMMANDS: [(&str, &str, &str); 19] = [
    ("switch lift one/nope", "switch.lift", "is not switched off"),
    ("switch lift --principal key:nobody", "switch.lift", "is not switched off"),
    ("grant revoke 0123456789abcdef", "grant.revoke", "there is no grant"),
    ("grant revoke no-id", "grant.revoke", "named by its id"),
    ("sessions end 99", "session.end", "there is no session"),
    ("hold release 99", "hold.release", "99"),
    ("hold edit 99 --params {}", "hold.edit", "99"),
    ("hold answer 99 --text no", "hold.answer", "99"),
    ("hold refuse 99", "hold.refuse", "99"),
    ("hold refuse", "hold.refuse", "nothing is held"),
    ("hold clear 99", "breakpoint.clear", "there is no breakpoint"),
    ("keys revoke nobody", "key.revoke", "there is no key"),
    ("keys revoke gone", "key.revoke", "was revoked before"),
    ("users remove nobody", "user.remove", "there is no user"),
    ("seal keys revoke nokey", "seal_key.revoke", "nokey"),
    ("seal keys rotate nokey", "seal_key.rotate", "nokey"),
    ("seal keys export nokey", "seal_key.export", "nokey"),
    ("tape delete nope --yes", "tape.delete", "nope"),
    ("logout one", "backend.logout", "one"),
];
/// Those that only a running gateway can carry out, and the two that have nothing to name.
const WITHOUT_GATEWAY: [(&str, &str, &str); 7] = [
    ("sessions end 99", "session.end", "no signalbox is running"),
    ("hold release 99", "hold.release", "no signalbox is running"),
    ("hold clear 99", "breakpoint.clear", "no signalbox is running"),
    ("grant add --tools one/* --to key:ada --for 5m --because test", "grant.add", "no signalbox is running"),
    ("switch lift one/nope", "switch.lift", "is not switched off"),
    ("reload", "config.reload", "no signalbox is running"),
    ("tape keep", "tape.keep", "no signalbox is running"),
];

fn run(folder: &Path, command: &str) -> Output {
    let mut program = Command::new(built("signalbox").unwrap());
    program.args(command.split(' ')).args(["-c", "signalbox.toml", "--data-dir", "data"]);
    program.current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// The records of this action from commands.
fn acts(folder: &Path, action: &str) -> Vec<Value> {
    let fits = |one: &Value| one["details"]["action"] == action && one["details"]["origin"] == "cli";
    records(&log_of(folder)).into_iter().filter(fits).collect()
}

/// Runs a command that finds nothing, and looks at what it says and what the log has of it.
async fn fails(folder: &Path, (command, action, part): (&str, &str, &str)) {
    let before = acts(folder, action).len();
    let output = run(folder, command);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains(part), "{command}: {:?}: {said}", output.status);
    let found = async || Some(acts(folder, action)).filter(|acts| acts.len() > before);
    let all = eventually(&format!("`{command}` is in the log as {action}"), found).await.unwrap();
    assert_eq!(all.len(), before + 1, "{command}: {all:#?}");
    let details = &all[before]["details"];
    assert_eq!(details["status"], "error", "{command}: {details}");
    assert!(details["error"].as_str().is_some_and(|error| error.len() > 5), "{command}: {details}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_finds_nothing_is_recorded_as_an_error_and_fails() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    session(&gateway).await;
    let folder = gateway.config_file().parent().unwrap().to_owned();
    for command in ["keys new gone", "keys revoke gone"] {
        assert!(run(&folder, command).status.success(), "{command}");
    }
    for case in COMMANDS {
        fails(&folder, case).await;
    }
    let folder = gateway.terminate().await.unwrap();
    for case in WITHOUT_GATEWAY {
        fails(folder.path(), case).await;
    }
}
