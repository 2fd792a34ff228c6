//! Where rules are: `[[rules]]` in the configuration itself, and files of their own.

use super::error::{ConfigError, Place, Problem};
use super::read::Table;
use signalbox_rules::{RuleError, RuleSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a file of rules.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The rules of a configuration, read and checked.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The files of their own that some were read from.
    pub files: Vec<PathBuf>,
    /// All of them.
    pub set: Arc<RuleSet>,
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files && self.set.version() == other.set.version()
    }
}

/// Why rules could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// A file cannot be read.
    #[error("{}: cannot read the rules: {why}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        why: String,
    },
    /// What a file holds is no set of rules.
    #[error(transparent)]
    Rules(#[from] RuleError),
}

fn text(file: &Path) -> Result<String, RulesError> {
    let bad = |why: String| RulesError::Read { file: file.to_owned(), why };
    let length = std::fs::metadata(file).map_err(|error| bad(error.to_string()))?.len();
    if length > LARGEST {
        return Err(bad(format!("it has {length} bytes; at most {LARGEST} are possible")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// Read the rules that a configuration holds or names.
pub(super) fn check(root: &Table<'_>) -> Result<Rules, ConfigError> {
    let document = root.document;
    let base = document.file.and_then(Path::parent).unwrap_or(Path::new(""));
    let texts = root.table("gateway")?.texts("rule_files")?;
    let own = |error: RuleError| ConfigError::new(Place::rules(), Problem::Rules(error.into()));
    let mut sets = Vec::new();
    if root.has("rules") {
        let name = document.file.map_or_else(String::new, |file| file.display().to_string());
        sets.push(RuleSet::parse_within(&name, document.text).map_err(own)?);
    }
    let mut files = Vec::new();
    for named in &texts {
        let file = base.join(&named.value);
        let text = text(&file).map_err(|error| document.error(&named.path, named.at, Problem::Rules(error)))?;
        sets.push(RuleSet::parse(&file.display().to_string(), &text).map_err(own)?);
        files.push(file);
    }
    let set = Arc::new(RuleSet::merge(sets).map_err(own)?);
    Ok(Rules { files, set })
}

/// Reads one file of rules by itself.
///
/// # Errors
/// What is wrong with it.
pub fn read_file(file: &Path) -> Result<Rules, RulesError> {
    let set = RuleSet::parse(&file.display().to_string(), &text(file)?)?;
    Ok(Rules { files: vec![file.to_owned()], set: Arc::new(set) })
}
