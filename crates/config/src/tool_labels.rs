//! Labels of tools: the tables `[tools."PATTERN"]`.

use super::error::{ConfigError, Problem};
use super::read::Table;
use super::values::{bad, label};
use signalbox_engine::standing::TrustLevel;

/// Labels of the tools that match one pattern.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolLabelRule {
    /// `BACKEND` or `BACKEND/NAME`, with `*` and `?`.
    pub pattern: String,
    /// Categories of these tools.
    pub categories: Vec<String>,
    /// Trust level, if set.
    pub trust: Option<TrustLevel>,
    /// Permissions that a caller needs to call them.
    pub permissions: Vec<String>,
    /// Version of these tools, if set.
    pub version: Option<String>,
}

pub(crate) fn check(tools: &Table<'_>) -> Result<Vec<ToolLabelRule>, ConfigError> {
    tools.entries.iter().map(|entry| rule(&entry.key, &tools.inside(entry)?)).collect()
}

fn rule(pattern: &str, table: &Table<'_>) -> Result<ToolLabelRule, ConfigError> {
    let (backend, name) = pattern.split_once('/').unwrap_or((pattern, "*"));
    if backend.is_empty() || name.is_empty() {
        let expected = "a pattern `BACKEND` or `BACKEND/NAME`, with `*` and `?`";
        return Err(table.error(Problem::BadHiddenValue(expected)));
    }
    let trust = match table.text("trust_level")? {
        None => None,
        Some(text) => Some(
            TrustLevel::of(&text.value)
                .ok_or_else(|| bad(table, &text, "`system`, `verified`, `community` or `untrusted`"))?,
        ),
    };
    let mut permissions = Vec::new();
    for text in table.texts("permissions")? {
        if !is_permission(&text.value) {
            return Err(bad(table, &text, "a permission like `read:filesystem`"));
        }
        permissions.push(text.value);
    }
    let categories = table.texts("categories")?.into_iter().map(|text| label(table, text));
    Ok(ToolLabelRule {
        pattern: pattern.to_owned(),
        categories: categories.collect::<Result<_, _>>()?,
        trust,
        permissions,
        version: table.text("version")?.map(|text| label(table, text)).transpose()?,
    })
}

/// Returns `true` for a permission of the form `VERB:OBJECT` (G-17).
fn is_permission(text: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_graphic());
    text.len() <= 256 && text.split_once(':').is_some_and(|(verb, what)| is_plain(verb) && is_plain(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<Vec<ToolLabelRule>, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        Ok(Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default())?.config.tool_labels)
    }

    /// Beside the labels stand the `tools` of a backend, which are something else.
    /// Proves G-17.
    #[test]
    fn patterns_of_tools_have_labels_in_the_order_of_the_file() {
        assert_eq!(load("").unwrap(), []);
        let labels = load(
            "[backends.files]\ncommand = 'x'\ntools = { include = ['a'] }\n\
             [tools.files]\ncategories = ['filesystem', 'utility']\nversion = '1.0.0'\n\
             [tools.'files/write_*']\ntrust_level = 'untrusted'\npermissions = ['write:filesystem']\n",
        );
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let all = ToolLabelRule {
            pattern: "files".to_owned(),
            categories: texts(&["filesystem", "utility"]),
            version: Some("1.0.0".to_owned()),
            ..ToolLabelRule::default()
        };
        let writing = ToolLabelRule {
            pattern: "files/write_*".to_owned(),
            trust: Some(TrustLevel::Untrusted),
            permissions: texts(&["write:filesystem"]),
            ..ToolLabelRule::default()
        };
        assert_eq!(labels.unwrap(), [all, writing]);
    }
}
