//! Parses a tool's arguments and collects all problems.
//!
//! A model that gets one problem at a time needs one call per mistake. The parser therefore continues after the first
//! problem, and `finish` reports them all, each with the expected value.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// Largest integer that every JSON reader represents exactly.
pub const MAX_SAFE: u64 = (1 << 53) - 1;

/// Maximum length of a wrong value or unknown name quoted in a problem.
const MAX_QUOTE: usize = 40;

/// Maximum number of problems reported. The rest are counted.
const MAX_PROBLEMS: usize = 8;

/// All problems with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct BadArguments(pub Vec<String>);

/// Parser for one object of arguments.
#[derive(Debug)]
pub struct Arguments<'a> {
    owner: String,
    prefix: String,
    map: &'a Map<String, Value>,
    problems: Vec<String>,
}

impl<'a> Arguments<'a> {
    /// Creates a parser for the arguments of `tool`.
    #[must_use]
    pub fn new(tool: &str, map: &'a Map<String, Value>) -> Arguments<'a> {
        Arguments { owner: tool.to_owned(), prefix: String::new(), map, problems: Vec::new() }
    }

    /// Reports every argument that is not in `known`.
    pub fn only(&mut self, known: &[&str]) {
        for key in self.map.keys().filter(|key| !known.contains(&key.as_str())) {
            let (prefix, owner, list) = (&self.prefix, &self.owner, known.join(", "));
            let name = quote(key);
            self.problems.push(format!("`{prefix}{name}` is not an argument; {owner} takes {list}"));
        }
    }

    /// Adds a problem to the report.
    pub fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    /// Parses a text of at most `max` characters.
    pub fn text(&mut self, key: &str, max: usize) -> Option<String> {
        match self.map.get(key)? {
            Value::String(text) if text.chars().count() <= max => Some(text.clone()),
            Value::String(text) => {
                let length = text.chars().count();
                self.expected(key, &format!("at most {max} characters long"), &format!("{length} of them"))
            }
            other => self.expected(key, "a string", &quote(&other.to_string())),
        }
    }

    /// Parses `true` or `false`.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        match self.map.get(key)? {
            Value::Bool(flag) => Some(*flag),
            other => self.expected(key, "true or false", &quote(&other.to_string())),
        }
    }

    /// Parses an integer in `range`. As in JSON Schema, `3.0` is an integer.
    pub fn whole(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.map.get(key)?;
        match whole_number(value) {
            Some(number) if range.contains(&number) => Some(number),
            _ => {
                let what = format!("a whole number from {} to {}", range.start(), range.end());
                self.expected(key, &what, &quote(&value.to_string()))
            }
        }
    }

    /// Parses one of several words.
    pub fn choice<T: Copy>(&mut self, key: &str, options: &[(&str, T)]) -> Option<T> {
        let value = self.map.get(key)?;
        match pick(value, options) {
            Some(picked) => Some(picked),
            None => self.expected(key, &one_of(options), &quote(&value.to_string())),
        }
    }

    /// Parses a list of words, each one of several.
    pub fn choices<T: Copy>(&mut self, key: &str, options: &[(&str, T)]) -> Option<Vec<T>> {
        let value = self.map.get(key)?;
        let picked = value.as_array().and_then(|items| items.iter().map(|item| pick(item, options)).collect());
        match picked {
            Some(picked) => Some(picked),
            None => {
                let what = format!("a list whose items are each {}", one_of(options));
                self.expected(key, &what, &quote(&value.to_string()))
            }
        }
    }

    /// Parses a list of at most `most` texts, each of at most `max` characters.
    pub fn texts(&mut self, key: &str, most: usize, max: usize) -> Option<Vec<String>> {
        let value = self.map.get(key)?;
        let text = |item: &Value| item.as_str().filter(|text| text.chars().count() <= max).map(str::to_owned);
        let texts = value.as_array().filter(|items| items.len() <= most);
        match texts.and_then(|items| items.iter().map(text).collect()) {
            Some(texts) => Some(texts),
            None => {
                let what = format!("a list of at most {most} strings, each at most {max} characters long");
                self.expected(key, &what, &quote(&value.to_string()))
            }
        }
    }

    /// Parses a nested object with `read`. Its problems are added to this parser's.
    pub fn section<T>(&mut self, key: &str, read: impl FnOnce(&mut Arguments<'a>) -> T) -> Option<T> {
        let map = self.map;
        match map.get(key)? {
            Value::Object(inner) => {
                let mut section = Arguments {
                    owner: format!("`{}{key}`", self.prefix),
                    prefix: format!("{}{key}.", self.prefix),
                    map: inner,
                    problems: std::mem::take(&mut self.problems),
                };
                let result = read(&mut section);
                self.problems = section.problems;
                Some(result)
            }
            other => self.expected(key, "an object", &quote(&other.to_string())),
        }
    }

    /// Ends the parsing.
    ///
    /// # Errors
    /// All problems found.
    pub fn finish(mut self) -> Result<(), BadArguments> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let more = self.problems.len().saturating_sub(MAX_PROBLEMS);
        self.problems.truncate(MAX_PROBLEMS);
        if more > 0 {
            self.problems.push(format!("and {more} more"));
        }
        Err(BadArguments(self.problems))
    }

    fn expected<T>(&mut self, key: &str, what: &str, got: &str) -> Option<T> {
        let prefix = &self.prefix;
        self.problems.push(format!("`{prefix}{key}` must be {what}; got {got}"));
        None
    }
}

/// Returns the value of an integer in any notation.
#[must_use]
pub fn whole_number(value: &Value) -> Option<u64> {
    if let Some(number) = value.as_u64() {
        return Some(number);
    }
    let number = value.as_f64()?;
    // Above 2^53, a float no longer identifies a single integer.
    let exact = number.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(&number);
    exact.then_some(number as u64)
}

fn pick<T: Copy>(value: &Value, options: &[(&str, T)]) -> Option<T> {
    let word = value.as_str()?;
    options.iter().find(|(name, _)| *name == word).map(|(_, picked)| *picked)
}

fn one_of<T>(options: &[(&str, T)]) -> String {
    let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
    format!("one of {}", names.join(", "))
}

fn quote(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(arguments: Value, read: impl FnOnce(&mut Arguments<'_>)) -> Vec<String> {
        let map = arguments.as_object().expect("an object").clone();
        let mut reader = Arguments::new("tool", &map);
        read(&mut reader);
        match reader.finish() {
            Ok(()) => Vec::new(),
            Err(BadArguments(problems)) => problems,
        }
    }

    #[test]
    fn every_problem_names_the_argument_and_what_was_expected() {
        let found = problems(json!({"n": "3", "deep": {"by": "colour", "x": 1}, "flag": 1, "odd": null}), |reader| {
            reader.only(&["n", "deep", "flag"]);
            assert_eq!(reader.whole("n", 1..=10), None);
            reader.section("deep", |inner| {
                inner.only(&["by"]);
                assert_eq!(inner.choice("by", &[("name", 1), ("size", 2)]), None);
            });
            assert_eq!(reader.flag("flag"), None);
        });
        assert_eq!(
            found,
            [
                "`odd` is not an argument; tool takes n, deep, flag",
                "`n` must be a whole number from 1 to 10; got \"3\"",
                "`deep.x` is not an argument; `deep` takes by",
                "`deep.by` must be one of name, size; got \"colour\"",
                "`flag` must be true or false; got 1",
            ]
        );
    }

    #[test]
    fn whole_numbers_may_be_written_as_floats() {
        assert_eq!(whole_number(&json!(3.0)), Some(3));
        for bad in [json!(3.5), json!(-1), json!(1e300), json!("3"), json!(null), json!(true)] {
            assert_eq!(whole_number(&bad), None, "{bad}");
        }
    }

    #[test]
    fn reports_stay_short() {
        let many: Map<String, Value> = (0..100).map(|n| (format!("{n:0100}"), json!(1))).collect();
        let found = problems(Value::Object(many), |reader| reader.only(&["a"]));
        assert_eq!(found.len(), MAX_PROBLEMS + 1);
        assert!(found.iter().all(|problem| problem.chars().count() < 100));
    }
}
