//! Parsed rule file as a tree whose values know their position, with typed accessors and errors.

use crate::error::{RuleError, RulePlace, RuleProblem, shown};
use crate::limits;
use crate::outside::Files;
use serde_json::Value as Json;
use signalbox_wire::closest::closest;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Rule file with its text and a source for referenced files.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
    pub files: &'a dyn Files,
}

impl Source<'_> {
    /// Returns line and column of a byte offset.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    pub fn place(&self, offset: usize, key: &str) -> RulePlace {
        RulePlace { file: self.file.to_owned(), position: Some(self.position(offset)), key: key.to_owned() }
    }
}

/// Value in the file, with its key.
#[derive(Clone)]
pub(crate) struct RuleNode<'a> {
    pub source: Source<'a>,
    pub key: String,
    value: &'a DeValue<'a>,
    at: usize,
}

/// Table whose keys are all known.
pub(crate) struct RuleTable<'a> {
    node: RuleNode<'a>,
    table: &'a DeTable<'a>,
}

impl<'a> RuleNode<'a> {
    pub fn new(source: Source<'a>, key: String, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self { source, key, at: value.span().start, value: value.get_ref() }
    }

    pub fn place(&self) -> RulePlace {
        self.source.place(self.at, &self.key)
    }

    pub fn fail(&self, problem: RuleProblem) -> RuleError {
        RuleError::new(self.place(), problem)
    }

    /// Creates an error that states what was expected.
    pub fn expected(&self, expected: impl Into<String>) -> RuleError {
        self.fail(RuleProblem::Expected { expected: expected.into(), found: self.describe_value() })
    }

    fn describe_value(&self) -> String {
        match self.value {
            DeValue::String(text) => shown(text),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Datetime(_) => "a date or time".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    pub fn is_list(&self) -> bool {
        self.value.is_array()
    }

    pub fn as_str(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// Returns the entries of a table with arbitrary keys.
    pub fn open_table(&self, expected: &str) -> Result<Vec<(&'a str, RuleNode<'a>)>, RuleError> {
        let table = self.value.as_table().ok_or_else(|| self.expected(expected))?;
        self.check_length(table.len())?;
        Ok(table.iter().map(|(key, value)| (key.get_ref().as_ref(), self.child(key.get_ref(), value))).collect())
    }

    /// Returns a table, and fails if it has other keys than these.
    pub fn table(&self, expected: &str, known: &[&'static str]) -> Result<RuleTable<'a>, RuleError> {
        let table = self.value.as_table().ok_or_else(|| self.expected(expected))?;
        for (key, value) in table {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let place = self.source.place(key.span().start, &self.child(name, value).key);
                let suggestion = closest(name, known);
                let problem = RuleProblem::UnknownKey { suggestion, known: known.to_vec() };
                return Err(RuleError::new(place, problem));
            }
        }
        Ok(RuleTable { node: self.clone(), table })
    }

    fn child(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Self {
        let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let key = if plain { key.to_owned() } else { shown(key) };
        let dot = if self.key.is_empty() { "" } else { "." };
        Self::new(self.source, format!("{}{dot}{key}", self.key), value)
    }

    pub fn list(&self, expected: &str) -> Result<Vec<RuleNode<'a>>, RuleError> {
        let items = self.value.as_array().ok_or_else(|| self.expected(expected))?;
        self.check_length(items.len())?;
        Ok(self.items_of(items))
    }

    /// Returns the items of a list that is limited by other means.
    pub fn long_list(&self, expected: &str) -> Result<Vec<RuleNode<'a>>, RuleError> {
        let items = self.value.as_array().ok_or_else(|| self.expected(expected))?;
        Ok(self.items_of(items))
    }

    fn items_of(&self, items: &'a [Spanned<DeValue<'a>>]) -> Vec<RuleNode<'a>> {
        let item = |(index, value)| Self::new(self.source, format!("{}[{index}]", self.key), value);
        items.iter().enumerate().map(item).collect()
    }

    fn check_length(&self, length: usize) -> Result<(), RuleError> {
        if length > limits::LIST {
            let remedy = "split them over several rules";
            return Err(self.fail(RuleProblem::TooMany { what: "entries", limit: limits::LIST, remedy }));
        }
        Ok(())
    }

    /// Returns a text that must not be empty.
    pub fn text(&self, expected: &str, longest: usize) -> Result<&'a str, RuleError> {
        match self.value.as_str() {
            Some(text) if !text.is_empty() && text.len() <= longest => Ok(text),
            Some(text) if !text.is_empty() => Err(self.expected(format!("at most {longest} bytes"))),
            _ => Err(self.expected(expected)),
        }
    }

    /// Returns one text or a list of texts.
    pub fn texts(&self, expected: &str, longest: usize) -> Result<Vec<&'a str>, RuleError> {
        if !self.is_list() {
            return Ok(vec![self.text(expected, longest)?]);
        }
        let items = self.list(expected)?;
        if items.is_empty() {
            return Err(self.expected(format!("{expected}; the list is empty")));
        }
        items.iter().map(|item| item.text(expected, longest)).collect()
    }

    pub fn flag(&self) -> Result<bool, RuleError> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    pub fn integer(&self, expected: &str, range: std::ops::RangeInclusive<i64>) -> Result<i64, RuleError> {
        let number =
            self.value.as_integer().and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok());
        number.filter(|number| range.contains(number)).ok_or_else(|| self.expected(expected))
    }

    pub fn number(&self, expected: &str) -> Result<f64, RuleError> {
        let number = match self.value {
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number as f64)
            }
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number.filter(|number: &f64| number.is_finite()).ok_or_else(|| self.expected(expected))
    }

    /// Parses a duration such as `"200ms"`, `"1.5s"`, `"10m"` or `"1h"`.
    pub fn duration(&self, longest: Duration) -> Result<Duration, RuleError> {
        let read = self.value.as_str().and_then(duration);
        read.filter(|time| *time <= longest).ok_or_else(|| {
            self.expected(format!("a time such as \"200ms\", \"5s\", \"10m\" or \"1h\", at most {longest:?}"))
        })
    }

    /// Converts the value to JSON of limited size.
    pub fn json(&self) -> Result<Json, RuleError> {
        let json = self.to_json()?;
        if json.to_string().len() > limits::VALUE {
            return Err(self.expected(format!("at most {} bytes of JSON", limits::VALUE)));
        }
        Ok(json)
    }

    /// Converts the value to JSON. Only the size of the file limits it.
    pub fn json_unbounded(&self) -> Result<Json, RuleError> {
        self.to_json()
    }

    /// Returns a value of a table with arbitrary keys.
    pub fn member(&self, key: &str) -> Option<RuleNode<'a>> {
        self.value.as_table()?.get(key).map(|value| self.child(key, value))
    }

    fn to_json(&self) -> Result<Json, RuleError> {
        Ok(match self.value {
            DeValue::String(text) => Json::from(text.as_ref()),
            DeValue::Boolean(flag) => Json::from(*flag),
            DeValue::Integer(_) => Json::from(self.integer("a whole number of 64 bits", i64::MIN..=i64::MAX)?),
            DeValue::Float(_) => Json::from(self.number("a finite number")?),
            DeValue::Datetime(time) => Json::from(time.to_string()),
            DeValue::Array(items) => self.items_of(items).iter().map(Self::to_json).collect::<Result<_, _>>()?,
            DeValue::Table(table) => {
                let entry = |(key, value): (&Spanned<_>, _)| -> Result<(String, Json), RuleError> {
                    let key: &std::borrow::Cow<'_, str> = key.get_ref();
                    Ok((key.to_string(), self.child(key, value).to_json()?))
                };
                Json::Object(table.iter().map(entry).collect::<Result<_, _>>()?)
            }
        })
    }
}

impl<'a> RuleTable<'a> {
    pub fn get(&self, key: &str) -> Option<RuleNode<'a>> {
        self.table.get(key).map(|value| self.node.child(key, value))
    }

    pub fn need(&self, key: &'static str) -> Result<RuleNode<'a>, RuleError> {
        self.get(key).ok_or_else(|| self.node.fail(RuleProblem::Missing(key)))
    }

    /// Returns the entries that exist for these keys, in this order.
    pub fn present<'k>(&self, keys: &'k [&'static str]) -> Vec<(&'k str, RuleNode<'a>)> {
        keys.iter().filter_map(|key| Some((*key, self.get(key)?))).collect()
    }

    pub fn node(&self) -> &RuleNode<'a> {
        &self.node
    }
}

fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit.trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * factor;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}
