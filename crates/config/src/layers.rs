//! Layers above the file: the `SIGNALBOX_*` variables, and above them the flags.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::{self, ConfigError, ConfigPlace, Note, Problem, Warning};
use super::listen::ListenAddr;
use super::loops::INSIDE;
use super::{Config, LogVerbosity, RecordConfig};
use signalbox_wire::closest::closest;

const LISTEN: &str = "SIGNALBOX_LISTEN";
const DATA_DIR: &str = "SIGNALBOX_DATA_DIR";
const LOG_LEVEL: &str = "SIGNALBOX_LOG_LEVEL";
const CONFIG: &str = "SIGNALBOX_CONFIG";
/// Defaults of `--url` and `--key`, which the command line reads itself.
const URL: &str = "SIGNALBOX_URL";
const KEY: &str = "SIGNALBOX_KEY";
/// Credential of the client of `signalbox stdio`, which that command reads itself.
pub const STDIO_TOKEN: &str = "SIGNALBOX_STDIO_TOKEN";

/// Every variable that is read.
pub const VARIABLES: &[&str] = &[LISTEN, DATA_DIR, LOG_LEVEL, CONFIG, URL, KEY, STDIO_TOKEN];

/// Settings that override the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overrides {
    /// Address of `--listen` or `SIGNALBOX_LISTEN`.
    pub listen: Option<ListenAddr>,
    /// Folder of `--data-dir` or `SIGNALBOX_DATA_DIR`.
    pub data_dir: Option<PathBuf>,
    /// Level of `--log-level` or `SIGNALBOX_LOG_LEVEL`.
    pub log_level: Option<LogVerbosity>,
    /// Recording for commands that build a configuration of their own, such as `wrap --rules` and `proxy --rules`.
    pub record: Option<RecordConfig>,
}

impl Overrides {
    /// Lays these settings over `lower`: `flags.over(environment)`.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        Self {
            listen: self.listen.or(lower.listen),
            data_dir: self.data_dir.or(lower.data_dir),
            log_level: self.log_level.or(lower.log_level),
            record: self.record.or(lower.record),
        }
    }

    pub(super) fn apply(&self, config: &mut Config) {
        if let Some(listen) = self.listen {
            config.listen.host = listen.host;
            config.listen.port = listen.port;
        }
        if let Some(data_dir) = &self.data_dir {
            config.data_dir.clone_from(data_dir);
        }
        if let Some(log_level) = self.log_level {
            config.log_level = log_level;
        }
        if let Some(record) = &self.record {
            // Such a command has a server of its own. A baseline recorded from the configured servers does not apply to
            // it.
            config.record = RecordConfig { baseline: None, ..record.clone() };
        }
    }
}

/// Settings found in the environment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Environment {
    /// `SIGNALBOX_CONFIG`: the file to use if no `-c` is given.
    pub config: Option<PathBuf>,
    /// Settings that override the file.
    pub overrides: Overrides,
    /// Names of `SIGNALBOX_*` variables without a meaning. They are no error: Kubernetes sets `SIGNALBOX_PORT` and
    /// others for a service called `signalbox`.
    pub unknown: Vec<String>,
}

impl Environment {
    /// Reads the `SIGNALBOX_*` variables among `variables` (`std::env::vars_os()`). An empty one counts as not set.
    pub fn read(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, ConfigError> {
        let mut environment = Self::default();
        for (name, value) in variables {
            let name = name.to_string_lossy();
            if name.starts_with("SIGNALBOX_") {
                environment.take(&name, value)?;
            }
        }
        environment.unknown.sort();
        Ok(environment)
    }

    /// Warns of each unknown variable that the configuration file `text` does not mention either.
    pub(super) fn warnings(&self, text: &str) -> impl Iterator<Item = Warning> {
        let unread = self.unknown.iter().filter(move |name| !text.contains(name.as_str()));
        unread.map(|name| Warning {
            place: ConfigPlace::variable(name),
            note: Note::UnknownVariable { suggestion: closest(name, VARIABLES), known: VARIABLES.to_vec() },
        })
    }

    fn take(&mut self, name: &str, value: OsString) -> Result<(), ConfigError> {
        if name == INSIDE {
            return Ok(());
        }
        if !VARIABLES.contains(&name) {
            self.unknown.push(name.to_owned());
            return Ok(());
        }
        if value.is_empty() {
            return Ok(());
        }
        let error = |problem| ConfigError::new(ConfigPlace::variable(name), problem);
        let bad = |expected: &str| {
            error(Problem::BadValue { expected: expected.to_owned(), found: error::shown(&value.to_string_lossy()) })
        };
        match name {
            URL | KEY | STDIO_TOKEN => {}
            CONFIG => self.config = Some(value.into()),
            DATA_DIR => self.overrides.data_dir = Some(value.into()),
            LISTEN => {
                let listen = value.to_string_lossy().parse();
                let listen = listen.map_err(|_| bad("HOST:PORT, like 127.0.0.1:8080"))?;
                self.overrides.listen = Some(listen);
            }
            _ => {
                let level = value.to_string_lossy().parse();
                let expected = error::list(super::keys::LOG_LEVELS);
                self.overrides.log_level = Some(level.map_err(|_| bad(&expected))?);
            }
        }
        Ok(())
    }
}
