//! The unit of systemd.

use crate::{assert_command_line, assert_variable, read, root};
use std::process::Command;

const UNIT: &str = "deploy/signalbox.service";
/// Where the unit expects the program.
const INSTALLED: &str = "/usr/local/bin/signalbox";

/// The values of a setting.
fn all(text: &str, key: &str) -> Vec<String> {
    let start = format!("{key}=");
    text.lines().filter_map(|line| line.strip_prefix(&start).map(str::to_owned)).collect()
}

/// Runs `systemd-analyze` over the unit with the built program in its place; none if it is not installed.
fn analyze(words: &[&str]) -> Option<(bool, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("signalbox.service");
    std::fs::write(&file, read(UNIT).replace(INSTALLED, env!("CARGO_BIN_EXE_signalbox"))).unwrap();
    let done = Command::new("systemd-analyze").args(words).arg(&file).output();
    let Ok(done) = done else {
        eprintln!("SKIP {words:?}: systemd-analyze is not installed");
        return None;
    };
    let said = [done.stdout, done.stderr].concat();
    Some((done.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[test]
fn the_unit_starts_and_reloads_the_program_as_it_can_be_started() {
    let unit = read(UNIT);
    let start = all(&unit, "ExecStart").pop().unwrap();
    assert_command_line(start.split_whitespace(), UNIT);
    assert!(start.starts_with(INSTALLED));
    for pair in all(&unit, "Environment") {
        assert_variable(pair.split_once('=').unwrap().0, UNIT);
    }
    // The program never tells that it is ready, so that nobody may wait for it.
    assert_eq!(all(&unit, "Type"), ["exec"]);
    assert_eq!(all(&unit, "ExecReload"), ["/bin/kill -HUP $MAINPID"]);
}

#[test]
fn the_folders_of_the_unit_are_those_of_its_settings() {
    let unit = read(UNIT);
    let variables = all(&unit, "Environment");
    let state = format!("SIGNALBOX_DATA_DIR=/var/lib/{}", all(&unit, "StateDirectory").remove(0));
    let home = format!("HOME=/var/cache/{}", all(&unit, "CacheDirectory").remove(0));
    assert!(variables.contains(&state) && variables.contains(&home), "{variables:?}");
    assert!(root().join("docs/deployment.md").is_file());
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let Some((fine, said)) = analyze(&["verify", "--man=no"]) else { return };
    assert!(fine && !said.contains("signalbox.service"), "{said}");
}

#[test]
fn systemd_finds_the_unit_well_confined() {
    // In tenths: 20 is 2.0 of 10, where 10 is everything that root may do.
    let Some((fine, said)) = analyze(&["security", "--offline=true", "--threshold=20"]) else { return };
    assert!(fine, "{said}");
}
