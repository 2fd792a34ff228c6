//! JSON pointers of the leaves of a message.

use super::body::leaves;
use serde_json::Value;
use signalbox_engine::record::{Body, Content, Entry};
use signalbox_seal::SealDetails;
use std::ops::Range;

/// Returns the pointers of the values that were removed from an entry, or none if the whole message was.
pub(super) fn pointers(entry: &Entry, details: &SealDetails, commit: &[Vec<String>]) -> Vec<String> {
    let Content::Message(message) = &entry.content else { return vec![] };
    let Body::Whole(body) = &message.body else { return vec![] };
    let gone = leaves(body, commit).into_iter().zip(details.salts.iter().skip(1)).filter(|(_, salt)| salt.is_empty());
    let places: Vec<Range<usize>> = gone.map(|(leaf, _)| leaf).collect();
    of_places(body, &places)
}

/// Returns the pointers of these leaves of a message, which are in order.
pub(super) fn of_places(body: &[u8], places: &[Range<usize>]) -> Vec<String> {
    let mut text = Vec::with_capacity(body.len());
    let mut from = 0;
    // Each leaf is replaced by a text that no message contains, which is then searched in the parsed message.
    for (number, place) in places.iter().enumerate() {
        text.extend_from_slice(body.get(from..place.start).unwrap_or_default());
        text.extend_from_slice(format!("\"\\u0000{number}\"").as_bytes());
        from = place.end;
    }
    text.extend_from_slice(body.get(from..).unwrap_or_default());
    let mut found = vec![String::new(); places.len()];
    if let Ok(parsed) = serde_json::from_slice::<Value>(&text) {
        walk(&parsed, &mut String::new(), &mut found);
    }
    found
}

fn walk(value: &Value, path: &mut String, found: &mut [String]) {
    let length = path.len();
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
                walk(value, path, found);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                path.push('/');
                path.push_str(&index.to_string());
                walk(value, path, found);
                path.truncate(length);
            }
        }
        Value::String(text) => {
            let number = text.strip_prefix('\0').and_then(|number| number.parse::<usize>().ok());
            if let Some(place) = number.and_then(|number| found.get_mut(number)) {
                place.clone_from(path);
            }
        }
        _ => {}
    }
}
