//! Access to the root folder, from a requested path to an open directory inside it.
//!
//! The checks run in a fixed order: length, dangerous sequences, canonical form, allow-list (inside the root),
//! block-list, symbolic links. The last check is the opening itself: the directory is opened from the root's own
//! descriptor, one component at a time, never following a link. A path that changes between check and use therefore
//! cannot lead elsewhere. The earlier checks only decide which error a caller gets.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, open, openat, statat};
use rustix::io::Errno;

use super::fault::ToolFault;
use signalbox_embedded::BadArguments;

/// Maximum length of a path in characters.
pub(super) const MAX_PATH: usize = 1024;

/// System folders that are never shown, regardless of the root.
const BLOCKED: [&str; 5] = ["/etc", "/root", "/proc", "/sys", "/dev"];

/// Names of folders that hold keys. They are never shown, for any user.
const SENSITIVE: [&str; 2] = [".ssh", ".gnupg"];

/// Flags for opening a directory. Links are not followed, even if one has replaced the directory.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Root folder, held open by its descriptor.
#[derive(Debug)]
pub(super) struct Root {
    given: PathBuf,
    canonical: PathBuf,
    directory: OwnedFd,
    blocked: Vec<PathBuf>,
    sensitive: Vec<PathBuf>,
}

/// Directory that passed every check.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) directory: OwnedFd,
    /// Absolute path of the directory.
    pub(super) absolute: PathBuf,
}

impl Root {
    /// Opens the folder and determines the blocked paths. `home` is the folder with the user's keys.
    pub(super) fn open(path: &Path, home: Option<&Path>) -> io::Result<Root> {
        let canonical = fs::canonicalize(path)?;
        let directory = open(&canonical, DIRECTORY, Mode::empty())?;
        // A block must also apply to the real path of a linked system folder.
        let both = |path: PathBuf| {
            let real = fs::canonicalize(&path).ok().filter(|real| *real != path);
            [Some(path), real].into_iter().flatten()
        };
        let keys = home.into_iter().flat_map(|home| SENSITIVE.map(|name| home.join(name)));
        Ok(Root {
            given: std::path::absolute(path)?,
            directory,
            blocked: BLOCKED.into_iter().map(PathBuf::from).flat_map(both).collect(),
            sensitive: keys.flat_map(both).collect(),
            canonical,
        })
    }

    /// Checks `asked` in the order given in the module docs and opens the directory. Blocks on the file system.
    pub(super) fn locate(&self, asked: &str) -> Result<Place, ToolFault> {
        let parts = self.parts(asked)?;
        let lexical = parts.iter().fold(self.canonical.clone(), |path, part| path.join(part));
        let resolved = fs::canonicalize(&lexical);
        let shown = resolved.as_ref().unwrap_or(&lexical);
        if !shown.starts_with(&self.canonical) {
            return Err(ToolFault::PathNotAllowed);
        }
        // Check the requested path as well as its target, because a link between them may change.
        if let Some(fault) = self.refusal(shown).or_else(|| self.refusal(&lexical)) {
            return Err(fault);
        }
        let directory = self.descend(&parts).map_err(|fault| match fault {
            // A dangling link must fail like one that leads outside. Otherwise the error reveals what exists there.
            ToolFault::SymlinksNotAllowed if resolved.is_err() => ToolFault::PathNotAllowed,
            other => other,
        })?;
        Ok(Place { directory, absolute: lexical })
    }

    /// Returns the reason if nothing at or below this absolute path may be shown.
    pub(super) fn refusal(&self, path: &Path) -> Option<ToolFault> {
        if self.blocked.iter().any(|blocked| is_below(path, blocked)) {
            return Some(ToolFault::PathBlocked);
        }
        let by_name =
            path.components().any(|part| SENSITIVE.iter().any(|name| part.as_os_str().eq_ignore_ascii_case(name)));
        let by_place = self.sensitive.iter().any(|keys| is_below(path, keys));
        (by_name || by_place).then_some(ToolFault::SensitivePathAccess)
    }

    /// Resolves `asked` lexically, including `..`. Used to assess risk; opens nothing.
    pub(super) fn imagine(&self, asked: &str) -> PathBuf {
        let mut path = self.canonical.clone();
        for part in Path::new(asked).components() {
            match part {
                Component::RootDir | Component::Prefix(_) => path = PathBuf::from("/"),
                Component::ParentDir => {
                    path.pop();
                }
                Component::CurDir => {}
                Component::Normal(name) => path.push(name),
            }
        }
        path
    }

    /// Checks the text of a path. Returns its components below the root.
    fn parts(&self, asked: &str) -> Result<Vec<OsString>, ToolFault> {
        let length = asked.chars().count();
        if length > MAX_PATH {
            return Err(ToolFault::PathTooLong { length, limit: MAX_PATH });
        }
        if let Some(sequence) = dangerous(asked) {
            return Err(ToolFault::DangerousPathSequence(sequence));
        }
        if asked.is_empty() || !asked.chars().all(is_plain) {
            let text = "`path` must be one or more of the characters a-z A-Z 0-9 / _ . and -";
            return Err(ToolFault::InvalidArguments(BadArguments(vec![text.to_owned()])));
        }
        let path = Path::new(asked);
        let below = if path.is_absolute() {
            path.strip_prefix(&self.canonical)
                .or_else(|_| path.strip_prefix(&self.given))
                .map_err(|_| ToolFault::PathNotAllowed)?
        } else {
            path
        };
        below
            .components()
            .filter(|part| *part != Component::CurDir)
            .map(|part| match part {
                Component::Normal(name) => Ok(name.to_owned()),
                _ => Err(ToolFault::PathNotAllowed),
            })
            .collect()
    }

    fn descend(&self, parts: &[OsString]) -> Result<OwnedFd, ToolFault> {
        let mut current = open_directory(self.directory.as_fd(), Path::new("."))?;
        for part in parts {
            current = open_directory(current.as_fd(), Path::new(part))?;
        }
        Ok(current)
    }
}

/// Opens the directory `name` in `parent`. Fails for links and files.
pub(super) fn open_directory(parent: BorrowedFd<'_>, name: &Path) -> Result<OwnedFd, ToolFault> {
    openat(parent, name, DIRECTORY, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => ToolFault::PathNotFound,
        Errno::LOOP | Errno::NOTDIR => match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink => ToolFault::NotADirectory,
            _ => ToolFault::SymlinksNotAllowed,
        },
        other => ToolFault::Unreadable(other.kind()),
    })
}

/// Returns the first sequence that only serves to escape the root. A leading `./` is allowed.
fn dangerous(path: &str) -> Option<&'static str> {
    let climbs = |part: &str| part.len() > 1 && part.bytes().all(|byte| byte == b'.');
    if path.contains('\0') {
        Some("a NUL character")
    } else if path.contains('\\') {
        Some("a backslash")
    } else if path.contains('%') {
        Some("percent-encoding")
    } else if path.split('/').any(climbs) {
        Some("a component made of dots that would climb")
    } else if path.contains('~') {
        Some("a tilde")
    } else if path.contains('$') {
        Some("a dollar sign")
    } else if path.chars().any(char::is_control) {
        Some("a control character")
    } else {
        None
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "/_.-".contains(character)
}

/// Returns `true` if `path` is `ancestor` or below it. Ignores case, because some file systems do.
pub(super) fn is_below(path: &Path, ancestor: &Path) -> bool {
    let mut parts = path.components();
    ancestor
        .components()
        .all(|wanted| parts.next().is_some_and(|part| part.as_os_str().eq_ignore_ascii_case(wanted.as_os_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Folder;
    use std::os::unix::fs::symlink;

    fn locate(root: &Path, asked: &str) -> Result<PathBuf, ToolFault> {
        let root = Root::open(root, None).expect("the root opens");
        root.locate(asked).map(|place| place.absolute)
    }

    /// Proves GO-4.
    #[test]
    fn paths_inside_the_root_are_found_however_they_are_written() {
        let folder = Folder::new();
        folder.file("src/deep/x.rs");
        let real = fs::canonicalize(folder.path()).expect("it exists");
        let absolute = real.join("src").display().to_string();
        for asked in ["./src", "src", "src/", "src//", "././src", "./src/.", absolute.as_str()] {
            assert_eq!(locate(folder.path(), asked), Ok(real.join("src")), "{asked}");
        }
        assert_eq!(locate(folder.path(), "."), Ok(real.clone()));
        assert_eq!(locate(folder.path(), "./src/deep"), Ok(real.join("src/deep")));
    }

    /// Proves GO-4.
    #[test]
    fn the_order_of_the_checks_decides_the_answer() {
        let folder = Folder::new();
        let long = format!("/etc/../%2e{}", "a".repeat(MAX_PATH));
        assert!(matches!(locate(folder.path(), &long), Err(ToolFault::PathTooLong { .. })));
        let dangerous = locate(folder.path(), "/etc/../ä");
        assert!(matches!(dangerous, Err(ToolFault::DangerousPathSequence(_))));
        assert_eq!(locate(folder.path(), "/etc/passwd"), Err(ToolFault::PathNotAllowed));
        assert_eq!(locate(folder.path(), "/no/such/place"), Err(ToolFault::PathNotAllowed));
        assert!(matches!(locate(folder.path(), "a b"), Err(ToolFault::InvalidArguments(_))));
        assert!(matches!(locate(folder.path(), ""), Err(ToolFault::InvalidArguments(_))));
    }

    /// Proves GO-4.
    #[test]
    fn blocked_folders_stay_shut_when_the_root_holds_them() {
        let root = Path::new("/");
        for blocked in ["/etc", "etc", "/root/x", "/proc/self", "./sys", "/dev/no-such-thing", "/ETC"] {
            assert_eq!(locate(root, blocked), Err(ToolFault::PathBlocked), "{blocked}");
        }
        for sensitive in ["/home/a/.ssh", "/home/a/.gnupg/x", "/srv/.SSH"] {
            assert_eq!(locate(root, sensitive), Err(ToolFault::SensitivePathAccess), "{sensitive}");
        }
    }

    /// Proves GO-4.
    #[test]
    fn the_keys_of_the_home_folder_stay_shut_under_another_name() {
        let folder = Folder::new();
        folder.file("vault/keys/id");
        symlink("vault/keys", folder.path().join(".ssh")).expect("a link");
        let real = fs::canonicalize(folder.path()).expect("it exists");
        let root = Root::open(&real, Some(&real)).expect("the root opens");
        let fault = root.locate("./vault/keys").map(|place| place.absolute);
        assert_eq!(fault, Err(ToolFault::SensitivePathAccess));
        assert!(root.locate("./vault").is_ok());
        folder.file("src/x");
        symlink("src", folder.path().join(".gnupg")).expect("a link");
        let fault = root.locate(".gnupg").map(|place| place.absolute);
        assert_eq!(fault, Err(ToolFault::SensitivePathAccess), "wherever it leads");
    }

    /// Proves GO-4.
    #[test]
    fn links_are_refused_and_dangling_ones_tell_nothing() {
        let folder = Folder::new();
        folder.file("src/x.rs");
        for (target, name) in [("src", "inside"), ("/usr", "outside"), ("/no/such", "dangling"), ("loop", "loop")] {
            symlink(target, folder.path().join(name)).expect("a link");
        }
        assert_eq!(locate(folder.path(), "inside"), Err(ToolFault::SymlinksNotAllowed));
        for outward in ["outside", "outside/bin", "outside/none", "dangling", "dangling/x", "loop"] {
            assert_eq!(locate(folder.path(), outward), Err(ToolFault::PathNotAllowed), "{outward}");
        }
        assert_eq!(locate(folder.path(), "src/x.rs"), Err(ToolFault::NotADirectory));
        assert_eq!(locate(folder.path(), "src/x.rs/y"), Err(ToolFault::NotADirectory));
        assert_eq!(locate(folder.path(), "none"), Err(ToolFault::PathNotFound));
    }

    #[test]
    fn a_link_that_appears_after_the_checks_is_not_followed() {
        let folder = Folder::new();
        symlink("/usr", folder.path().join("late")).expect("a link");
        let root = Root::open(folder.path(), None).expect("the root opens");
        let skipped_checks = root.descend(&["late".into()]).map(|_| ());
        assert_eq!(skipped_checks, Err(ToolFault::SymlinksNotAllowed));
    }

    #[test]
    fn the_root_must_be_a_folder() {
        let folder = Folder::new();
        folder.file("plain");
        assert!(Root::open(&folder.path().join("plain"), None).is_err());
        assert!(Root::open(&folder.path().join("none"), None).is_err());
    }
}
