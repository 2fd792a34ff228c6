//! One line of a listing: what is known about a file, and how it is written down.

use std::cmp::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, Stat};
use serde::Serialize;
use signalbox_wire::timestamp;

use super::accounts::Accounts;

/// What kind of thing an entry is, in the order in which a listing by type shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A folder.
    Directory,
    /// A regular file, or something this system has no word for.
    File,
    /// A symbolic link, which is shown and not followed.
    Symlink,
    /// A Unix socket.
    Socket,
    /// A named pipe.
    Pipe,
    /// A block or character device.
    Device,
}

impl Kind {
    /// The words for the kinds, in the order of GO-2.
    pub(super) const WORDS: [(&'static str, Kind); 6] = [
        ("file", Kind::File),
        ("directory", Kind::Directory),
        ("symlink", Kind::Symlink),
        ("socket", Kind::Socket),
        ("pipe", Kind::Pipe),
        ("device", Kind::Device),
    ];

    /// The kind that the file system gives.
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

/// What a listing can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortKey {
    /// The last part of the path.
    Name,
    /// Bytes.
    Size,
    /// Time of the last change.
    Modified,
    /// Kind.
    Type,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its own name.
    pub(super) name: String,
    /// Its path, beginning as the caller's path began.
    pub(super) path: String,
    /// Its kind.
    pub(super) kind: Kind,
    /// Its size in bytes.
    pub(super) size: u64,
    permissions: String,
    modified: SystemTime,
    accessed: SystemTime,
    user: u32,
    group: u32,
    target: Option<String>,
}

impl Entry {
    /// An entry from what the file system says; `target` is what a link points to.
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

    /// Order by `key`; the path settles ties, so that a listing has one order only.
    pub(super) fn compare(&self, other: &Entry, key: SortKey) -> Ordering {
        let by_key = match key {
            SortKey::Name => self.name.cmp(&other.name),
            SortKey::Size => self.size.cmp(&other.size),
            SortKey::Modified => self.modified.cmp(&other.modified),
            SortKey::Type => self.kind.cmp(&other.kind),
        };
        by_key.then_with(|| self.path.cmp(&other.path))
    }

    /// The entry as it is sent.
    pub(super) fn render(self, accounts: &Accounts) -> RenderedEntry {
        RenderedEntry {
            name: self.name,
            path: self.path,
            kind: self.kind,
            size: self.size,
            permissions: self.permissions,
            modified: written(self.modified),
            owner: accounts.user(self.user),
            group: accounts.group(self.group),
            accessed: written(self.accessed),
            symlink_target: self.target,
        }
    }
}

/// An entry with the field names of G-8 and GO-3.
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

/// Numbers in a `Stat` have other types on other systems.
fn convert<From: TryInto<To>, To>(value: From) -> Option<To> {
    value.try_into().ok()
}

fn moment(seconds: Option<i64>, nanos: Option<u32>) -> SystemTime {
    let seconds = seconds.unwrap_or(0);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.and_then(|base| base.checked_add(Duration::from_nanos(nanos.unwrap_or(0).into()))).unwrap_or(UNIX_EPOCH)
}

/// Nine letters as `ls` writes them, such as `rw-r--r--`.
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

fn written(time: SystemTime) -> String {
    timestamp::rfc3339(timestamp::seconds_of(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g_8_permissions_read_like_ls() {
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
        assert_eq!(written(moment(Some(-1), Some(500_000_000))), "1969-12-31T23:59:59Z");
        assert_eq!(moment(None, None), UNIX_EPOCH);
        assert_eq!(written(moment(Some(i64::MIN), Some(0))), "0000-01-01T00:00:00Z");
        assert_eq!(moment(Some(i64::MAX), Some(u32::MAX)), UNIX_EPOCH, "what cannot be held is not kept");
    }
}
