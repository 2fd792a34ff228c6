//! Walks a directory tree within a budget of time and file system operations.
//!
//! Every step goes from an open directory to a name inside it and follows no link, so concurrent changes to the tree
//! cannot lead the walk outside. The budget also bounds memory, because an operation yields at most one entry.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, readlinkat, statat};

use super::entry::{Entry, Kind};
use super::fault::ToolFault;
use super::root::{Place, Root, open_directory};

/// Budget of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum duration of a call.
    pub(super) time: Duration,
    /// Maximum number of operations: opening a directory, reading a name, reading a link.
    pub(super) operations: u32,
}

/// Parameters of a walk.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Prefix of the entries' paths: the requested path without trailing slashes.
    pub(super) shown: String,
    /// Number of levels to list.
    pub(super) depth: u64,
    /// Set to list and enter names that start with a dot.
    pub(super) hidden: bool,
}

/// Result of a walk.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    /// Entries in walk order: names sorted within each directory, a directory before its contents.
    pub(super) entries: Vec<Entry>,
    /// Set if the budget of operations ran out.
    pub(super) exhausted: bool,
    /// Number of directories listed but not entered: forbidden, unreadable, or changed in the meantime.
    pub(super) skipped: u32,
}

/// Walks from `place` until done, out of budget, out of time, or told to `stop`.
pub(super) fn walk(
    root: &Root,
    place: &Place,
    plan: &Plan,
    limits: Limits,
    stop: &AtomicBool,
) -> Result<WalkResult, ToolFault> {
    let mut walker = Walker {
        root,
        plan,
        limits,
        stop,
        started: Instant::now(),
        left: limits.operations,
        found: WalkResult::default(),
    };
    if walker.spend()? {
        let names = walker.names(place.directory.as_fd())?;
        walker.directory(place.directory.as_fd(), names, &plan.shown, &place.absolute, 1)?;
    }
    Ok(walker.found)
}

/// Raw file names, which need not be UTF-8.
type Names = Vec<Vec<u8>>;

struct Walker<'a> {
    root: &'a Root,
    plan: &'a Plan,
    limits: Limits,
    stop: &'a AtomicBool,
    started: Instant,
    left: u32,
    found: WalkResult,
}

impl Walker<'_> {
    /// Spends one operation. Returns `false` if the budget is exhausted.
    fn spend(&mut self) -> Result<bool, ToolFault> {
        self.check_time()?;
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(true)
            }
            None => {
                self.found.exhausted = true;
                Ok(false)
            }
        }
    }

    fn check_time(&self) -> Result<(), ToolFault> {
        if self.stop.load(Ordering::Relaxed) {
            Err(ToolFault::Interrupted)
        } else if self.started.elapsed() >= self.limits.time {
            Err(ToolFault::ExecutionTimeout(self.limits.time))
        } else {
            Ok(())
        }
    }

    /// Returns the sorted names in a directory. Hidden names also cost an operation, so that they cannot be used to
    /// waste time.
    fn names(&mut self, directory: BorrowedFd<'_>) -> Result<Names, ToolFault> {
        let mut names = Vec::new();
        for entry in Dir::read_from(directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if !self.spend()? {
                break;
            }
            if self.plan.hidden || !name.starts_with(b".") {
                names.push(name.to_vec());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Adds the entries of a directory and, up to the maximum depth, of those below it. Recurses at most `depth`
    /// levels.
    fn directory(
        &mut self,
        directory: BorrowedFd<'_>,
        names: Names,
        shown: &str,
        absolute: &Path,
        level: u64,
    ) -> Result<(), ToolFault> {
        for name in names {
            let Some(entry) = self.entry(directory, &name, shown)? else {
                continue;
            };
            let (kind, path) = (entry.kind, entry.path.clone());
            self.found.entries.push(entry);
            if kind == Kind::Directory && level < self.plan.depth && !self.found.exhausted {
                self.enter(directory, OsStr::from_bytes(&name), &path, absolute, level)?;
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        shown: &str,
        parent_path: &Path,
        level: u64,
    ) -> Result<(), ToolFault> {
        let absolute = parent_path.join(name);
        if self.root.refusal(&absolute).is_some() {
            self.found.skipped += 1;
            return Ok(());
        }
        if !self.spend()? {
            return Ok(());
        }
        match self.open(parent, name) {
            Ok((directory, names)) => self.directory(directory.as_fd(), names, shown, &absolute, level + 1),
            Err(fault @ (ToolFault::ExecutionTimeout(_) | ToolFault::Interrupted)) => Err(fault),
            Err(_) => {
                self.found.skipped += 1;
                Ok(())
            }
        }
    }

    fn open(&mut self, parent: BorrowedFd<'_>, name: &OsStr) -> Result<(OwnedFd, Names), ToolFault> {
        let directory = open_directory(parent, Path::new(name))?;
        let names = self.names(directory.as_fd())?;
        Ok((directory, names))
    }

    /// Builds the entry for a name, or returns `None` if it has disappeared. Reading the name already paid for this
    /// operation.
    fn entry(&mut self, directory: BorrowedFd<'_>, name: &[u8], shown: &str) -> Result<Option<Entry>, ToolFault> {
        self.check_time()?;
        let file = OsStr::from_bytes(name);
        let Ok(stat) = statat(directory, file, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(None);
        };
        let target = if Kind::from_stat(&stat) == Kind::Symlink && self.spend()? {
            readlinkat(directory, file, Vec::new()).ok()
        } else {
            None
        };
        let text = String::from_utf8_lossy(name).into_owned();
        let path = format!("{shown}/{text}");
        let target = target.map(|target| target.to_string_lossy().into_owned());
        Ok(Some(Entry::new(text, path, &stat, target)))
    }
}

fn unreadable(errno: rustix::io::Errno) -> ToolFault {
    ToolFault::Unreadable(errno.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Folder;
    use std::os::unix::fs::symlink;

    const LIMITS: Limits = Limits { time: Duration::from_secs(30), operations: 10_000 };

    fn run(folder: &Folder, depth: u64, hidden: bool, limits: Limits) -> Result<WalkResult, ToolFault> {
        let root = Root::open(folder.path(), None).expect("the root opens");
        let place = root.locate(".").expect("the root is there");
        let plan = Plan { shown: ".".to_owned(), depth, hidden };
        walk(&root, &place, &plan, limits, &AtomicBool::new(false))
    }

    fn paths(found: &WalkResult) -> Vec<&str> {
        found.entries.iter().map(|entry| entry.path.as_str()).collect()
    }

    #[test]
    fn levels_and_hidden_names() {
        let folder = Folder::new();
        for file in ["a/b/c/d.txt", "z.txt", ".secret/x", "a/.hidden"] {
            folder.file(file);
        }
        let check = |depth, hidden| run(&folder, depth, hidden, LIMITS).expect("it walks");
        assert_eq!(paths(&check(1, false)), ["./a", "./z.txt"]);
        assert_eq!(paths(&check(3, false)), ["./a", "./a/b", "./a/b/c", "./z.txt"]);
        assert_eq!(paths(&check(2, true)), ["./.secret", "./.secret/x", "./a", "./a/.hidden", "./a/b", "./z.txt"]);
    }

    #[test]
    fn links_are_shown_and_not_entered() {
        let folder = Folder::new();
        folder.file("real/x");
        symlink("/etc", folder.path().join("out")).expect("a link");
        symlink(".", folder.path().join("self")).expect("a link");
        let found = run(&folder, 10, true, LIMITS).expect("it walks");
        assert_eq!(paths(&found), ["./out", "./real", "./real/x", "./self"]);
    }

    /// Proves GO-4.
    #[test]
    fn folders_with_keys_are_not_entered() {
        let folder = Folder::new();
        folder.file("home/.ssh/id");
        let found = run(&folder, 10, true, LIMITS).expect("it walks");
        assert_eq!(paths(&found), ["./home", "./home/.ssh"]);
        assert_eq!(found.skipped, 1);
    }

    /// Proves GO-5.
    #[test]
    fn the_budget_of_operations_cuts_the_list() {
        let folder = Folder::new();
        for n in 0..20 {
            folder.file(&format!("d/{n:02}"));
        }
        let limits = |operations| Limits { operations, ..LIMITS };
        let cut = run(&folder, 3, false, limits(10)).expect("it walks");
        assert!(cut.exhausted);
        assert_eq!(cut.entries.len(), 1 + 7, "two directories and eight names were paid for");
        assert!(!run(&folder, 3, false, limits(23)).expect("it walks").exhausted);
        assert!(run(&folder, 3, false, limits(0)).expect("it walks").exhausted);
    }

    /// Proves GO-5.
    #[test]
    fn a_walk_ends_when_its_time_runs_out() {
        let folder = Folder::new();
        let limits = Limits { time: Duration::ZERO, ..LIMITS };
        let late = run(&folder, 1, false, limits).map(|_| ());
        assert_eq!(late, Err(ToolFault::ExecutionTimeout(Duration::ZERO)));
    }

    #[test]
    fn a_walk_that_nobody_waits_for_stops() {
        let folder = Folder::new();
        let root = Root::open(folder.path(), None).expect("the root opens");
        let place = root.locate(".").expect("the root is there");
        let plan = Plan { shown: ".".to_owned(), depth: 1, hidden: false };
        let stopped = walk(&root, &place, &plan, LIMITS, &AtomicBool::new(true)).map(|_| ());
        assert_eq!(stopped, Err(ToolFault::Interrupted));
    }
}
