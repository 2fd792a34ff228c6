//! Reads ignore files, which are kept beside tapes. Each line holds a path or a value pattern; a line that starts with
//! `#` is a comment.

use crate::paths::{PathError, Paths};
use crate::value_patterns::{ValuePattern, ValuePatternError, ValuePatterns};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Places and values left out of comparisons.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct IgnoredPlaces {
    /// Ignored paths, including everything below them.
    pub paths: Paths,
    /// Patterns under which values count as equal: both sides must match the same one.
    pub patterns: ValuePatterns,
}

/// Error in one line of an ignore file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IgnoreLineError {
    /// The line is not a path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The line is not a value pattern.
    #[error(transparent)]
    Pattern(#[from] ValuePatternError),
}

/// Reasons why an ignore file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum IgnoreFileError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The file exceeds the size limit.
    #[error("{}: a file of paths may have {MAX_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    /// A line is neither a path nor a value pattern.
    #[error("{}, line {line}: {error}", path.display())]
    Line {
        path: PathBuf,
        /// Line number, starting at 1.
        line: usize,
        error: IgnoreLineError,
    },
}

/// Adds the entries of an ignore file to `places`.
///
/// # Errors
/// If the file cannot be read, or a line is not a path, a pattern, a comment or empty.
pub fn add(path: &Path, places: &mut IgnoredPlaces) -> Result<(), IgnoreFileError> {
    let io = |error| IgnoreFileError::Io { path: path.to_owned(), error };
    let mut text = String::new();
    File::open(path).map_err(io)?.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(io)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(IgnoreFileError::TooLarge(path.to_owned()));
    }
    read(&text, places).map_err(|(line, error)| IgnoreFileError::Line { path: path.to_owned(), line, error })
}

/// Adds the lines of a text to `places`.
///
/// # Errors
/// The number of the invalid line, and its error.
pub fn read(text: &str, places: &mut IgnoredPlaces) -> Result<(), (usize, IgnoreLineError)> {
    let lines = text.lines().map(str::trim).enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let added = match ValuePattern::read(line) {
            Some(pattern) => pattern.and_then(|pattern| places.patterns.add(pattern)).map_err(IgnoreLineError::from),
            None => places.paths.add(line).map_err(IgnoreLineError::from),
        };
        added.map_err(|error| (index + 1, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_one_a_line_between_comments() {
        let mut places = IgnoredPlaces::default();
        read("# volatile\n\n/**/timestamp\r\n  /result/content/*/text/@json/id  \n", &mut places).unwrap();
        assert_eq!(places.paths.to_string(), "/**/timestamp\n/result/content/*/text/@json/id\n");
        assert_eq!(read("/a\nb", &mut places), Err((2, PathError::NoSlash("b".to_owned()).into())));
        assert_eq!(read("/a ~ b", &mut places), Err((1, ValuePatternError::Shape.into())));
        assert_eq!(places.patterns, ValuePatterns::default());
        read("/took ~ <number>", &mut places).unwrap();
        assert_eq!(places.patterns.fitting(&["took".to_owned()], &serde_json::json!(7)), Some(0));
    }

    #[test]
    fn a_file_is_named_with_the_line_that_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.ignore");
        std::fs::write(&file, "/a\n/b~\n").unwrap();
        let error = add(&file, &mut IgnoredPlaces::default()).unwrap_err().to_string();
        assert!(error.contains("x.ignore, line 2:"), "{error}");
        std::fs::write(&file, "#".repeat(MAX_BYTES as usize + 1)).unwrap();
        assert!(matches!(add(&file, &mut IgnoredPlaces::default()), Err(IgnoreFileError::TooLarge(_))));
        assert!(matches!(add(folder.path(), &mut IgnoredPlaces::default()), Err(IgnoreFileError::Io { .. })));
    }
}
