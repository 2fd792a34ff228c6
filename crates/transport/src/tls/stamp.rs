//! What files looked like when they were read.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

/// Differs from a later one if any of the files was written or replaced in between. Links are followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stamp(Vec<Option<Look>>);

/// What one file looked like.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Look {
    place: (u64, u64),
    length: u64,
    written: Option<SystemTime>,
}

impl Stamp {
    /// Looks at the files.
    pub(super) fn of<'a>(files: impl IntoIterator<Item = &'a Path>) -> Self {
        let look = |file: &Path| {
            let found = std::fs::metadata(file).ok()?;
            Some(Look { place: (found.dev(), found.ino()), length: found.len(), written: found.modified().ok() })
        };
        Self(files.into_iter().map(look).collect())
    }
}
