//! The files that rules name, read through a port: this crate opens none itself.

/// Where the files that rules name are read.
pub trait Files {
    /// The text of a file that a rule names, relative to the file of the rule. No more than `most` bytes are read.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, name: &str, most: usize) -> Result<String, FileError>;
}

/// Why a file that a rule names cannot be read, in words that follow its name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileError {
    /// The rules were not read from a file, so there is no folder to look in.
    #[error("these rules are not in a file, so a relative path has no base; write the result into the rule")]
    NoneBeside,
    /// The system could not read it; this is its error.
    #[error("{0}")]
    System(String),
    /// It is a folder, a device or the like.
    #[error("not a regular file")]
    NoFile,
    /// It is too large.
    #[error("larger than {most} bytes; split or shorten it")]
    TooLarge {
        /// How large it may be.
        most: usize,
    },
    /// It is not text.
    #[error("not valid UTF-8")]
    NoText,
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error.to_string())
    }
}

/// For rules that are not in a file: there is nothing to read.
#[derive(Copy, Clone, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str, _: usize) -> Result<String, FileError> {
        Err(FileError::NoneBeside)
    }
}
