//! Reads rules: `[[rules]]` in the configuration itself, and files of their own.

use super::check::Faults;
use super::error::{ConfigError, ConfigPlace, Problem};
use super::read::Table;
use signalbox_rules::{Files, OutsideFileError, RuleError, RuleSet};
use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a file of rules, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

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

/// Reason why rules could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// A file cannot be read.
    #[error("{}: cannot read the rules: {why}", .file.display())]
    Read {
        /// Path of the file.
        file: PathBuf,
        /// Message of the system.
        why: String,
    },
    /// The content of a file is not a set of rules.
    #[error(transparent)]
    Rules(#[from] RuleError),
}

/// Reads the files that rules name, relative to their own file, and remembers their paths.
struct Beside<'a> {
    folder: &'a Path,
    read: &'a RefCell<Vec<PathBuf>>,
}

impl Files for Beside<'_> {
    fn read(&self, name: &str, most: usize) -> Result<String, OutsideFileError> {
        let file = self.folder.join(name);
        if !std::fs::metadata(&file)?.is_file() {
            return Err(OutsideFileError::NoFile);
        }
        let mut bytes = Vec::new();
        // One byte above the limit shows that the file is too large.
        let end = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        std::fs::File::open(&file)?.take(end).read_to_end(&mut bytes)?;
        if bytes.len() > most {
            return Err(OutsideFileError::TooLarge { most });
        }
        let text = String::from_utf8(bytes).map_err(|_| OutsideFileError::NoText)?;
        let mut read = self.read.borrow_mut();
        if !read.contains(&file) {
            read.push(file);
        }
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

fn text(file: &Path) -> Result<String, RulesError> {
    let bad = |why: String| RulesError::Read { file: file.to_owned(), why };
    let length = std::fs::metadata(file).map_err(|error| bad(error.to_string()))?.len();
    if length > LARGEST {
        return Err(bad(format!("it has {length} bytes; at most {LARGEST} are allowed")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
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
