//! The examples that people copy: each of them reads, and the one from the requirements does what it says.

use super::*;

const DOC: &str = include_str!("../../../../docs/rules.md");

/// The files that the examples name.
struct Named;

impl crate::Files for Named {
    fn read(&self, name: &str, _: usize) -> Result<String, crate::OutsideFileError> {
        ["answers/weather.json", "answers/weather.jsonl"]
            .contains(&name)
            .then(|| "{}".to_owned())
            .ok_or(crate::OutsideFileError::NoFile)
    }
}

/// The TOML examples of a page, with the line they start in.
fn examples(page: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (number, line) in page.lines().enumerate() {
        match line.trim() {
            "```toml" => {
                inside = true;
                out.push((number + 1, String::new()));
            }
            "```" => inside = false,
            _ if inside => {
                let (_, example) = out.last_mut().unwrap();
                example.push_str(line);
                example.push('\n');
            }
            _ => {}
        }
    }
    out
}

#[test]
fn every_example_of_the_page_reads_without_a_warning() {
    let found = examples(DOC);
    assert!(found.len() > 25, "{}", found.len());
    for (line, example) in &found {
        // A fragment shows a condition or an action alone.
        let whole = match example {
            whole if whole.contains("[[rules]]") => whole.clone(),
            when if when.starts_with("when") => format!("[[rules]]\nid = \"x\"\n{when}\nthen = {{ count = \"x\" }}"),
            then => format!("[[rules]]\nid = \"x\"\n{then}"),
        };
        let set = RuleSet::parse_beside(&format!("docs/rules.md line {line}"), &whole, &Named)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(!set.is_empty(), "line {line}");
        let odd: Vec<_> = set.warnings().iter().map(ToString::to_string).collect();
        assert!(odd.is_empty(), "line {line}: {odd:?}");
    }
}

#[test]
fn the_page_names_every_condition_and_every_action() {
    for key in crate::read_condition::KEYS.iter().chain(&crate::read_action::KEYS) {
        assert!(DOC.contains(&format!("`{key}`")), "{key}");
    }
}

/// Proves SO-4.
#[test]
fn the_example_of_the_requirements_blocks_logs_limits_and_keeps() {
    let example = examples(DOC).into_iter().find(|(_, text)| text.contains("so-4-")).unwrap().1;
    let mut dialogue = Dialogue::new(&example);
    let shell = CALL.replace("\"echo\"", "\"shell\"").replace("\"hello\"", "\"rm\"");
    assert_eq!(
        dialogue.asks(&shell.replace("\"text\"", "\"command\"")),
        "log warning local:ada tried rm | refuse refused: this command is not allowed"
    );
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#;
    assert_eq!(dialogue.asks(list), "pass");
    assert_eq!(dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{"resources":[]}}"#), "pass");
    assert_eq!(dialogue.asks(list), r#"reply {"resources":[]}"#);
    for _ in 0..9 {
        assert_eq!(dialogue.asks(CALL), "pass");
    }
    assert!(matches!(dialogue.asks(CALL).as_str(), "pass"));
    assert!(dialogue.asks(CALL).starts_with("refuse overloaded"));
}

#[test]
fn every_answer_of_a_webhook_that_the_page_shows_can_be_read() {
    let shown: Vec<_> = DOC.lines().filter(|line| line.starts_with("{ \"verdict\"")).collect();
    assert_eq!(shown.len(), 5);
    for answer in shown {
        let body = Bytes::copy_from_slice(answer.as_bytes());
        assert!(crate::webhook::read(200, &body, &envelope(CALL)).is_ok(), "{answer}");
    }
}
