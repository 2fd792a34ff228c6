//! Meanings of all arguments of a tool, compiled once per definition.

use super::meaning::{Meaning, meaning};
use serde_json::Value;
use std::collections::HashMap;

/// Maximum nesting of schemas that is compiled. Deeper arguments are judged by their names alone.
const MAX_DEPTH: usize = 12;
/// Maximum number of arguments of a tool that are compiled.
const MAX_ARGUMENTS: usize = 2000;

/// Meanings of the arguments of a tool, by their places.
///
/// A place is a JSON pointer in which `*` stands for every element of an array: `/edits/*/path`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Meanings {
    tool_name: String,
    places: HashMap<String, Meaning>,
}

impl Meanings {
    /// Compiles the input schema of a tool.
    #[must_use]
    pub fn new(tool_name: &str, input_schema: &Value) -> Self {
        let mut meanings = Self { tool_name: tool_name.to_owned(), places: HashMap::new() };
        meanings.add_properties(input_schema, "", MAX_DEPTH);
        meanings
    }

    /// Sets the meaning of one argument, as an operator knows it. It replaces what the schema suggests.
    #[must_use]
    pub fn with_label(mut self, place: &str, meaning: Meaning) -> Self {
        self.places.insert(place.to_owned(), meaning);
        self
    }

    fn add_properties(&mut self, schema: &Value, place: &str, depth: usize) {
        let variants = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
        if depth == 0 {
            return;
        }
        for variant in variants {
            self.add_properties(variant, place, depth - 1);
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if self.places.len() >= MAX_ARGUMENTS {
                return;
            }
            let place = format!("{place}/{}", escaped(name));
            let own = meaning(name, Some(property), &self.tool_name);
            self.add_argument(property, &place, own, depth);
        }
        if let Some(items) = schema.get("items").filter(|_| place.is_empty()) {
            self.add_properties(items, "/*", depth - 1);
        }
    }

    fn add_argument(&mut self, property: &Value, place: &str, own: Meaning, depth: usize) {
        self.places.entry(place.to_owned()).or_insert(own);
        self.add_properties(property, place, depth - 1);
        // Elements mean what their array means, unless their schema says more.
        if let Some(items) = property.get("items").filter(|_| depth > 1) {
            let of_items = meaning("", Some(items), &self.tool_name);
            let of_items = if of_items == Meaning::Unknown { own } else { of_items };
            self.add_argument(items, &format!("{place}/*"), of_items, depth - 1);
        }
    }

    /// Returns the meaning of the string at a place. Places that no schema describes are judged by `name`, the last
    /// member name of the place.
    #[must_use]
    pub fn get(&self, place: &str, name: &str) -> Meaning {
        self.places.get(place).copied().unwrap_or_else(|| meaning(name, None, &self.tool_name))
    }
}

/// Escapes a member name for a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_arguments_and_elements_have_meanings() {
        let schema = json!({"properties": {
            "paths": {"type": "array", "items": {"type": "string"}},
            "edits": {"type": "array", "items": {"properties": {"oldText": {}, "file": {}}}},
            "options": {"anyOf": [{"properties": {"url": {}}}]},
        }});
        let meanings = Meanings::new("edit", &schema).with_label("/edits/*/oldText", Meaning::Sql);
        assert_eq!(meanings.get("/paths/*", "paths"), Meaning::Path);
        assert_eq!(meanings.get("/edits/*/file", "file"), Meaning::Path);
        assert_eq!(meanings.get("/edits/*/oldText", "oldText"), Meaning::Sql);
        assert_eq!(meanings.get("/options/url", "url"), Meaning::Url);
        assert_eq!(meanings.get("/other/path", "path"), Meaning::Path);
    }

    #[test]
    fn hostile_schemas_are_bounded() {
        let mut deep = json!({"properties": {"a": {}}});
        for _ in 0..100 {
            deep = json!({"properties": {"a": {"items": deep.clone()}}, "items": {}});
        }
        assert!(Meanings::new("t", &deep).places.len() < 100);
        let wide: serde_json::Map<String, Value> = (0..5000).map(|at| (format!("a{at}"), json!({}))).collect();
        assert!(Meanings::new("t", &json!({"properties": wide})).places.len() <= MAX_ARGUMENTS + 1);
    }
}
