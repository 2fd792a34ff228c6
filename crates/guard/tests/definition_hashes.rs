//! Hashes of definitions under every way to write the same data, and under every change of a value.

use proptest::prelude::*;
use serde_json::{Map, Value};
use signalbox_guard::pins::{DiffLine, ToolDefinition, diff, hash_tool};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| Value::from(number)),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(".{0,3}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn definitions() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("description|title|inputSchema|annotations|x", values(), 1..5).prop_map(|members| {
        let mut members: Map<String, Value> = members.into_iter().collect();
        members.insert("name".to_owned(), "tool".into());
        Value::Object(members)
    })
}

/// Writes a value in another way: members reversed or rotated, spaces, escapes, numbers with exponents.
fn rewrite(value: &Value, choices: &mut impl Iterator<Item = u8>) -> String {
    let space = |choice: u8| ["", " ", "\n\t", "\r\n"][usize::from(choice % 4)];
    let mut next = || choices.next().unwrap_or(0);
    match value {
        Value::String(text) => rewrite_string(text, &mut next),
        Value::Number(number) => rewrite_number(&number.to_string(), next()),
        Value::Array(items) => {
            let space = space(next());
            let items: Vec<String> = items.iter().map(|item| rewrite(item, choices)).collect();
            format!("[{space}{}]{space}", items.join(&format!("{space},")))
        }
        Value::Object(members) => {
            let (space, turn) = (space(next()), usize::from(next()));
            let mut written = Vec::new();
            for (key, value) in members {
                let key = rewrite_string(key, &mut || choices.next().unwrap_or(0));
                written.push(format!("{space}{key}{space}:{}", rewrite(value, choices)));
            }
            if turn % 2 == 1 {
                written.reverse();
            }
            let length = written.len().max(1);
            written.rotate_left(turn % length);
            format!("{{{}{space}}}", written.join(","))
        }
        other => other.to_string(),
    }
}

fn rewrite_string(text: &str, next: &mut impl FnMut() -> u8) -> String {
    let mut out = "\"".to_owned();
    for char in text.chars() {
        if next() % 2 == 1 {
            char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
        } else {
            let quoted = Value::from(char.to_string()).to_string();
            out.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
    out + "\""
}

fn rewrite_number(text: &str, choice: u8) -> String {
    match (choice % 4, text.contains(['.', 'e'])) {
        (1, false) => format!("{text}.0"),
        (2, false) => format!("{text}00e-2"),
        (3, false) => format!("{text}E+0"),
        _ => text.to_owned(),
    }
}

/// Places of a value, as JSON pointers.
fn places(value: &Value, place: &str, out: &mut Vec<String>) {
    out.push(place.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| places(item, &format!("{place}/{at}"), out))
        }
        Value::Object(members) => members.iter().for_each(|(key, item)| {
            places(item, &format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")), out);
        }),
        _ => {}
    }
}

fn altered(value: &Value) -> Value {
    match value {
        Value::Null => Value::Bool(false),
        Value::Bool(value) => Value::Bool(!value),
        Value::Number(number) => Value::String(number.to_string()),
        Value::String(text) => Value::String(format!("{text}\u{200b}")),
        Value::Array(items) => Value::Array([items.clone(), vec![Value::Null]].concat()),
        Value::Object(members) => {
            let mut members = members.clone();
            members.insert("added".to_owned(), Value::Null);
            Value::Object(members)
        }
    }
}

proptest! {
    #[test]
    fn the_way_in_which_data_is_written_does_not_count(
        definition in definitions(), choices in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let plain = definition.to_string();
        let other = rewrite(&definition, &mut choices.into_iter());
        prop_assert_eq!(hash_tool(plain.as_bytes()).unwrap(), hash_tool(other.as_bytes()).unwrap(), "{}", other);
        prop_assert_eq!(diff(plain.as_bytes(), other.as_bytes()).unwrap(), Vec::<DiffLine>::new());
    }

    #[test]
    fn every_value_counts(definition in definitions(), choice in any::<prop::sample::Index>()) {
        let mut all = Vec::new();
        places(&definition, "", &mut all);
        all.retain(|place| place != "/name");
        let mut other = definition.clone();
        let place = other.pointer_mut(&all[choice.index(all.len())]).unwrap();
        *place = altered(place);
        let (definition, other) = (definition.to_string(), other.to_string());
        prop_assert_ne!(hash_tool(definition.as_bytes()).unwrap(), hash_tool(other.as_bytes()).unwrap());
        prop_assert!(!diff(definition.as_bytes(), other.as_bytes()).unwrap().is_empty());
    }

    #[test]
    fn hostile_text_is_an_error_not_a_panic(text in "[\\[\\]{}\",:0-9eE.\\\\u+ntrf \\-]{0,60}") {
        let _ = ToolDefinition::parse(text.as_bytes());
        let _ = ToolDefinition::parse(format!("{{\"name\":\"a\",\"x\":{text}}}").as_bytes());
    }
}
