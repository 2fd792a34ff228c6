//! The lock file as text.

use super::*;
use proptest::prelude::*;

fn definition(name: &str, description: &str) -> ToolDefinition {
    let text = serde_json::json!({ "name": name, "description": description, "inputSchema": { "type": "object" } });
    ToolDefinition::parse(text.to_string().as_bytes()).unwrap()
}

fn sample() -> LockFile {
    let mut pins = BackendPins::default();
    pins.approve_instructions("Use \"add\".\n\tC:\\x", Approval::new(1_790_000_800, "ada@example.com"));
    pins.approve_tool(&definition("add", "Adds '''two''' numbers.\u{200b}"), Approval::new(1_790_000_800, "ada"));
    LockFile { backends: [("maths".to_owned(), pins)].into() }
}

const TEXT: &str = r#"# Tool definitions and instructions that were approved for use through Signalbox.
# Review a change of this file like a change of code: models follow these texts.
version = 1

[[backends.maths.instructions]]
hash = "HASH1"
approved_at = "2026-09-21T14:26:40Z"
approved_by = "ada@example.com"
text = """
Use \"add\".
\tC:\\x"""

[[backends.maths.tools.add]]
hash = "HASH2"
shape = "SHAPE"
approved_at = "2026-09-21T14:26:40Z"
approved_by = "ada"
definition = '''
{
  "description": "Adds '\u0027'two'\u0027' numbers.\u200b",
  "inputSchema": {
    "type": "object"
  }
}
'''
"#;

fn text() -> String {
    let pins = &sample().backends["maths"];
    let tool = &pins.tools["add"][0];
    let text = TEXT.replace("HASH1", &pins.instructions[0].hash.to_string());
    text.replace("HASH2", &tool.hash.to_string()).replace("SHAPE", &tool.shape.to_string())
}

#[test]
fn the_file_is_made_for_reviews() {
    assert_eq!(sample().to_string(), text());
}

#[test]
fn the_file_is_read_as_it_was_written() {
    let read = LockFile::parse(&text()).unwrap();
    assert_eq!(read.to_string(), text());
    assert!(read.backends["maths"].approves(&definition("add", "Adds '''two''' numbers.\u{200b}")));
    assert!(!read.backends["maths"].approves(&definition("add", "Adds '''two''' numbers.")));
    assert!(!read.backends["maths"].approves(&definition("sub", "Adds '''two''' numbers.\u{200b}")));
}

#[test]
fn an_edited_file_is_rejected_with_the_line() {
    let hash = sample().backends["maths"].tools["add"][0].hash.to_string();
    for (from, to, line, fault) in [
        ("two", "three", 14, Some(LockFault::Mismatch)),
        ("Use ", "Abuse ", 6, Some(LockFault::Mismatch)),
        (hash.as_str(), "sha256:00", 14, Some(LockFault::Hash)),
        ("version = 1", "version = 2", 3, Some(LockFault::Version(2))),
        ("2026-09-21T14:26:40Z\"\napproved_by = \"ada\"", "today\"\napproved_by = \"ada\"", 14, Some(LockFault::Time)),
        ("approved_by = \"ada\"\n", "approved_by = \"ada\"\nexcerpt = \"{}\"\n", 14, Some(LockFault::Text)),
        ("{\n", "\n", 14, Some(LockFault::Definition)),
        ("approved_by = \"ada\"\n", "approved_by = \"ada\"\nskip = true\n", 18, None),
        ("[[backends", "\n\n[[backend", 7, None),
        ("version = 1", "version = ", 3, None),
    ] {
        let error = LockFile::parse(&text().replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.line, line, "{to}: {error}");
        assert!(fault.is_none_or(|fault| error.fault == fault), "{to}: {error}");
    }
    let whole = text();
    let (_, entry) = whole.split_once("\n[[backends.maths.tools").unwrap();
    let twice = LockFile::parse(&format!("{whole}\n[[backends.maths.tools{entry}")).unwrap_err();
    assert_eq!(twice, LockError { line: 28, fault: LockFault::Duplicate });
}

#[test]
fn a_large_or_deep_file_is_an_error() {
    let error = LockFile::parse(&" ".repeat(MAX_LOCK_FILE + 1)).unwrap_err();
    assert_eq!(error.fault, LockFault::TooLarge(MAX_LOCK_FILE));
    assert!(LockFile::parse(&format!("version = {}", "[".repeat(100_000))).is_err());
    assert!(LockFile::parse(&format!("{} = 1", ["a"; 50_000].join("."))).is_err());
}

#[test]
fn long_texts_are_kept_as_excerpts() {
    let mut pins = BackendPins::default();
    pins.approve_tool(&definition("a", &"é".repeat(MAX_KEPT_TEXT)), Approval::new(-1, &"x".repeat(1000)));
    pins.approve_instructions(&"é".repeat(MAX_KEPT_TEXT), Approval::new(i64::MAX, ""));
    let lock = LockFile { backends: [("b".to_owned(), pins)].into() };
    assert!(lock.to_string().len() < 4096);
    assert_eq!(LockFile::parse(&lock.to_string()).as_ref(), Ok(&lock));
}

/// Texts with the characters that JSON, TOML and terminals treat in special ways.
fn texts() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            any::<char>(),
            proptest::sample::select(
                "'\"\\\n\r\t\0{}[]#=.\u{7f}\u{85}\u{2028}\u{feff}\u{e0041}".chars().collect::<Vec<_>>()
            ),
        ],
        0..24,
    )
    .prop_map(String::from_iter)
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        backend in texts(), tool in texts(), description in texts(), instructions in texts(), by in texts(), at in 0_i64..=MAX_SECONDS,
    ) {
        let mut pins = BackendPins::default();
        pins.approve_tool(&definition(&format!("t{tool}"), &description), Approval::new(at, &by));
        pins.approve_tool(&definition(&format!("t{tool}"), &instructions), Approval::new(at, &by));
        pins.approve_instructions(&instructions, Approval::new(at, &by));
        let lock = LockFile { backends: [(backend, pins)].into() };
        let text = lock.to_string();
        prop_assert!(!text.chars().any(|char| char != '\n' && crate::invisible::is_invisible(char)));
        let read = LockFile::parse(&text).unwrap();
        prop_assert_eq!(read.to_string(), text);
        let approved = |lock: &LockFile| lock.backends.values().flat_map(|pins| pins.tools.values().flatten().map(|one| one.hash).collect::<Vec<_>>()).collect::<Vec<_>>();
        prop_assert_eq!(approved(&read), approved(&lock));
        prop_assert_eq!(read.backends.keys().collect::<Vec<_>>(), lock.backends.keys().collect::<Vec<_>>());
    }

    #[test]
    fn hostile_files_are_errors_not_panics(text in texts()) {
        let _ = LockFile::parse(&text);
        let _ = LockFile::parse(&format!("version = 1\n{text}"));
    }
}
