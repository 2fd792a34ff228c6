//! Locates the differences between a request and a recorded one.

use crate::diff::Comparison;
use crate::match_key::comparable_params;
use crate::paths::Paths;
use serde_json::{Value, json};

/// Maximum number of differences returned.
const MAX_DIFFERENCES: usize = 20;

/// Returns the places where the params of two requests differ, as pointers from the top of the message.
#[must_use]
pub fn differences(recorded: &Value, asked: &Value, ignored: &Paths) -> Vec<String> {
    let params = |message: &Value| json!({"params": message.get("params").map_or(Value::Null, comparable_params)});
    let comparison = Comparison { ignored: ignored.clone(), ..Comparison::default() };
    let found = comparison.compare(&params(recorded), &params(asked)).list;
    found.into_iter().take(MAX_DIFFERENCES).map(|difference| difference.pointer).collect()
}
