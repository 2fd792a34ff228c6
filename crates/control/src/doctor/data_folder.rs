//! Data folder: permissions, free space, length of the path.

use super::finding::Finding;
use rustix::fs::{Access, access, statvfs};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

const CHECK: &str = "data folder";
/// Free space in bytes below which something will soon fail.
const LITTLE: u64 = 100 * 1024 * 1024;
/// Free space in bytes below which nothing can be written.
const NOTHING: u64 = 1024 * 1024;
/// Maximum length of the path of a Unix socket, less the name of the socket.
const SOCKET_ROOM: usize = 107 - "/run/4194304-16.sock".len();

/// Checks that the folder can be written, has free space, and is private.
pub(super) fn check(path: &Path) -> Vec<Finding> {
    let shown = path.display().to_string();
    let other = "choose another with `--data-dir DIR` or `gateway.data_dir`";
    if path.as_os_str().len() > SOCKET_ROOM {
        let found =
            "its path is too long for a control socket, so `signalbox status` will not see a process that uses it";
        return vec![Finding::warning(CHECK, found, format!("choose a shorter one: {other}")).at(shown)];
    }
    let Some(nearest) = path
        .ancestors()
        .map(|one| if one.as_os_str().is_empty() { Path::new(".") } else { one })
        .find(|one| one.exists())
    else {
        return vec![Finding::problem(CHECK, "no folder above it exists", other).at(shown)];
    };
    if !nearest.is_dir() {
        let found = format!("{} is not a folder", nearest.display());
        return vec![Finding::problem(CHECK, found, other).at(shown)];
    }
    if access(nearest, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let found = format!("this user may not write to {}", nearest.display());
        return vec![Finding::problem(CHECK, found, format!("give the user write access, or {other}")).at(shown)];
    }
    let mut findings = vec![room(nearest, path.exists()).at(&shown)];
    let mode = path.metadata().map_or(0, |metadata| metadata.mode());
    if mode & 0o022 != 0 {
        let found = format!("other users may write to it (mode {:03o})", mode & 0o777);
        findings.push(Finding::warning(CHECK, found, format!("remove their access: `chmod 700 {shown}`")).at(&shown));
    }
    findings
}

fn room(folder: &Path, exists: bool) -> Finding {
    let state = if exists { "it can be written" } else { "it does not exist yet and will be created" };
    let Ok(system) = statvfs(folder) else {
        return Finding::note(CHECK, format!("{state}; the system does not report the free space"));
    };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let found = format!("{state}; free: {} MiB", free / (1024 * 1024));
    let advice = "make room on the disk, or choose another folder with `--data-dir DIR`";
    match free {
        ..NOTHING => Finding::problem(CHECK, format!("the disk is full; {found}"), advice),
        NOTHING..LITTLE => Finding::warning(CHECK, format!("the disk is nearly full; {found}"), advice),
        _ => Finding::ok(CHECK, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    #[test]
    fn a_folder_that_can_be_made_is_fine_and_one_below_a_file_is_not() {
        let root = tempfile::tempdir().unwrap();
        let fine = check(&root.path().join("a/b"));
        assert!(fine[0].severity < Severity::Problem && fine[0].found.contains("will be created"), "{fine:?}");
        std::fs::write(root.path().join("file"), "").unwrap();
        let file = check(&root.path().join("file/x"));
        assert_eq!(file[0].severity, Severity::Problem);
        assert!(file[0].advice.as_deref().unwrap().contains("--data-dir"));
        let long = check(&root.path().join("x".repeat(120)));
        assert!(long[0].found.contains("too long"), "{long:?}");
    }
}
