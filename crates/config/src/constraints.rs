//! Reads the table `constraints`: limits on calls that the permissions allow.

use crate::error::{ConfigError, Problem};
use crate::read::Table;
use crate::values::bad;
use signalbox_govern::path_bounds::Folders;
use signalbox_tape::redact::{Action, KeyRule, PatternRule, RedactionSettings, Redactor};

/// Constraints on the calls of tools that match one pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstraintRule {
    /// `BACKEND` or `BACKEND/NAME`, with `*` and `?`.
    pub pattern: String,
    /// Roles whose callers are constrained. Empty for all callers.
    pub roles: Vec<String>,
    /// Names of the arguments that are paths.
    pub path_arguments: Vec<String>,
    /// Folders within which these paths must lie.
    pub folders: Vec<String>,
    /// Values to remove from answers.
    pub redaction: RedactionSettings,
}

/// Checks the table `constraints`.
pub(crate) fn check(table: &Table<'_>) -> Result<Vec<ConstraintRule>, ConfigError> {
    table.entries.iter().map(|entry| one(&entry.key, &table.inside(entry)?)).collect()
}

fn one(pattern: &str, table: &Table<'_>) -> Result<ConstraintRule, ConfigError> {
    let (backend, name) = pattern.split_once('/').unwrap_or((pattern, "*"));
    if backend.is_empty() || name.is_empty() {
        let expected = "a pattern `BACKEND` or `BACKEND/NAME`, with `*` and `?`";
        return Err(table.error(Problem::BadHiddenValue(expected)));
    }
    let values = |key: &str| -> Result<Vec<String>, ConfigError> {
        Ok(table.texts(key)?.into_iter().map(|text| text.value).collect())
    };
    for text in table.texts("folders")? {
        if text.value.is_empty() || Folders::new(std::slice::from_ref(&text.value)).is_err() {
            return Err(bad(table, &text, "a folder like `/srv/work` that does not lead above where it begins"));
        }
    }
    let (path_arguments, folders) = (values("path_arguments")?, values("folders")?);
    if path_arguments.is_empty() != folders.is_empty() {
        let missing = if folders.is_empty() { "folders" } else { "path_arguments" };
        let expected = "`path_arguments` together with `folders`: which arguments have to lie within which folders";
        return Err(table.key_error(missing, Problem::BadHiddenValue(expected)));
    }
    let mut redaction = RedactionSettings::none();
    // Each pattern is compiled alone, so that an error can name it.
    for text in table.texts("redact")? {
        let rule = PatternRule { pattern: text.value.clone(), action: Action::default() };
        let alone = RedactionSettings { patterns: vec![rule.clone()], ..RedactionSettings::none() };
        Redactor::new(&alone, [0; 32]).map_err(|_| bad(table, &text, "a regular expression of a reasonable size"))?;
        redaction.patterns.push(rule);
    }
    for text in table.texts("redact_members")? {
        let rule = KeyRule { name: text.value.clone(), action: Action::default() };
        let alone = RedactionSettings { keys: vec![rule.clone()], ..RedactionSettings::none() };
        Redactor::new(&alone, [0; 32]).map_err(|_| bad(table, &text, "the name of a member"))?;
        redaction.keys.push(rule);
    }
    Ok(ConstraintRule { pattern: pattern.to_owned(), roles: values("roles")?, path_arguments, folders, redaction })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<Vec<ConstraintRule>, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        Ok(Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default())?
            .config
            .permissions
            .constraints)
    }

    #[test]
    fn constraints_are_read_and_what_cannot_be_is_named() {
        assert!(load("").unwrap().is_empty());
        let all = load(
            "[constraints.'files/*']\nroles = ['editor']\npath_arguments = ['path']\nfolders = ['/srv/work']\n\
             redact = ['[0-9]{16}']\nredact_members = ['iban']\n",
        );
        let all = all.unwrap();
        assert_eq!((all[0].pattern.as_str(), all[0].roles.join(" ").as_str()), ("files/*", "editor"));
        assert_eq!((all[0].redaction.patterns.len(), all[0].redaction.keys.len()), (1, 1));
        for (text, told) in [
            ("[constraints.'/x']\nroles = ['a']\n", "constraints"),
            ("[constraints.files]\nfolders = ['/srv']\n", "path_arguments"),
            ("[constraints.files]\npath_arguments = ['path']\n", "folders"),
            ("[constraints.files]\npath_arguments = ['p']\nfolders = ['~/x']\n", "constraints.files.folders"),
            ("[constraints.files]\nredact = ['(']\n", "constraints.files.redact"),
            ("[constraints.files]\nredact_members = ['']\n", "constraints.files.redact_members"),
        ] {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
