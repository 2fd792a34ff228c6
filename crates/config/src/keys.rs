//! Looks up the keys of the configuration file, each of which is defined once.
//!
//! The parser refuses keys that are not in the table and takes types, bounds and defaults from it. The reference page
//! is printed from it too, so the three cannot disagree.

pub use crate::key_parts::{FOREIGN_KEYS, LOG_LEVELS};
pub use crate::key_table::KEYS;

/// Definition of one key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfigKey {
    /// Path of the key, in which `NAME` stands for any name.
    pub path: &'static str,
    /// Type of its value, with bounds and default.
    pub kind: KeyKind,
    /// Availability in this build.
    pub state: KeyState,
    /// Meaning, as the reference page prints it.
    pub meaning: &'static str,
}

/// Type of a key's value, with its bounds and default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeyKind {
    /// A string, perhaps with a default (empty: none).
    Text(&'static str),
    /// One of a few words.
    Choice {
        /// Words that can be used.
        built: &'static [&'static str],
        /// Words that a later version will have.
        later: &'static [&'static str],
        /// Word that applies by default (empty: none).
        default: &'static str,
    },
    /// A boolean and its default.
    Flag(bool),
    /// A time with its unit, such as `"30s"`, or a number of seconds, whole or not.
    Seconds {
        /// Default, if there is one.
        default: Option<f64>,
        max: f64,
    },
    /// A fraction between 0 and 1, and its default.
    Fraction(f64),
    /// A whole number within bounds.
    Count { default: u64, min: u64, max: u64 },
    /// A whole number that is a bound. Without a value there is no bound.
    Bound { min: u64, max: u64 },
    /// A seed for random numbers, without a default.
    Seed,
    /// A list of strings.
    Texts,
    /// A list of addresses, each alone or in a table with its weight.
    Addresses,
    /// A table of strings under names of the user's choice.
    TextTable,
    /// A list of tables with keys of their own.
    Tables,
    /// A list of rules, which `signalbox_rules` reads.
    Rules,
    /// A table that is refused as a whole.
    Table,
}

/// Availability of a key in this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    Built,
    /// Belongs to a cargo feature.
    Feature {
        /// Name of the feature.
        name: &'static str,
        /// Capability that the feature provides, with its verb.
        what: &'static str,
        /// `true` if this program was built with the feature.
        built: bool,
    },
}

impl KeyKind {
    /// Describes the expected value with its article and bounds, for messages and the reference.
    pub fn expected(&self) -> String {
        match self {
            Self::Text(_) => "a string".to_owned(),
            Self::Choice { built, .. } => super::error::list(built),
            Self::Flag(_) => "`true` or `false`".to_owned(),
            Self::Seconds { max, .. } => {
                format!("a time such as \"30s\", from {LEAST_SECONDS} to {max} seconds")
            }
            Self::Fraction(_) => "a number from 0 to 1".to_owned(),
            Self::Count { min, max, .. } | Self::Bound { min, max } => format!("a whole number from {min} to {max}"),
            Self::Seed => format!("a whole number from 0 to {MOST_SEED}"),
            Self::Texts => "a list of strings".to_owned(),
            Self::Addresses => "a list of addresses, each alone or as `{ url = …, weight = … }`".to_owned(),
            Self::Tables => "a list of tables".to_owned(),
            Self::Rules => "a list of rules, each under `[[rules]]`".to_owned(),
            Self::TextTable => "a table of strings".to_owned(),
            Self::Table => "a table".to_owned(),
        }
    }
}

/// Maximum seed: the largest whole number that TOML has.
pub const MOST_SEED: u64 = i64::MAX.cast_unsigned();

/// Shortest duration that can be configured. Every duration is above zero.
pub const LEAST_SECONDS: f64 = 0.001;

impl ConfigKey {
    pub(crate) const fn of_feature(mut self, name: &'static str, what: &'static str, built: bool) -> Self {
        self.state = KeyState::Feature { name, what, built };
        self
    }

    /// Returns the rest of this key's path after `path`, if the key lies at or below it.
    fn below(&self, path: &[String]) -> Option<std::str::Split<'static, char>> {
        let mut rest = self.path.split('.');
        for segment in path {
            let pattern = rest.next()?;
            if pattern != NAME && pattern != segment {
                return None;
            }
        }
        Some(rest)
    }
}

/// Segment of a path that stands for any name.
pub const NAME: &str = "NAME";

/// Result of looking a path up in the table of keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KnownPath {
    /// The path is a key.
    Key(&'static ConfigKey),
    /// The path is a table with known keys in it.
    Table,
    /// The path is neither a key nor a table.
    Unknown,
}

/// Looks a path up.
pub fn look_up(path: &[String]) -> KnownPath {
    let mut known = KnownPath::Unknown;
    for key in KEYS {
        match key.below(path).map(|mut rest| rest.next()) {
            Some(None) => return KnownPath::Key(key),
            Some(Some(_)) => known = KnownPath::Table,
            None => {}
        }
    }
    known
}

/// Returns the keys that a table can hold.
pub fn children(path: &[String]) -> Vec<&'static str> {
    let mut children = Vec::new();
    for key in KEYS {
        if let Some(child) = key.below(path).and_then(|mut rest| rest.next())
            && child != NAME
            && !children.contains(&child)
        {
            children.push(child);
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn paths_are_found() {
        assert!(matches!(look_up(&path("backends.files.command")), KnownPath::Key(_)));
        assert_eq!(look_up(&path("mcp.protocol.audit.sinks")), KnownPath::Table);
        assert_eq!(look_up(&path("backends.files")), KnownPath::Table);
        assert_eq!(look_up(&path("backends.files.comand")), KnownPath::Unknown);
        assert_eq!(look_up(&path("gateway.drain.x")), KnownPath::Unknown);
        assert_eq!(
            children(&[]),
            [
                "mcp",
                "gateway",
                "backends",
                "rules",
                "tools",
                "permissions",
                "roles",
                "kill_switch",
                "constraints",
                "limits",
                "record",
                "relay",
                "seal",
                "auth",
                "guard"
            ]
        );
        assert_eq!(children(&path("backends.x.tools")), ["include", "exclude"]);
    }

    #[test]
    fn defaults_are_within_their_own_bounds_and_paths_are_unique() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..index].iter().all(|other| other.path != key.path), "{}", key.path);
            match key.kind {
                KeyKind::Count { default, min, max } => assert!((min..=max).contains(&default)),
                KeyKind::Seconds { default: Some(default), max } => {
                    assert!((LEAST_SECONDS..=max).contains(&default));
                }
                KeyKind::Fraction(default) => assert!((0.0..=1.0).contains(&default)),
                KeyKind::Choice { built, default, .. } => assert!(built.contains(&default)),
                _ => {}
            }
        }
    }
}
