//! Data folder: creates it and checks that other users cannot tamper with it.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Mode of folders that only their owner may use.
const PRIVATE: u32 = 0o700;

/// Reason why the data folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the data folder {} cannot be used: {error}; choose another with `--data-dir DIR`", path.display())]
pub struct DataDirError {
    path: PathBuf,
    error: io::Error,
}

/// Path of a data folder that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// Creates the folder and its missing parents.
    ///
    /// # Errors
    /// If it cannot be created, or another user could replace files in it.
    pub fn prepare(path: &Path) -> Result<Self, DataDirError> {
        create(path)
            .and_then(|()| closed_to_others(path))
            .map_err(|error| DataDirError { path: path.to_owned(), error })?;
        Ok(Self(path.to_owned()))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the file of the last known lists.
    #[must_use]
    pub fn catalog(&self) -> PathBuf {
        self.0.join("catalog.json")
    }

    /// Returns the folder of the sessions that outlive the process.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.0.join("sessions")
    }

    /// Returns the folder of the self-signed certificate.
    #[must_use]
    pub fn tls(&self) -> PathBuf {
        self.0.join("tls")
    }

    /// Creates the folder of the control sockets. It is closed to other users even if the data folder is not.
    ///
    /// # Errors
    /// If it cannot be created or closed to others.
    pub fn run(&self) -> Result<PathBuf, DataDirError> {
        let path = run_folder(&self.0);
        let made = create(&path)
            .and_then(|()| no_link(&path))
            .and_then(|()| std::fs::set_permissions(&path, Permissions::from_mode(PRIVATE)));
        match made {
            Ok(()) => Ok(path),
            Err(error) => Err(DataDirError { path, error }),
        }
    }
}

/// Returns the folder of the control sockets in a data folder.
#[must_use]
pub fn run_folder(data_dir: &Path) -> PathBuf {
    data_dir.join("run")
}

fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE).create(path)
}

/// Refuses a folder of another user, or one that is writable for everyone.
fn closed_to_others(path: &Path) -> io::Result<()> {
    let folder = path.metadata()?;
    let owner = folder.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if folder.mode() & 0o002 != 0 {
        return Err(io::Error::other("every user may write to it (close it with `chmod o-w`)"));
    }
    Ok(())
}

fn no_link(path: &Path) -> io::Result<()> {
    match path.symlink_metadata()?.is_symlink() {
        true => Err(io::Error::other("it is a symbolic link")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_private() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let data_dir = DataDir::prepare(&path).unwrap();
        let run = data_dir.run().unwrap();
        for folder in [&path, &run] {
            assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert!(DataDir::prepare(&path).is_ok());
        std::fs::write(root.path().join("file"), "").unwrap();
        let error = DataDir::prepare(&root.path().join("file/x")).unwrap_err().to_string();
        assert!(error.contains("--data-dir"), "{error}");
    }

    #[test]
    fn a_folder_in_which_others_may_write_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        let error = DataDir::prepare(&open).unwrap_err().to_string();
        assert!(error.contains("every user may write to it"), "{error}");
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        let data_dir = DataDir::prepare(&open).unwrap();
        std::os::unix::fs::symlink(root.path(), open.join("run")).unwrap();
        let error = data_dir.run().unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }
}
