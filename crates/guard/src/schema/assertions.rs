//! Keywords that judge a value itself, not its members.

use super::json_types::JsonTypes;
use super::pattern::Pattern;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Bounds of a number or of a count.
#[derive(Clone, Debug, Default)]
pub(super) struct Range {
    pub(super) least: Option<f64>,
    pub(super) above: Option<f64>,
    pub(super) most: Option<f64>,
    pub(super) below: Option<f64>,
}

/// Assertions of one subschema.
#[derive(Debug)]
pub(super) struct Assertions {
    pub(super) types: JsonTypes,
    /// Values of `enum`, or the one of `const`.
    pub(super) choices: Option<Vec<Value>>,
    pub(super) range: Range,
    pub(super) multiple_of: Option<f64>,
    pub(super) length: Range,
    pub(super) item_count: Range,
    pub(super) property_count: Range,
    pub(super) pattern: Option<Arc<Pattern>>,
    pub(super) unique_items: bool,
    pub(super) required: Vec<String>,
    /// True if a value must not be quoted: `writeOnly`, or the format of a password.
    pub(super) is_secret: bool,
}

impl Range {
    /// Reads inclusive and exclusive bounds.
    fn parse(schema: &Map<String, Value>, least: &str, most: &str) -> Self {
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        Self { least: number(least), most: number(most), above: None, below: None }
    }

    pub(super) fn contains(&self, number: f64) -> bool {
        self.least.is_none_or(|least| number >= least)
            && self.above.is_none_or(|above| number > above)
            && self.most.is_none_or(|most| number <= most)
            && self.below.is_none_or(|below| number < below)
    }

    pub(super) fn is_open(&self) -> bool {
        [self.least, self.above, self.most, self.below].iter().all(Option::is_none)
    }

    /// Returns the bounds in words, such as "from 1 to 100", or nothing without bounds.
    pub(super) fn describe(&self) -> String {
        let from =
            self.least.map(|least| format!("at least {least}")).or(self.above.map(|above| format!("above {above}")));
        let to = self.most.map(|most| format!("at most {most}")).or(self.below.map(|below| format!("below {below}")));
        match (self.least, self.most, from, to) {
            (Some(least), Some(most), ..) if least == most => format!("exactly {least}"),
            (Some(least), Some(most), ..) => format!("from {least} to {most}"),
            (_, _, Some(from), Some(to)) => format!("{from} and {to}"),
            (_, _, from, to) => from.or(to).unwrap_or_default(),
        }
    }
}

impl Assertions {
    /// Reads the assertions of a subschema. Values of the wrong kind are ignored: the metaschema refuses them.
    pub(super) fn parse(schema: &Map<String, Value>, pattern: Option<Arc<Pattern>>) -> Self {
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        let choices = schema.get("enum").and_then(Value::as_array).cloned();
        let constant = schema.get("const").map(|value| vec![value.clone()]);
        let format = schema.get("format").and_then(Value::as_str);
        Self {
            types: schema.get("type").map_or(JsonTypes::ALL, JsonTypes::parse),
            choices: constant.or(choices),
            range: Range {
                above: number("exclusiveMinimum"),
                below: number("exclusiveMaximum"),
                ..Range::parse(schema, "minimum", "maximum")
            },
            multiple_of: number("multipleOf"),
            length: Range::parse(schema, "minLength", "maxLength"),
            item_count: Range::parse(schema, "minItems", "maxItems"),
            property_count: Range::parse(schema, "minProperties", "maxProperties"),
            pattern,
            unique_items: schema.get("uniqueItems") == Some(&Value::Bool(true)),
            required: names(schema.get("required")),
            is_secret: schema.get("writeOnly") == Some(&Value::Bool(true)) || format == Some("password"),
        }
    }

    /// Checks whether no assertion refuses any value of these types.
    pub(super) fn accept_all(&self, types: JsonTypes) -> bool {
        self.types.covers(types)
            && self.choices.is_none()
            && self.multiple_of.is_none()
            && self.pattern.is_none()
            && !self.unique_items
            && self.required.is_empty()
            && [&self.range, &self.length, &self.item_count, &self.property_count].iter().all(|range| range.is_open())
    }
}

/// Returns the strings of an array.
pub(super) fn names(keyword: Option<&Value>) -> Vec<String> {
    let names = keyword.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
