//! How a request differs from a recorded one.

use crate::match_key::{compared, write_canonical};
use crate::paths::{Paths, pointer};
use serde_json::Value;

/// Most differences that are told.
const MAX_TOLD: usize = 20;

/// The places at which two requests differ, as pointers from the top of the message.
#[must_use]
pub fn differences(recorded: &Value, asked: &Value, ignored: &Paths) -> Vec<String> {
    let params = |message: &Value| {
        let mut params = serde_json::json!({"params": message.get("params").map_or(Value::Null, compared)});
        ignored.remove_from(&mut params);
        params
    };
    let mut found = Vec::new();
    walk(&params(recorded), &params(asked), &mut Vec::new(), &mut found);
    found
}

fn walk(recorded: &Value, asked: &Value, place: &mut Vec<String>, found: &mut Vec<String>) {
    if found.len() >= MAX_TOLD {
        return;
    }
    match (recorded, asked) {
        (Value::Object(one), Value::Object(other)) => {
            let added = other.keys().filter(|name| !one.contains_key(*name));
            for name in one.keys().chain(added) {
                place.push(name.clone());
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => walk(one, other, place, found),
                    _ => found.push(pointer(place)),
                }
                place.pop();
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                place.push(index.to_string());
                walk(one, other, place, found);
                place.pop();
            }
        }
        (one, other) => {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            write_canonical(one, &mut left);
            write_canonical(other, &mut right);
            if left != right {
                found.push(pointer(place));
            }
        }
    }
}
