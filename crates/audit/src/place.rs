//! Names of the places that sinks write to. A gap or checkpoint is signed for one of them, so that it cannot stand for
//! records that another place has.

use signalbox_engine::record::StoreError;
use signalbox_seal::{hex, sha256};
use signalbox_store::audit::{AuditDatabase, DatabasePlace};
use std::path::{Path, PathBuf};

/// The place that a sink writes to: a file, or a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SinkPlace {
    /// Name of the sink: `file` or `database`.
    pub sink: &'static str,
    /// Path relative to the data folder, so that the folder can be moved. For a place outside of it, the absolute path,
    /// or the address of the database without user and password.
    pub name: String,
    /// Text by which earlier versions distinguished places.
    former: String,
}

impl SinkPlace {
    /// Returns the place of this file, for the data folder that contains these journals (`DATA/audit/journal`).
    #[must_use]
    pub fn file(path: &Path, journals: &Path) -> Self {
        Self { sink: "file", name: name_of(path, journals), former: path.display().to_string() }
    }

    /// Returns the place of the database at this address, for the data folder that contains these journals.
    ///
    /// # Errors
    /// Fails if the address is invalid.
    pub fn database(url: &str, journals: &Path) -> Result<Self, StoreError> {
        let name = match AuditDatabase::at(url)?.place() {
            DatabasePlace::File(path) => name_of(&path, journals),
            DatabasePlace::Server(address) => address,
        };
        Ok(Self { sink: "database", name, former: hex(&sha256(url.as_bytes())) })
    }

    /// Returns the place of a file by the name that gaps and checkpoints have for it.
    #[must_use]
    pub fn named_file(name: &str) -> Self {
        Self { sink: "file", name: name.to_owned(), former: name.to_owned() }
    }

    /// Returns the mark of the place in the names and texts of cursors.
    pub(crate) fn mark(&self) -> String {
        hex(&sha256(format!("{}\0{}", self.sink, self.name).as_bytes()))
    }

    /// Returns the mark of the place in cursors of earlier versions.
    pub(crate) fn former_mark(&self) -> String {
        hex(&sha256(self.former.as_bytes()))
    }
}

/// Returns the path relative to the data folder of these journals, or else an absolute one with the links in its
/// folders resolved.
fn name_of(path: &Path, journals: &Path) -> String {
    let (path, data) = (resolved(path), journals.parent().and_then(Path::parent));
    let data = data.filter(|data| !data.as_os_str().is_empty()).and_then(|data| data.canonicalize().ok());
    let inside = data.as_ref().and_then(|data| path.strip_prefix(data).ok());
    inside.unwrap_or(&path).display().to_string()
}

/// Returns the absolute path, with links resolved in the folders that exist.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = |folder: &Path| Some(folder.canonicalize().ok()?.join(path.strip_prefix(folder).ok()?));
    path.ancestors().skip(1).find_map(real).unwrap_or(path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data folder that is moved as a whole keeps the names of the places in it; another file has another name.
    #[test]
    fn places_inside_the_data_folder_are_named_from_there() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = |data: &Path, path: &Path| SinkPlace::file(path, &data.join("audit/journal"));
        let own = |data: &Path| place(data, &data.join("audit/audit.log"));
        assert_eq!(own(one.path()).name, "audit/audit.log");
        assert_eq!(own(one.path()).mark(), own(two.path()).mark());
        let outside = place(one.path(), &two.path().join("not there yet/audit.log"));
        assert!(Path::new(&outside.name).is_absolute() && outside.name.ends_with("not there yet/audit.log"));
        std::os::unix::fs::symlink(two.path(), one.path().join("link")).unwrap();
        std::fs::create_dir(two.path().join("not there yet")).unwrap();
        assert_eq!(place(one.path(), &one.path().join("link/not there yet/audit.log")).name, outside.name);
    }

    /// Another password or user of a database is no other place, and neither is in the name.
    #[test]
    fn databases_are_named_without_credentials() {
        let named = |url: &str| SinkPlace::database(url, Path::new("no journals")).unwrap().name;
        let one = named(concat!("postgresql://ann:", "s3cret@db.example:5433/audit"));
        assert_eq!(one, named("postgres://bob@db.example:5433/audit"));
        assert_eq!(one, "postgres://db.example:5433/audit");
        assert_ne!(one, named("postgres://ann@db.example:5433/other"));
        assert!(named("sqlite:audit.db").ends_with("/audit.db"));
    }
}
