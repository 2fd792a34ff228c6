//! Walks a directory tree within a budget of time and file system operations.
//!
//! Every step goes from an open directory to a name inside it and follows no link, so nothing that happens to the tree
//! meanwhile can lead the walk out of it. The budget also bounds memory: an operation yields at most one entry.

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

/// How much a walk may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Longest duration of a call.
    pub(super) time: Duration,
    /// Most operations: a directory opened, a name read, a link read.
    pub(super) operations: u32,
}

/// What to walk.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// How entries' paths begin: the caller's path without its last slashes.
    pub(super) shown: String,
    /// How many levels to show.
    pub(super) depth: u64,
    /// Whether names that begin with a dot are shown and entered.
    pub(super) hidden: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The entries, in the order of the walk: names sorted within each directory, a directory before its contents.
    pub(super) entries: Vec<Entry>,
    /// Whether the budget of operations ran out.
    pub(super) exhausted: bool,
    /// How many directories were shown but not entered: forbidden, unreadable, or changed meanwhile.
    pub(super) skipped: u32,
}

/// Walks from `place` as `plan` says, until done, out of budget, late, or told to `stop`.
pub(super) fn walk(
    root: &Root,
    place: &Place,
    plan: &Plan,
    limits: Limits,
    stop: &AtomicBool,
) -> Result<Found, ToolFault> {
    let mut walker =
        Walker { root, plan, limits, stop, started: Instant::now(), left: limits.operations, found: Found::default() };
    if walker.spend()? {
        let names = walker.names(place.directory.as_fd())?;
        walker.directory(place.directory.as_fd(), names, &plan.shown, &place.absolute, 1)?;
    }
    Ok(walker.found)
}

/// Names as the file system has them, which need not be text.
type Names = Vec<Vec<u8>>;

struct Walker<'a> {
    root: &'a Root,
    plan: &'a Plan,
    limits: Limits,
    stop: &'a AtomicBool,
    started: Instant,
    left: u32,
    found: Found,
}

impl Walker<'_> {
    /// Pays for one operation; false when the budget is gone.
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

    /// The names in a directory, sorted. Hidden ones cost as much as others, or they could be used to waste time.
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

    /// Notes everything in a directory and, while levels are left, what is below it. Recursion is as deep as `depth`.
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

    /// The entry for a name; none if it is gone by now. Its operation was paid for when the name was read.
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

    fn run(folder: &Folder, depth: u64, hidden: bool, limits: Limits) -> Result<Found, ToolFault> {
        let root = Root::open(folder.path(), None).expect("the root opens");
        let place = root.locate(".").expect("the root is there");
        let plan = Plan { shown: ".".to_owned(), depth, hidden };
        walk(&root, &place, &plan, limits, &AtomicBool::new(false))
    }

    fn paths(found: &Found) -> Vec<&str> {
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

    #[test]
    fn go_4_folders_with_keys_are_not_entered() {
        let folder = Folder::new();
        folder.file("home/.ssh/id");
        let found = run(&folder, 10, true, LIMITS).expect("it walks");
        assert_eq!(paths(&found), ["./home", "./home/.ssh"]);
        assert_eq!(found.skipped, 1);
    }

    #[test]
    fn go_5_the_budget_of_operations_cuts_the_list() {
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

    #[test]
    fn go_5_time_runs_out() {
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
