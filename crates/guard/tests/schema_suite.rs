//! The official JSON-Schema-Test-Suite, required parts of Draft-07 and 2020-12.
//!
//! `script/install-test-deps json-schema-suite` fetches it. Without it the tests are skipped by name, and fail in CI.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail wherever it wants")]

use serde_json::Value;
use signalbox_guard::schema::{Schema, SchemaValidity};
use std::path::{Path, PathBuf};

/// Groups that need something outside the schema, which is never fetched.
const REMOTE: [&str; 1] = ["http://localhost:1234"];
/// Groups that a limit refuses: file and description.
const REFUSED: [(&str, &str); 0] = [];

/// Returns the folder of the suite, or `None` if it is not installed.
fn suite() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join(".deps");
    let deps = std::env::var_os("MCP_TEST_DEPS").map_or(own, PathBuf::from);
    let folder = deps.join("json-schema-suite/tests");
    let found = folder.exists();
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "the JSON-Schema-Test-Suite is not installed");
    if !found {
        eprintln!("SKIP the JSON-Schema-Test-Suite: run script/install-test-deps json-schema-suite");
    }
    found.then_some(folder)
}

/// Runs every case of a draft, and returns how many there were and what failed.
fn run(folder: &Path, dialect: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        for mut group in groups {
            let about = group["description"].as_str().unwrap().to_owned();
            let cases = group["tests"].take();
            let cases = cases.as_array().unwrap();
            let text = group["schema"].to_string();
            if REMOTE.iter().any(|uri| text.contains(uri)) && Schema::compile(text.as_bytes()).is_err() {
                outcome.remote += cases.len();
                continue;
            }
            if let Some(schema) = group["schema"].as_object_mut() {
                schema.entry("$schema").or_insert_with(|| dialect.into());
            }
            outcome.run(&format!("{name}: {about}"), &group["schema"], cases);
        }
    }
    outcome
}

#[derive(Default)]
struct Outcome {
    cases: usize,
    remote: usize,
    refused: Vec<String>,
    failures: Vec<String>,
}

impl Outcome {
    fn run(&mut self, group: &str, schema: &Value, cases: &[Value]) {
        self.cases += cases.len();
        let schema = match Schema::compile(schema.to_string().as_bytes()) {
            Ok(schema) => schema,
            Err(error) if REFUSED.iter().any(|(file, about)| group == format!("{file}: {about}")) => {
                self.refused.push(format!("{group}: {error}"));
                return;
            }
            Err(error) => return self.failures.push(format!("{group}: {error}")),
        };
        for case in cases {
            let verdict = schema.check(case["data"].to_string().as_bytes());
            let expected = case["valid"].as_bool().unwrap();
            if (verdict == SchemaValidity::Valid) != expected || verdict == SchemaValidity::TooCostly {
                self.failures.push(format!("{group}: {}: {verdict:?}", case["description"]));
            }
        }
    }

    fn assert_passed(self, draft: &str, least: usize) {
        let Self { cases, remote, refused, failures } = self;
        println!("{draft}: {} of {cases} cases, {remote} more are remote, {refused:?} refused", cases - failures.len());
        assert!(failures.is_empty(), "{} of {cases} cases failed:\n{}", failures.len(), failures.join("\n"));
        assert!(cases >= least, "only {cases} cases were found");
        assert_eq!(refused.len(), REFUSED.len());
    }
}

#[test]
fn required_cases_of_draft_7_have_the_official_verdict() {
    let Some(suite) = suite() else { return };
    run(&suite.join("draft7"), "http://json-schema.org/draft-07/schema#").assert_passed("Draft-07", 850);
}

#[test]
fn required_cases_of_2020_12_have_the_official_verdict() {
    let Some(suite) = suite() else { return };
    run(&suite.join("draft2020-12"), "https://json-schema.org/draft/2020-12/schema").assert_passed("2020-12", 1100);
}
