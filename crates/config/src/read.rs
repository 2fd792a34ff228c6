//! Reads the values of a table by their keys, with the type, bounds and default from the table of keys.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use super::error::{self, ConfigError, ConfigPlace, Position, Problem, SettingOrigin};
use super::expand::{Dialect, Env, ExpandFault, expand};
use super::faults::Faults;
use super::keys::{self, ConfigKey, KeyKind, KeyState, KnownPath, LEAST_SECONDS, MOST_SEED};
use super::path::KeyPath;
use super::raw::{Node, RawEntry, Value};
use crate::duration;
use signalbox_wire::closest::closest;

/// File that is being read.
pub(crate) struct Document<'a> {
    /// Path of the file in messages, or `None` for the defaults.
    pub(crate) file: Option<&'a Path>,
    pub(crate) text: &'a str,
    pub(crate) dialect: Dialect,
    pub(crate) env: &'a Env<'a>,
}

impl Document<'_> {
    /// Returns the place of a key or value.
    pub(crate) fn place(&self, key: &KeyPath, at: usize) -> ConfigPlace {
        let origin = self.file.map_or(SettingOrigin::Defaults, |file| SettingOrigin::File(file.to_owned()));
        ConfigPlace { origin, position: Some(Position::of(self.text, at)), key: Some(key.clone()) }
    }

    /// Creates an error at a key or value.
    pub(crate) fn error(&self, key: &KeyPath, at: usize, problem: Problem) -> ConfigError {
        ConfigError::new(self.place(key, at), problem)
    }
}

/// Table of the file. It has its path in the file and the path under which the table of keys knows it.
///
/// They differ in a client's file, where `mcpServers.NAME` corresponds to our `backends.NAME`.
#[derive(Clone)]
pub(crate) struct Table<'a> {
    pub(crate) document: &'a Document<'a>,
    pub(crate) entries: &'a [RawEntry],
    pub(crate) path: KeyPath,
    pub(crate) known_as: KeyPath,
    /// Offset to which an error about the table as a whole points.
    pub(crate) at: usize,
}

/// String of the file.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) path: KeyPath,
    pub(crate) at: usize,
    /// Text as the file has it, which messages may show.
    pub(crate) raw: &'a str,
    /// Text with its references replaced.
    pub(crate) value: String,
}

impl<'a> Table<'a> {
    /// Returns the table of the whole file.
    pub(crate) fn root(document: &'a Document<'a>, node: &'a Node) -> Result<Self, ConfigError> {
        let root = KeyPath::root();
        Self::new(document, node, root.clone(), root, node.at)
    }

    pub(crate) fn new(
        document: &'a Document<'a>,
        node: &'a Node,
        path: KeyPath,
        known_as: KeyPath,
        at: usize,
    ) -> Result<Self, ConfigError> {
        let Value::Table(entries) = &node.value else {
            return Err(wrong_type(document, &path, node, KeyKind::Table.expected()));
        };
        Ok(Self { document, entries, path, known_as, at })
    }

    /// Returns the table under `key`. An absent one is empty.
    pub(crate) fn table(&self, key: &str) -> Result<Self, ConfigError> {
        match self.entry(key) {
            Some(entry) => self.inside(entry),
            None => Ok(Self {
                document: self.document,
                entries: &[],
                path: self.path.child(key),
                known_as: self.known_as.child(key),
                at: self.at,
            }),
        }
    }

    /// Returns the table that is the value of `entry`, which belongs to this table.
    pub(crate) fn inside(&self, entry: &'a RawEntry) -> Result<Self, ConfigError> {
        let (path, known_as) = (self.path.child(&entry.key), self.known_as.child(&entry.key));
        Self::new(self.document, &entry.node, path, known_as, entry.key_at)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&'a RawEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Creates an error about the table as a whole.
    pub(crate) fn error(&self, problem: Problem) -> ConfigError {
        self.document.error(&self.path, self.at, problem)
    }

    /// Creates an error about a key, as opposed to its value.
    pub(crate) fn key_error(&self, key: &str, problem: Problem) -> ConfigError {
        let at = self.entry(key).map_or(self.at, |entry| entry.key_at);
        self.document.error(&self.path.child(key), at, problem)
    }

    /// Reads a string, or its default from the table of keys, if it has one.
    pub(crate) fn text(&self, key: &str) -> Result<Option<Text<'a>>, ConfigError> {
        let kind = self.kind(key)?;
        match self.entry(key) {
            Some(entry) => self.text_at(&entry.node, self.path.child(key), kind).map(Some),
            None => Ok(match kind {
                KeyKind::Text("") => None,
                KeyKind::Text(default) | KeyKind::Choice { default, .. } => {
                    Some(Text { path: self.path.child(key), at: self.at, raw: default, value: default.to_owned() })
                }
                _ => None,
            }),
        }
    }

    /// Reads one of the words that the table of keys allows.
    pub(crate) fn choice(&self, key: &str) -> Result<String, ConfigError> {
        let KeyKind::Choice { built, later, default } = self.kind(key)? else {
            return Err(self.unknown(key));
        };
        let Some(text) = self.text(key)? else {
            return Ok(default.to_owned());
        };
        if built.contains(&text.value.as_str()) {
            return Ok(text.value);
        }
        let problem = match later.iter().find(|word| **word == text.value) {
            Some(_) => Problem::NotBuilt {
                feature: "this is",
                remedy: format!("remove the key or set it to {}", error::list(built)),
            },
            None => Problem::BadValue { expected: error::list(built), found: error::shown(text.raw) },
        };
        Err(self.document.error(&text.path, text.at, problem))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, ConfigError> {
        match (self.entry(key).map(|entry| &entry.node), self.kind(key)?) {
            (Some(Node { value: Value::Bool(flag), .. }), _) => Ok(*flag),
            (Some(node), kind) => Err(self.wrong_type(key, node, kind)),
            (None, KeyKind::Flag(default)) => Ok(default),
            (None, _) => Err(self.unknown(key)),
        }
    }

    /// Reads a time, or its default. Returns `None` only for keys without a default.
    pub(crate) fn seconds(&self, key: &str) -> Result<Option<Duration>, ConfigError> {
        let kind = self.kind(key)?;
        let KeyKind::Seconds { default, max } = kind else {
            return Err(self.unknown(key));
        };
        let Some(node) = self.entry(key).map(|entry| &entry.node) else {
            return Ok(default.map(Duration::from_secs_f64));
        };
        let seconds = match node.value {
            Value::Float(seconds) => seconds,
            // The bound is far below where whole numbers stop being exact.
            Value::Integer(seconds) => seconds as f64,
            Value::Text(_) => self.spelled(node, key, kind)?,
            _ => return Err(self.wrong_type(key, node, kind)),
        };
        if !(LEAST_SECONDS..=max).contains(&seconds) {
            return Err(self.out_of_range(key, node, kind, &seconds.to_string()));
        }
        Duration::try_from_secs_f64(seconds)
            .map(Some)
            .map_err(|_| self.out_of_range(key, node, kind, &seconds.to_string()))
    }

    /// Reads a time with its unit, such as `"30s"`, in seconds.
    fn spelled(&self, node: &'a Node, key: &str, kind: KeyKind) -> Result<f64, ConfigError> {
        let text = self.text_at(node, self.path.child(key), kind)?;
        let read = duration::of_seconds(&text.value);
        read.map(|time| time.as_secs_f64()).map_err(|_| self.out_of_range(key, node, kind, &error::shown(text.raw)))
    }

    /// Reads a time whose key has a default.
    pub(crate) fn duration(&self, key: &str) -> Result<Duration, ConfigError> {
        self.seconds(key)?.ok_or_else(|| self.unknown(key))
    }

    /// Reads a whole number. `T` must hold its bounds.
    pub(crate) fn count<T: TryFrom<u64>>(&self, key: &str) -> Result<T, ConfigError> {
        let kind = self.kind(key)?;
        let KeyKind::Count { default, min, max } = kind else {
            return Err(self.unknown(key));
        };
        match self.number(key, kind, min..=max)? {
            Some(number) => Ok(number),
            None => T::try_from(default).map_err(|_| self.unknown(key)),
        }
    }

    /// Reads a bound, if there is one.
    pub(crate) fn bound(&self, key: &str) -> Result<Option<u64>, ConfigError> {
        let kind = self.kind(key)?;
        let KeyKind::Bound { min, max } = kind else {
            return Err(self.unknown(key));
        };
        self.number(key, kind, min..=max)
    }

    fn number<T: TryFrom<u64>>(
        &self,
        key: &str,
        kind: KeyKind,
        allowed: RangeInclusive<u64>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(node) = self.entry(key).map(|entry| &entry.node) else { return Ok(None) };
        let Value::Integer(number) = node.value else {
            return Err(self.wrong_type(key, node, kind));
        };
        let fits = u64::try_from(number).ok().filter(|number| allowed.contains(number));
        let fitting = fits.and_then(|number| T::try_from(number).ok());
        fitting.map(Some).ok_or_else(|| self.out_of_range(key, node, kind, &number.to_string()))
    }

    /// Reads the seed of random numbers, if it is given.
    pub(crate) fn seed(&self, key: &str) -> Result<Option<u64>, ConfigError> {
        let kind = self.kind(key)?;
        let Some(node) = self.entry(key).map(|entry| &entry.node) else { return Ok(None) };
        let Value::Integer(number) = node.value else {
            return Err(self.wrong_type(key, node, kind));
        };
        match u64::try_from(number).ok().filter(|number| *number <= MOST_SEED) {
            Some(seed) => Ok(Some(seed)),
            None => Err(self.out_of_range(key, node, kind, &number.to_string())),
        }
    }

    /// Reads a fraction between 0 and 1, or its default.
    pub(crate) fn fraction(&self, key: &str) -> Result<f64, ConfigError> {
        let kind = self.kind(key)?;
        let KeyKind::Fraction(default) = kind else {
            return Err(self.unknown(key));
        };
        let Some(node) = self.entry(key).map(|entry| &entry.node) else {
            return Ok(default);
        };
        let part = match node.value {
            Value::Float(part) => part,
            // Only 0 and 1 are in the bounds, and they are exact.
            Value::Integer(part) => part as f64,
            _ => return Err(self.wrong_type(key, node, kind)),
        };
        if (0.0..=1.0).contains(&part) { Ok(part) } else { Err(self.out_of_range(key, node, kind, &part.to_string())) }
    }

    /// Reads a list of strings. An absent one is empty.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<Text<'a>>, ConfigError> {
        let kind = self.kind(key)?;
        let Some(node) = self.entry(key).map(|entry| &entry.node) else {
            return Ok(Vec::new());
        };
        let Value::List(items) = &node.value else {
            return Err(self.wrong_type(key, node, kind));
        };
        let path = self.path.child(key);
        let texts = items.iter().enumerate();
        texts.map(|(index, item)| self.text_at(item, path.item(index), KeyKind::Text(""))).collect()
    }

    /// Reads a table of strings under free names, each with its entry. An absent one is empty.
    pub(crate) fn text_table(&self, key: &str) -> Result<Vec<(&'a RawEntry, Text<'a>)>, ConfigError> {
        let table = self.table(key)?;
        let texts = table.entries.iter();
        texts
            .map(|entry| Ok((entry, self.text_at(&entry.node, table.path.child(&entry.key), KeyKind::Text(""))?)))
            .collect()
    }

    /// Returns the string of a node, with its references replaced.
    pub(crate) fn text_at(&self, node: &'a Node, path: KeyPath, kind: KeyKind) -> Result<Text<'a>, ConfigError> {
        let Value::Text(raw) = &node.value else {
            return Err(wrong_type(self.document, &path, node, kind.expected()));
        };
        let value = expand(raw, self.document.dialect, self.document.env).map_err(|fault| {
            let problem = match fault {
                ExpandFault::Unset(name) => Problem::Unset { name },
                ExpandFault::Malformed => Problem::BadReference,
                ExpandFault::ClientOnly(reference) => Problem::ClientReference(error::shown(&reference)),
            };
            self.document.error(&path, node.at, problem)
        })?;
        Ok(Text { path, at: node.at, raw, value })
    }

    /// Returns the kind of a key from the table of keys. A key that is not there is reported as unknown.
    fn kind(&self, key: &str) -> Result<KeyKind, ConfigError> {
        match keys::look_up(self.known_as.child(key).segments()) {
            KnownPath::Key(known) => Ok(known.kind),
            KnownPath::Table => Ok(KeyKind::Table),
            KnownPath::Unknown => Err(self.unknown(key)),
        }
    }

    fn unknown(&self, key: &str) -> ConfigError {
        let known = keys::children(self.known_as.segments());
        let suggestion = closest(key, &known);
        self.key_error(key, Problem::UnknownKey { suggestion, known })
    }

    fn wrong_type(&self, key: &str, node: &Node, kind: KeyKind) -> ConfigError {
        wrong_type(self.document, &self.path.child(key), node, kind.expected())
    }

    fn out_of_range(&self, key: &str, node: &Node, kind: KeyKind, found: &str) -> ConfigError {
        let problem = Problem::BadValue { expected: kind.expected(), found: found.to_owned() };
        self.document.error(&self.path.child(key), node.at, problem)
    }

    /// Refuses unknown keys, values of a wrong type, and features that are not built yet, in the order of the file.
    pub(crate) fn check_keys(&self) -> Result<(), ConfigError> {
        let mut faults = Faults::default();
        for entry in self.entries {
            let checked = match keys::look_up(self.known_as.child(&entry.key).segments()) {
                KnownPath::Key(known) => self.check_key(entry, known),
                KnownPath::Table => self.inside(entry).and_then(|table| table.check_keys()),
                KnownPath::Unknown => Err(self.unknown(&entry.key)),
            };
            faults.take(checked);
        }
        faults.none()
    }

    fn check_key(&self, entry: &'a RawEntry, known: &ConfigKey) -> Result<(), ConfigError> {
        if let KeyState::Feature { name: feature, what, built: false } = known.state {
            return Err(self.key_error(&entry.key, Problem::OtherBuild { what, feature }));
        }
        if !fits(&known.kind, &entry.node.value) {
            return Err(self.wrong_type(&entry.key, &entry.node, known.kind));
        }
        self.check_value(&entry.key, known.kind)
    }

    /// Refuses a value out of the bounds that the table of keys gives it.
    fn check_value(&self, key: &str, kind: KeyKind) -> Result<(), ConfigError> {
        match kind {
            KeyKind::Seconds { .. } => self.seconds(key).map(drop),
            KeyKind::Count { .. } => self.count::<u64>(key).map(drop),
            KeyKind::Bound { .. } => self.bound(key).map(drop),
            KeyKind::Seed => self.seed(key).map(drop),
            KeyKind::Fraction(_) => self.fraction(key).map(drop),
            KeyKind::Choice { .. } => self.choice(key).map(drop),
            _ => Ok(()),
        }
    }
}

/// Returns `true` if a value has the type that a key takes. Its content is checked when it is read.
fn fits(kind: &KeyKind, value: &Value) -> bool {
    match kind {
        KeyKind::Text(_) | KeyKind::Choice { .. } => matches!(value, Value::Text(_)),
        KeyKind::Flag(_) => matches!(value, Value::Bool(_)),
        KeyKind::Seconds { .. } => matches!(value, Value::Text(_) | Value::Integer(_) | Value::Float(_)),
        KeyKind::Fraction(_) => matches!(value, Value::Integer(_) | Value::Float(_)),
        KeyKind::Count { .. } | KeyKind::Bound { .. } | KeyKind::Seed => matches!(value, Value::Integer(_)),
        KeyKind::Texts | KeyKind::Addresses | KeyKind::Tables | KeyKind::Rules => matches!(value, Value::List(_)),
        KeyKind::TextTable | KeyKind::Table => matches!(value, Value::Table(_)),
    }
}

fn wrong_type(document: &Document<'_>, path: &KeyPath, node: &Node, expected: String) -> ConfigError {
    let in_json = document.dialect == Dialect::Foreign;
    let is_command = path.segments().last().is_some_and(|key| key == "command");
    let expected = match (&node.value, expected.strip_prefix("a table")) {
        (_, Some(rest)) if in_json => format!("an object{rest}"),
        (Value::List(_), _) if is_command => "a program as a string, with its arguments in `args`".to_owned(),
        _ => expected,
    };
    let found = match &node.value {
        Value::Table(_) if in_json => "an object",
        other => other.kind(),
    };
    document.error(path, node.at, Problem::WrongType { expected, found })
}
