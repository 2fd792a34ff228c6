//! Snapshot of the names that users and files know: commands, options, configuration keys with their values and
//! defaults, serialized fields, and the words in JSON, routes, metrics, logs and formats. Names in the code may change;
//! those in `surface.txt` may not.
//!
//! `MCP_TEST_BLESS=1` adds what is new. What is taken away on purpose is taken out of `surface.txt` by hand.

use crate::program::run;
use regex::Regex;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that are no part of the program.
const OTHERS: [&str; 3] = ["testkit", "bench", "path"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Production code, without the tests in it.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push(text.split("\n#[cfg(test)]").next().unwrap().to_owned());
        }
    }
}

/// Literals that can be keys, routes, names and words of formats.
fn words(source: &str, surface: &mut BTreeSet<String>) {
    let literal = Regex::new(r#""([a-z][A-Za-z0-9_./:{}-]*|/[A-Za-z0-9_./{}-]+)""#).unwrap();
    surface.extend(literal.captures_iter(source).map(|found| format!("word {}", &found[1])));
}

/// Fields and variants of types that are serialized.
fn fields(source: &str, surface: &mut BTreeSet<String>) {
    let body = Regex::new(
        r"(?s)derive\([^)]*(?:Serialize|Deserialize)[^)]*\)\](?:\s*(?:#\[[^\]]*\]|//[^\n]*))*\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum) \w+[^{;(]*\{(.*?)\n\}",
    );
    let member = Regex::new(r"(?m)^ {4}(?:pub(?:\([^)]*\))? )?(?:r#)?(\w+)\s*[:,({]").unwrap();
    for found in body.unwrap().captures_iter(source) {
        surface.extend(member.captures_iter(&found[1]).map(|member| format!("field {}", &member[1])));
    }
}

async fn surface() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut surface = BTreeSet::new();
    let reference = run(folder.path(), &["config", "reference"], "").await.stdout;
    for row in reference.lines().skip(2) {
        // Keys, what they take and their defaults; the meaning may be put in other words.
        let columns: Vec<&str> = row.split(" | ").take(3).collect();
        surface.insert(format!("key {}", columns.join(" | ").trim_start_matches("| ")));
    }
    let script = run(folder.path(), &["completions", "bash"], "").await.stdout;
    let mut command = String::new();
    for line in script.lines().map(str::trim) {
        if let Some(label) = line.strip_suffix(')').filter(|label| label.starts_with("signalbox__")) {
            command = label.replace("__subcmd__", " ");
        } else if let Some(options) = line.strip_prefix("opts=\"").filter(|_| !command.contains(" help")) {
            let options = options.trim_end_matches('"').split(' ').filter(|option| !option.is_empty());
            surface.extend(options.map(|option| format!("command {command} {option}")));
        }
    }
    let mut all = Vec::new();
    for entry in fs::read_dir(crates()).unwrap().flatten() {
        if !OTHERS.iter().any(|other| entry.path().ends_with(other)) {
            sources(&entry.path().join("src"), &mut all);
        }
    }
    for source in &all {
        words(source, &mut surface);
        fields(source, &mut surface);
    }
    surface
}

#[tokio::test]
async fn nothing_that_users_and_files_know_has_changed() {
    let path = crates().join("signalbox/tests/cli/surface.txt");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let now = surface().await;
    assert!(now.len() > 3_000, "the surface is read: {}", now.len());
    let gone: Vec<&str> = before.lines().filter(|line| !now.contains(*line)).collect();
    assert!(gone.is_empty(), "users and files know these: {gone:#?}");
    if std::env::var_os("MCP_TEST_BLESS").is_some() {
        fs::write(path, now.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }
}
