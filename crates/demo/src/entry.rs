//! Entry of a directory listing.

use std::cmp::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, Stat};
use serde::Serialize;
use signalbox_wire::timestamp;

use super::accounts::Accounts;

/// Type of an entry, in the sort order of listings by type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Directory,
    /// Regular file, or a type that this system does not know.
    File,
    /// Symbolic link, which is listed but not followed.
    Symlink,
    Socket,
    /// Named pipe (FIFO), as `mkfifo` creates it.
    Pipe,
    /// Block or character device.
    Device,
}

impl Kind {
    /// Names of the types, in the order of the tool's schema.
    pub(super) const WORDS: [(&'static str, Kind); 6] = [
        ("file", Kind::File),
        ("directory", Kind::Directory),
        ("symlink", Kind::Symlink),
        ("socket", Kind::Socket),
        ("pipe", Kind::Pipe),
        ("device", Kind::Device),
    ];

    /// Reads the type from file status.
    pub(super) fn from_stat(stat: &Stat) -> Kind {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::Socket => Kind::Socket,
            FileType::Fifo => Kind::Pipe,
            FileType::BlockDevice | FileType::CharacterDevice => Kind::Device,
            FileType::RegularFile | FileType::Unknown => Kind::File,
        }
    }
}

/// Sort key of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortKey {
    /// Last component of the path.
    Name,
    Size,
    /// Time of the last modification.
    Modified,
    /// Type of the entry.
    Type,
}

/// Listed file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Path, starting like the path that the caller requested.
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) size: u64,
    permissions: String,
    modified: SystemTime,
    accessed: SystemTime,
    user: u32,
    group: u32,
    target: Option<String>,
}

impl Entry {
    /// Creates an entry from file status. `target` is the target of a symbolic link.
    pub(super) fn new(name: String, path: String, stat: &Stat, target: Option<String>) -> Entry {
        Entry {
            name,
            path,
            kind: Kind::from_stat(stat),
            size: convert(stat.st_size).unwrap_or(0),
            permissions: permissions(Mode::from_raw_mode(stat.st_mode)),
            modified: moment(convert(stat.st_mtime), convert(stat.st_mtime_nsec)),
            accessed: moment(convert(stat.st_atime), convert(stat.st_atime_nsec)),
            user: stat.st_uid,
            group: stat.st_gid,
            target,
        }
    }

    /// Compares by `key`, then by path, so that the order is total.
    pub(super) fn compare(&self, other: &Entry, key: SortKey) -> Ordering {
        let by_key = match key {
            SortKey::Name => self.name.cmp(&other.name),
            SortKey::Size => self.size.cmp(&other.size),
            SortKey::Modified => self.modified.cmp(&other.modified),
            SortKey::Type => self.kind.cmp(&other.kind),
        };
        by_key.then_with(|| self.path.cmp(&other.path))
    }

    /// Converts the entry to its wire format.
    pub(super) fn render(self, accounts: &Accounts) -> RenderedEntry {
        RenderedEntry {
            name: self.name,
            path: self.path,
            kind: self.kind,
            size: self.size,
            permissions: self.permissions,
            modified: rfc3339(self.modified),
            owner: accounts.user(self.user),
            group: accounts.group(self.group),
            accessed: rfc3339(self.accessed),
            symlink_target: self.target,
        }
    }
}

/// Entry in wire format. The field names are part of the tool's output schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct RenderedEntry {
    name: String,
    path: String,
    #[serde(rename = "type")]
    kind: Kind,
    size: u64,
    permissions: String,
    modified: String,
    owner: String,
    group: String,
    accessed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    symlink_target: Option<String>,
}

/// Converts a number of `Stat`, whose types depend on the platform.
fn convert<From: TryInto<To>, To>(value: From) -> Option<To> {
    value.try_into().ok()
}

fn moment(seconds: Option<i64>, nanos: Option<u32>) -> SystemTime {
    let seconds = seconds.unwrap_or(0);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.and_then(|base| base.checked_add(Duration::from_nanos(nanos.unwrap_or(0).into()))).unwrap_or(UNIX_EPOCH)
}

/// Formats permissions like `ls`, such as `rw-r--r--`.
fn permissions(mode: Mode) -> String {
    let triple = |read: Mode, write: Mode, run: Mode, special: Mode, letter: char| {
        let last = match (mode.contains(run), mode.contains(special)) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        };
        let first = if mode.contains(read) { 'r' } else { '-' };
        let second = if mode.contains(write) { 'w' } else { '-' };
        [first, second, last]
    };
    [
        triple(Mode::RUSR, Mode::WUSR, Mode::XUSR, Mode::SUID, 's'),
        triple(Mode::RGRP, Mode::WGRP, Mode::XGRP, Mode::SGID, 's'),
        triple(Mode::ROTH, Mode::WOTH, Mode::XOTH, Mode::SVTX, 't'),
    ]
    .concat()
    .into_iter()
    .collect()
}

fn rfc3339(time: SystemTime) -> String {
    timestamp::rfc3339(timestamp::seconds_of(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves G-8.
    #[test]
    fn permissions_read_like_ls() {
        for (bits, text) in [
            (0o644, "rw-r--r--"),
            (0o755, "rwxr-xr-x"),
            (0, "---------"),
            (0o4755, "rwsr-xr-x"),
            (0o2644, "rw-r-Sr--"),
            (0o1777, "rwxrwxrwt"),
        ] {
            assert_eq!(permissions(Mode::from_bits_truncate(bits)), text);
        }
    }

    #[test]
    fn moments_before_the_epoch_and_beyond_all_time() {
        assert_eq!(rfc3339(moment(Some(-1), Some(500_000_000))), "1969-12-31T23:59:59Z");
        assert_eq!(moment(None, None), UNIX_EPOCH);
        assert_eq!(rfc3339(moment(Some(i64::MIN), Some(0))), "0000-01-01T00:00:00Z");
        assert_eq!(moment(Some(i64::MAX), Some(u32::MAX)), UNIX_EPOCH, "what cannot be held is not kept");
    }
}
