//! Reads a folder of Cedar policies.

use signalbox_govern::policy::{BundleError, Policies};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of policy files.
pub const MAX_POLICY_FILES: usize = 1_000;
/// Maximum size of all policies together, in bytes.
pub const MAX_POLICY_BYTES: usize = 8 * 1024 * 1024;

/// Folder of policies, read as a whole.
#[derive(Debug, Clone)]
pub struct PolicyFolder {
    /// Path of the folder.
    pub folder: PathBuf,
    /// Its files, as (name, text), in the order of their names.
    pub files: Vec<(String, String)>,
    /// Policies compiled from these files.
    pub policies: Arc<Policies>,
}

impl PartialEq for PolicyFolder {
    fn eq(&self, other: &Self) -> bool {
        self.folder == other.folder && self.files == other.files
    }
}

impl Eq for PolicyFolder {}

impl PolicyFolder {
    /// Reads and compiles all policies of a folder.
    ///
    /// # Errors
    /// Returns the first problem. None of the policies is used then.
    pub fn read(folder: &Path) -> Result<Self, PolicyFolderError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |error: std::io::Error| PolicyFolderError::Unreadable { path, error: error.to_string() }
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable(folder))? {
            let path = entry.map_err(unreadable(folder))?.path();
            if path.extension().is_some_and(|extension| extension == "cedar") {
                paths.push(path);
            }
            if paths.len() > MAX_POLICY_FILES {
                return Err(PolicyFolderError::TooMany { path: folder.to_owned() });
            }
        }
        paths.sort();
        let (mut files, mut left) = (Vec::new(), MAX_POLICY_BYTES);
        for path in paths {
            let size = std::fs::metadata(&path).map_err(unreadable(&path))?.len();
            let taken = usize::try_from(size).ok().and_then(|size| left.checked_sub(size));
            left = taken.ok_or_else(|| PolicyFolderError::TooMany { path: folder.to_owned() })?;
            let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
            let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            files.push((name, text));
        }
        let policies = Arc::new(Policies::load(&files)?);
        Ok(Self { folder: folder.to_owned(), files, policies })
    }

    /// Returns the paths to watch for changes: the folder, and every file in it.
    pub fn watched(&self) -> impl Iterator<Item = PathBuf> {
        let files = self.files.iter().map(|(name, _)| self.folder.join(name));
        std::iter::once(self.folder.clone()).chain(files)
    }
}

/// Reason why a folder of policies cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFolderError {
    /// The folder, or a file in it, cannot be read.
    #[error("{} cannot be read: {error}", .path.display())]
    Unreadable {
        /// Path that cannot be read.
        path: PathBuf,
        /// Message of the system.
        error: String,
    },
    /// The folder holds too many or too large files.
    #[error("{} holds more than {MAX_POLICY_FILES} files or {MAX_POLICY_BYTES} bytes of policies", .path.display())]
    TooMany {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A policy cannot be used.
    #[error(transparent)]
    Policy(#[from] BundleError),
}
