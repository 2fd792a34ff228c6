//! Sets of JSON types.

use serde_json::Value;

/// Set of JSON types. `integer` is a type of its own here: an integral number has both.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct JsonTypes(u8);

const NAMES: [(JsonTypes, &str, &str); 7] = [
    (JsonTypes::NULL, "null", "null"),
    (JsonTypes::BOOLEAN, "boolean", "a boolean"),
    (JsonTypes::INTEGER, "integer", "an integer"),
    (JsonTypes::NUMBER, "number", "a number"),
    (JsonTypes::STRING, "string", "a string"),
    (JsonTypes::ARRAY, "array", "an array"),
    (JsonTypes::OBJECT, "object", "an object"),
];

impl JsonTypes {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const NUMBER: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ALL: Self = Self(127);

    /// Reads the value of `type`. Unknown names are ignored: the metaschema refuses them.
    pub(super) fn parse(keyword: &Value) -> Self {
        let bit = |name: &Value| {
            NAMES.iter().find(|(_, known, _)| name.as_str() == Some(known)).map_or(0, |(types, ..)| types.0)
        };
        match keyword {
            Value::Array(names) => Self(names.iter().fold(0, |set, name| set | bit(name))),
            name => Self(bit(name)),
        }
    }

    /// Returns the types of a value. A float without a fraction is an integer, as since Draft-06.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.as_f64().is_none_or(|float| float.fract() == 0.0) => {
                Self(Self::INTEGER.0 | Self::NUMBER.0)
            }
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Checks whether every type of `other` is in this set.
    pub(super) fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the types in words, such as "a string or null".
    pub(super) fn describe(self) -> String {
        if self == Self::ALL {
            return "a value".to_owned();
        }
        // A number may be an integer anyway.
        let hides_integer = |types: Self| types == Self::INTEGER && self.intersects(Self::NUMBER);
        let words: Vec<&str> = NAMES
            .iter()
            .rev()
            .filter(|(types, ..)| self.intersects(*types) && !hides_integer(*types))
            .map(|(.., words)| *words)
            .collect();
        words.join(" or ")
    }
}
