//! Reads rules: `[[rules]]` in the configuration itself, and files of their own.

use super::error::{ConfigError, ConfigPlace, Problem};
use super::faults::Faults;
use super::read::Table;
use super::rule_files::{Beside, RulesError, folder_of, text};
use signalbox_rules::{RuleError, RuleSet};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rules of a configuration, read and checked.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Files of rules, and files of mock results that the rules name.
    pub files: Vec<PathBuf>,
    /// Rules of all sources, in order.
    pub set: Arc<RuleSet>,
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files && self.set.version() == other.set.version()
    }
}

/// Reads the rules that a configuration holds or names.
pub(super) fn check(root: &Table<'_>) -> Result<Rules, ConfigError> {
    let document = root.document;
    let base = document.file.map_or(Path::new(""), folder_of);
    let texts = root.table("gateway")?.texts("rule_files")?;
    let own = |error: RuleError| ConfigError::new(ConfigPlace::rules(), Problem::Rules(error.into()));
    let read = RefCell::default();
    let (mut sets, mut faults) = (Vec::new(), Faults::default());
    if root.has("rules") {
        let name = document.file.map_or_else(String::new, |file| file.display().to_string());
        let beside = Beside { folder: base, read: &read };
        sets.extend(faults.take(RuleSet::parse_within(&name, document.text, &beside).map_err(own)));
    }
    let mut files = Vec::new();
    for named in &texts {
        let file = base.join(&named.value);
        let text = text(&file).map_err(|error| document.error(&named.path, named.at, Problem::Rules(error)));
        let beside = Beside { folder: folder_of(&file), read: &read };
        let set = text.and_then(|text| RuleSet::parse_beside(&file.display().to_string(), &text, &beside).map_err(own));
        sets.extend(faults.take(set));
        files.push(file);
    }
    faults.none()?;
    let set = Arc::new(RuleSet::merge(sets).map_err(own)?);
    files.append(&mut read.into_inner());
    Ok(Rules { files, set })
}

/// Reads one file of rules by itself.
///
/// # Errors
/// Returns the first problem in the file.
pub fn read_file(file: &Path) -> Result<Rules, RulesError> {
    let read = RefCell::new(vec![file.to_owned()]);
    let beside = Beside { folder: folder_of(file), read: &read };
    let set = RuleSet::parse_beside(&file.display().to_string(), &text(file)?, &beside)?;
    Ok(Rules { files: read.into_inner(), set: Arc::new(set) })
}
