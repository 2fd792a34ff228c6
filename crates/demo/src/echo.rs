//! The `echo` tool: returns its text.

use serde_json::{Map, Value};
use signalbox_embedded::Arguments;

use super::fault::ToolFault;
use super::toolbox::Answer;

/// Maximum length of the text in characters.
pub(super) const MAX_TEXT: usize = 65_536;

/// Checks the arguments and returns their text.
pub(super) fn run(arguments: &Map<String, Value>) -> Result<Answer, ToolFault> {
    let mut reader = Arguments::new("echo", arguments);
    reader.only(&["text"]);
    let text = reader.text("text", MAX_TEXT);
    if text.is_none() && !arguments.contains_key("text") {
        reader.problem("`text` is missing; give the text to send back".to_owned());
    }
    reader.finish()?;
    Ok(Answer::text(text.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(arguments: Value) -> Result<Answer, ToolFault> {
        run(arguments.as_object().expect("an object"))
    }

    #[test]
    fn text_comes_back_unchanged() {
        for text in ["", "hello", "ümlaut \u{1F600} \u{0}", "{\"a\":1}"] {
            assert_eq!(check(json!({"text": text})), Ok(Answer::text(text.to_owned())));
        }
    }

    #[test]
    fn everything_else_is_explained() {
        for bad in [
            json!({}),
            json!({"text": 1}),
            json!({"text": "a", "loud": true}),
            json!({"text": "x".repeat(MAX_TEXT + 1)}),
        ] {
            assert!(matches!(check(bad), Err(ToolFault::InvalidArguments(problems)) if problems.0.len() == 1));
        }
    }
}
