//! The files that rules name, read through a port: this crate opens none itself.

/// Where the files that rules name are read.
pub trait Files {
    /// The text of a file that a rule names, relative to the file of the rule. No more than `most` bytes are read.
    ///
    /// # Errors
    /// Why it cannot be read, in words that go behind the name of the file.
    fn read(&self, name: &str, most: usize) -> Result<String, String>;
}

/// Rules that come from no file, beside which there is nothing.
#[derive(Copy, Clone, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str, _: usize) -> Result<String, String> {
        Err("these rules come from no file, so that there is none beside it; write the result into the rule".to_owned())
    }
}
