//! How a request differs from a recorded one.

use crate::diff::Comparison;
use crate::match_key::compared;
use crate::paths::Paths;
use serde_json::{Value, json};

/// Most differences that are told.
const MAX_TOLD: usize = 20;

/// The places at which the params of two requests differ, as pointers from the top of the message.
#[must_use]
pub fn differences(recorded: &Value, asked: &Value, ignored: &Paths) -> Vec<String> {
    let params = |message: &Value| json!({"params": message.get("params").map_or(Value::Null, compared)});
    let comparison = Comparison { ignored: ignored.clone(), ..Comparison::default() };
    let found = comparison.compare(&params(recorded), &params(asked)).list;
    found.into_iter().take(MAX_TOLD).map(|difference| difference.pointer).collect()
}
