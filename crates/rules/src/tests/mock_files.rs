//! Results that are made up in a file beside the rules.

use super::*;
use crate::error::RuleError;
use crate::limits;
use crate::outside::{Files, OutsideFileError};

/// One file, whatever its name.
struct One<'a>(&'a str);

impl Files for One<'_> {
    fn read(&self, name: &str, _: usize) -> Result<String, OutsideFileError> {
        if name == "gone.json" {
            Err(OutsideFileError::System("there is none".to_owned()))
        } else {
            Ok(self.0.to_owned())
        }
    }
}

fn read(mock: &str, file: &str) -> Result<RuleSet, RuleError> {
    let toml = format!("[[rules]]\nid = \"r\"\nwhen = {{ tool = \"echo\" }}\nthen = {{ mock = {{ {mock} }} }}\n");
    RuleSet::parse_beside("rules.toml", &toml, &One(file))
}

fn said(mock: &str, file: &str, times: usize) -> Vec<String> {
    let mut dialogue = Dialogue::with(read(mock, file).unwrap());
    (0..times).map(|_| dialogue.asks(CALL)).collect()
}

/// Proves SO-6.
#[test]
fn a_file_of_one_object_is_always_the_answer_and_may_have_holes() {
    let file = "{\n  \"text\": \"you said {{/params/arguments/text}}\",\n  \"n\": \"{{/params/arguments/n}}\"\n}\n";
    assert_eq!(said("file = 'a.json'", file, 2), [r#"reply {"text":"you said hello","n":3}"#; 2]);
}

/// Proves SO-6.
#[test]
fn a_list_and_json_lines_are_given_in_turn_or_at_random() {
    let turns = [r#"reply {"n":1}"#, r#"reply {"n":2}"#, r#"reply {"n":1}"#];
    assert_eq!(said("file = 'a.json'", r#"[{"n":1},{"n":2}]"#, 3), turns);
    assert_eq!(said("file = './b/a.jsonl'", "{\"n\":1}\n\n{\"n\":2}\r\n", 3), turns);
    let drawn = |seed: u64| said(&format!("file = 'a', random = true, seed = {seed}"), "{\"n\":1}\n{\"n\":2}", 40);
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

/// A reload that finds the same version changes nothing.
/// Proves SO-14.
#[test]
fn other_results_in_the_file_are_another_version_of_the_rules() {
    let version = |file: &str| read("file = 'a.json'", file).unwrap().version().to_owned();
    assert_eq!(version("{}"), version("{}"));
    assert_ne!(version("{}"), version(r#"{"n":1}"#));
    assert_eq!(read("file = 'a.json'", "{}").unwrap().describe()[0].then, ["mock from a.json"]);
}

#[test]
fn a_file_that_cannot_be_used_is_told_with_the_rule_and_the_place_in_it() {
    let many = "{}".repeat(limits::MOCK_RESULTS + 1);
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(limits::MOCK_FILE));
    let deep = "[".repeat(1000);
    for (mock, file, why) in [
        (
            "file = 'gone.json'",
            "",
            "rules.toml:4:26: rules[0].then.mock.file: `gone.json`: cannot be read: there is none",
        ),
        (
            "file = 'a'",
            "{\n\"a\": x}",
            "rules.toml:4:26: rules[0].then.mock.file: `a`: not valid JSON: expected value at line 2 column 6",
        ),
        ("file = 'a'", "{}\n{\n", "`a`: not valid JSON: EOF while parsing an object at line 3 column 0"),
        ("file = 'a'", "{} 7", "`a`: result 2: expected a JSON object, found something else"),
        ("file = 'a'", "[{}, []]", "`a`: result 2: expected a JSON object, found something else"),
        ("file = 'a'", " \n", "`a`: expected at least one result, as a JSON object, found none"),
        ("file = 'a'", "[]", "`a`: expected at least one result, as a JSON object, found none"),
        ("file = 'a'", r#"{"a":"${tol}"}"#, "`a`: result 1: unknown name `${tol}`; did you mean `${tool}`?"),
        ("file = 'a'", &many, "`a`: more than 10000 results"),
        ("file = 'a'", &large, "`a`: the file is larger than 4194304 bytes"),
        ("file = 'a'", &deep, "`a`: not valid JSON: recursion limit exceeded"),
        ("file = '../a'", "{}", "expected the name of a file in the folder of this one or below it, found \"../a\""),
        ("file = '/etc/a'", "{}", "expected the name of a file in the folder of this one or below it"),
        ("file = 'a', result = {}", "{}", "`file` can only be combined with `random = true`"),
        ("file = 'a', random = []", "{}", "mock.random: expected true or false, found a list"),
        ("file = 'a', seed = 1", "{}", "`seed` has no effect without `random`"),
    ] {
        let told = read(mock, file).map(|_| ()).unwrap_err().to_string();
        assert!(told.contains(why), "{mock}: {told}");
    }
    let alone = RuleSet::parse("r", "[[rules]]\nid = 'r'\nthen = { mock = { file = 'a' } }").unwrap_err().to_string();
    assert!(alone.contains("these rules are not in a file"), "{alone}");
}

#[test]
fn all_files_together_are_bounded() {
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(limits::MOCK_FILE - 100));
    let rules = |count: usize| -> String {
        (0..count).map(|id| format!("[[rules]]\nid = \"{id}\"\nthen = {{ mock = {{ file = 'a' }} }}\n")).collect()
    };
    assert!(RuleSet::parse_beside("r", &rules(8), &One(&large)).is_ok());
    let told = RuleSet::parse_beside("r", &rules(9), &One(&large)).unwrap_err().to_string();
    assert!(told.contains("more than 33554432 bytes in mock files"), "{told}");
}
