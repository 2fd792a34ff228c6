//! Reads files of rules, and the files that rules name.

use signalbox_rules::{Files, OutsideFileError, RuleError};
use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Maximum size of a file of rules, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

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
pub(super) struct Beside<'a> {
    pub folder: &'a Path,
    pub read: &'a RefCell<Vec<PathBuf>>,
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

pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

pub(super) fn text(file: &Path) -> Result<String, RulesError> {
    let bad = |why: String| RulesError::Read { file: file.to_owned(), why };
    let length = std::fs::metadata(file).map_err(|error| bad(error.to_string()))?.len();
    if length > LARGEST {
        return Err(bad(format!("it has {length} bytes; at most {LARGEST} are allowed")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}
