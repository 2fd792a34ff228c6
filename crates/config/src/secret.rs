//! Values that must not be printed.

use super::error::{ConfigError, Problem};
use super::read::Table;
use std::fmt;

/// String that `Debug` does not show: the value of a header or of a variable.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value that `Debug` must hide.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hidden")
    }
}

/// Returns the token in the variable that this key names, or `None` if it names none.
pub(super) fn token_from_env(table: &Table<'_>, key: &'static str) -> Result<Option<Secret>, ConfigError> {
    let Some(name) = table.text(key)?.filter(|name| !name.value.is_empty()) else { return Ok(None) };
    let is_token = |token: &String| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let token = (table.document.env)(&name.value).filter(is_token);
    let wanted = "the name of a variable that holds a token without blanks";
    token.map(|token| Some(Secret::new(token))).ok_or_else(|| table.key_error(key, Problem::BadHiddenValue(wanted)))
}
