//! Every key of the configuration file, once.
//!
//! The parser refuses what is not in this table, takes types, bounds and defaults from it, and the reference page is
//! printed from it; so the three cannot say different things.

pub use crate::key_parts::{FOREIGN_KEYS, LOG_LEVELS};
pub use crate::key_table::KEYS;

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfigKey {
    /// Where it is; `NAME` stands for any name.
    pub path: &'static str,
    /// What it takes.
    pub kind: KeyKind,
    /// Whether it can be used.
    pub state: KeyState,
    /// What it is for.
    pub meaning: &'static str,
}

/// What a key takes, with its bounds and default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeyKind {
    /// A string, perhaps with a default (empty: none).
    Text(&'static str),
    /// One of a few words.
    Choice {
        /// What can be used.
        built: &'static [&'static str],
        /// What a later version will have.
        later: &'static [&'static str],
        /// The default (empty: none).
        default: &'static str,
    },
    /// A boolean and its default.
    Flag(bool),
    /// A time with its unit, such as `"30s"`, or a number of seconds, whole or not.
    Seconds {
        /// The default, if there is one.
        default: Option<f64>,
        /// The most that makes sense.
        max: f64,
    },
    /// A part of the whole, and its default.
    Fraction(f64),
    /// A whole number.
    Count {
        /// The default.
        default: u64,
        /// The least allowed.
        min: u64,
        /// The most allowed.
        max: u64,
    },
    /// A whole number that is a bound; without one there is no bound.
    Bound {
        /// The least allowed.
        min: u64,
        /// The most allowed.
        max: u64,
    },
    /// What random numbers begin with; there is no default.
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

/// Whether a key can be used in this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It works.
    Built,
    /// It belongs to a cargo feature.
    Feature {
        /// The feature.
        name: &'static str,
        /// What it gives, and its verb.
        what: &'static str,
        /// Whether this program was built with it.
        built: bool,
    },
}

impl KeyKind {
    /// What belongs here, with its article and bounds, for messages and the reference.
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

/// The largest seed: the largest whole number that TOML has.
pub const MOST_SEED: u64 = i64::MAX.cast_unsigned();

/// The shortest time that can be asked for: every duration is above zero.
pub const LEAST_SECONDS: f64 = 0.001;

impl ConfigKey {
    pub(crate) const fn of_feature(mut self, name: &'static str, what: &'static str, built: bool) -> Self {
        self.state = KeyState::Feature { name, what, built };
        self
    }

    /// What follows `path` in this key's path, if it lies below or at it.
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

/// Stands for any name in a path.
pub const NAME: &str = "NAME";

/// What the table knows of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KnownPath {
    /// It is a key.
    Key(&'static ConfigKey),
    /// It is a table with known keys in it.
    Table,
    /// Nothing.
    Unknown,
}

/// Look a path up.
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

/// The keys that a table can hold.
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
                "auth"
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
