//! The credentials that a test has used. What a gateway leaves behind is searched for them when it ends, in every test.
//!
//! Clients and servers of the tests note a credential when they send or give one. A gateway keeps none of them in
//! clear, neither in its data folder nor in its log; the file of the first key for administration is the only one that
//! is made to be read.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::scene::files_holding;

static USED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Anything shorter may stand somewhere by chance.
const SHORTEST: usize = 12;
/// The file that holds the first key for administration.
const ADMIN_KEY: &str = "admin.key";

/// Notes the credential of a header, if it is one that carries credentials.
pub fn note_header(name: &str, value: &str) {
    if ["authorization", "x-api-key"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
        note(value.split_once(' ').map_or(value, |(_, credential)| credential));
    }
}

/// Notes a credential.
pub fn note(credential: &str) {
    // What comes last is the secret of a key and the signature of a token; what is before it may be known.
    let last = credential.rsplit(['.', '_']).next().filter(|part| part.len() >= SHORTEST);
    let secret = last.unwrap_or(credential);
    if secret.len() >= SHORTEST {
        USED.lock().unwrap_or_else(PoisonError::into_inner).insert(secret.to_owned());
    }
}

/// Says where used credentials stand in a data folder or in a log.
pub fn left_in(data_dir: &Path, log: &[String]) -> Vec<String> {
    let used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut left = Vec::new();
    for secret in used.iter() {
        if log.iter().any(|line| line.contains(secret.as_str())) {
            left.push(format!("{secret} in the log"));
        }
        let files = files_holding(data_dir, secret).unwrap_or_default();
        let files = files.iter().filter(|path| !path.ends_with(ADMIN_KEY));
        left.extend(files.map(|path| format!("{secret} in {}", path.display())));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_that_stays_behind_is_found() {
        let folder = tempfile::tempdir().unwrap();
        note_header("Authorization", "Bearer part.of-a-made-up-signature");
        note_header("X-Other", "never-noted-at-all");
        std::fs::write(folder.path().join("tape"), "… of-a-made-up-signature never-noted-at-all").unwrap();
        std::fs::write(folder.path().join(ADMIN_KEY), "of-a-made-up-signature").unwrap();
        let log = ["sent of-a-made-up-signature".to_owned()];
        let left = left_in(folder.path(), &log);
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left[0].ends_with("in the log") && left[1].ends_with("/tape"), "{left:?}");
        assert!(left_in(&folder.path().join("none"), &[]).is_empty());
    }
}
