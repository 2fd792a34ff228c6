//! Describes what a subschema accepts.

use super::assertions::{Assertions, Range};
use super::graph::Graph;
use super::json_types::JsonTypes;
use super::limits::MAX_QUOTED_CHARS;
use super::schema_node::{NodeId, Role};
use super::schema_validity::{quote, shorten};
use serde_json::Value;

/// Nesting of subschemas that a description follows.
const MAX_DEPTH: usize = 4;
/// Number of branches that a description names.
const MAX_BRANCHES: usize = 3;
/// Length of a list of choices, in characters.
const MAX_CHOICES_CHARS: usize = 60;

/// Returns the accepted values in words, such as "an integer from 1 to 100".
pub(super) fn describe(graph: &Graph, id: NodeId) -> String {
    describe_node(graph, id, MAX_DEPTH)
}

fn describe_node(graph: &Graph, id: NodeId, depth: usize) -> String {
    let Some(node) = graph.node(id) else { return "a value".to_owned() };
    if node.is_false {
        return "no value".to_owned();
    }
    let own = &node.assertions;
    let is_bare = own.types == JsonTypes::ALL && own.choices.is_none();
    if is_bare && depth > 0 {
        let with = |role: Role| node.same_value.iter().filter(move |edge| edge.role == role);
        if let Some(edge) = with(Role::Reference).chain(with(Role::AllOf)).next() {
            return describe_node(graph, edge.target, depth - 1);
        }
        let branches = with(Role::AnyOf).chain(with(Role::OneOf)).take(MAX_BRANCHES);
        let mut words: Vec<String> = branches.map(|edge| describe_node(graph, edge.target, depth - 1)).collect();
        words.dedup();
        if !words.is_empty() {
            return words.join(" or ");
        }
    }
    describe_assertions(own)
}

/// Returns what the assertions accept, in words.
pub(super) fn describe_assertions(own: &Assertions) -> String {
    if let Some(choices) = &own.choices {
        return describe_choices(choices);
    }
    let mut words = own.types.describe();
    let has = |types: JsonTypes| own.types.intersects(types);
    if has(JsonTypes::NUMBER.union(JsonTypes::INTEGER)) {
        append(&mut words, "", &own.range, "");
        if let Some(divisor) = own.multiple_of {
            words.push_str(&format!(" that is a multiple of {divisor}"));
        }
    }
    if has(JsonTypes::STRING) {
        append(&mut words, "of ", &own.length, "character");
        if let Some(pattern) = &own.pattern {
            words.push_str(&format!(" matching `{}`", shorten(&pattern.source, MAX_QUOTED_CHARS)));
        }
    }
    if has(JsonTypes::ARRAY) {
        append(&mut words, "of ", &own.item_count, "item");
        words.push_str(if own.unique_items { " without repetition" } else { "" });
    }
    if has(JsonTypes::OBJECT) {
        append(&mut words, "with ", &own.property_count, "member");
    }
    words
}

fn append(words: &mut String, before: &str, range: &Range, noun: &str) {
    if range.is_open() {
        return;
    }
    let is_one = range.most.or(range.least) == Some(1.0);
    let noun = if noun.is_empty() { String::new() } else { format!(" {noun}{}", if is_one { "" } else { "s" }) };
    words.push_str(&format!(" {before}{}{noun}", range.describe()));
}

/// Returns the choices in words, the last ones left out if there are many.
fn describe_choices(choices: &[Value]) -> String {
    if let [only] = choices {
        return describe_choice(only);
    }
    let mut words = String::from("one of ");
    for (index, choice) in choices.iter().enumerate() {
        let text = describe_choice(choice);
        if words.len() + text.len() > MAX_CHOICES_CHARS {
            words.push_str(&format!("… ({} values)", choices.len()));
            return words;
        }
        words.push_str(if index > 0 { ", " } else { "" });
        words.push_str(&text);
    }
    words
}

fn describe_choice(choice: &Value) -> String {
    match choice {
        Value::String(text) => quote(text),
        Value::Array(_) => "a certain array".to_owned(),
        Value::Object(_) => "a certain object".to_owned(),
        scalar => scalar.to_string(),
    }
}
