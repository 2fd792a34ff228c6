//! A file of paths that do not count, to be kept beside the tapes: one path a line, `#` begins a comment line.

use crate::paths::{PathError, Paths};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Why a file of paths cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IgnoreFileError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is too large to be a list of paths.
    #[error("{}: a file of paths may have {MAX_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    /// A line is not a path.
    #[error("{}, line {line}: {error}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line; the first is 1.
        line: usize,
        /// Why not.
        error: PathError,
    },
}

/// Adds the paths of a file.
///
/// # Errors
/// If it cannot be read, or a line of it is neither a path, nor empty, nor a comment.
pub fn add(path: &Path, paths: &mut Paths) -> Result<(), IgnoreFileError> {
    let io = |error| IgnoreFileError::Io { path: path.to_owned(), error };
    let mut text = String::new();
    File::open(path).map_err(io)?.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(io)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(IgnoreFileError::TooLarge(path.to_owned()));
    }
    read(&text, paths).map_err(|(line, error)| IgnoreFileError::Line { path: path.to_owned(), line, error })
}

/// Adds the paths of a text, or says which line is none.
///
/// # Errors
/// The number of the line, and what is wrong with it.
pub fn read(text: &str, paths: &mut Paths) -> Result<(), (usize, PathError)> {
    let lines = text.lines().map(str::trim).enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        paths.add(line).map_err(|error| (index + 1, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_one_a_line_between_comments() {
        let mut paths = Paths::default();
        read("# volatile\n\n/**/timestamp\r\n  /result/content/*/text/@json/id  \n", &mut paths).unwrap();
        assert_eq!(paths.to_string(), "/**/timestamp\n/result/content/*/text/@json/id\n");
        assert_eq!(read("/a\nb", &mut paths), Err((2, PathError::NoSlash("b".to_owned()))));
    }

    #[test]
    fn a_file_is_named_with_the_line_that_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.ignore");
        std::fs::write(&file, "/a\n/b~\n").unwrap();
        let error = add(&file, &mut Paths::default()).unwrap_err().to_string();
        assert!(error.contains("x.ignore, line 2:"), "{error}");
        std::fs::write(&file, "#".repeat(MAX_BYTES as usize + 1)).unwrap();
        assert!(matches!(add(&file, &mut Paths::default()), Err(IgnoreFileError::TooLarge(_))));
        assert!(matches!(add(folder.path(), &mut Paths::default()), Err(IgnoreFileError::Io { .. })));
    }
}
