//! Records changes to the administration files in the audit log: API keys, users, grants, switches and signing keys. A
//! command that runs beside the gateway, an editor and another process all change these files.

use crate::auditing::Auditing;
use crate::auth_file::{AuthFile, FileStamp};
use crate::grants::GrantFile;
use crate::key_file::KeyFile;
use crate::permissions::SwitchFile;
use crate::seal_folder::SealFolder;
use crate::user_file::UserFile;
use serde_json::{Value, json};
use signalbox_audit::{AdminAction, AdminOrigin, AdminOutcome};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_seal::TrustedKey;
use signalbox_wire::timestamp;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Mutex;

/// Entries of a file by name, without secrets.
type Entries = BTreeMap<String, Value>;

/// Error text of a file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unreadable(String);

impl Unreadable {
    fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Kind of file that is watched, with how to read it.
#[derive(Copy, Clone)]
struct Kind {
    /// Noun for one entry, as audit records use it.
    noun: &'static str,
    file: fn(&Path) -> AuthFile,
    load: fn(&Path) -> Result<Entries, Unreadable>,
    /// True if entries stay in force while the file is missing, until the gateway has rewritten it.
    outlives_file: bool,
}

const KINDS: [Kind; 5] = [
    Kind { noun: "key", file: |data| AuthFile::of(data, "keys.json"), load: keys, outlives_file: false },
    Kind { noun: "user", file: |data| AuthFile::of(data, "users.json"), load: users, outlives_file: false },
    Kind { noun: "grant", file: |data| AuthFile::of(data, "grants.json"), load: grants, outlives_file: false },
    Kind { noun: "switch", file: |data| AuthFile::of(data, "switches.json"), load: switches, outlives_file: true },
    Kind {
        noun: "seal_key",
        file: |data| AuthFile::at(SealFolder::of(data).key_set_file()),
        load: seal_keys,
        outlives_file: false,
    },
];

impl Kind {
    /// Returns the file's current stamp if it differs from the last one seen.
    fn news(&self, data_dir: &Path, seen: &EntriesSnapshot) -> Option<Option<FileStamp>> {
        let now = (self.file)(data_dir).stamp();
        (now != seen.stamp && (now.is_some() || !self.outlives_file)).then_some(now)
    }
}

#[derive(Debug, Default)]
struct EntriesSnapshot {
    stamp: Option<FileStamp>,
    entries: Entries,
}

/// Owner of the file that was written last, such as `uid:1000`: the only trace of the person who changed it.
pub(crate) fn owner_of_newest<'a>(files: impl IntoIterator<Item = &'a Path>) -> String {
    let found = files.into_iter().filter_map(|file| std::fs::metadata(file).ok());
    let newest = found.max_by_key(|one| (one.mtime(), one.mtime_nsec()));
    newest.map_or_else(|| "unknown".to_owned(), |one| format!("uid:{}", one.uid()))
}

/// Last seen stamp and entries of each file.
#[derive(Debug)]
pub(crate) struct AdminFiles(Mutex<[EntriesSnapshot; KINDS.len()]>);

impl AdminFiles {
    /// Reads all files. Entries that already exist are not reported.
    pub fn new(data_dir: &Path) -> Self {
        let seen = KINDS.map(|kind| EntriesSnapshot {
            stamp: (kind.file)(data_dir).stamp(),
            entries: (kind.load)(data_dir).unwrap_or_default(),
        });
        Self(Mutex::new(seen))
    }

    /// Returns `true` if a file changed since the last look. Compares stamps only and reads no file.
    pub fn have_news(&self, data_dir: &Path) -> bool {
        let seen = self.0.lock().unpoisoned();
        KINDS.iter().zip(&*seen).any(|(kind, seen)| kind.news(data_dir, seen).is_some())
    }

    /// Reads the changed files and records each difference in the audit log. Blocks.
    pub fn tell(&self, data_dir: &Path, audit: &Auditing) {
        let mut all = self.0.lock().unpoisoned();
        for (kind, seen) in KINDS.iter().zip(all.iter_mut()) {
            let Some(stamp) = kind.news(data_dir, seen) else { continue };
            let file = (kind.file)(data_dir);
            seen.stamp = stamp;
            let owner = owner_of_newest([file.path()]);
            let shown = file.path().display().to_string();
            match (kind.load)(data_dir) {
                Ok(entries) => {
                    let before = std::mem::replace(&mut seen.entries, entries);
                    differences(&before, &seen.entries, |word, name, before, after| {
                        let (action, target) = (format!("{}.{word}", kind.noun), name);
                        let (origin, outcome, address) = (AdminOrigin::File, AdminOutcome::Done, None);
                        let who = &owner;
                        audit.administer(&AdminAction {
                            who,
                            address,
                            origin,
                            action: &action,
                            target,
                            before,
                            after,
                            outcome,
                        });
                    });
                }
                Err(why) => audit.administer(&AdminAction {
                    who: &owner,
                    address: None,
                    origin: AdminOrigin::File,
                    action: &format!("{}.read", kind.noun),
                    target: &shown,
                    before: None,
                    after: None,
                    outcome: AdminOutcome::Failed(&why.to_string()),
                }),
            }
        }
    }
}

/// Calls `tell` for each entry that was added, changed or removed.
fn differences(before: &Entries, after: &Entries, mut tell: impl FnMut(&str, &str, Option<&Value>, Option<&Value>)) {
    for (name, now) in after {
        match before.get(name) {
            None => tell("added", name, None, Some(now)),
            Some(old) if old != now => tell("changed", name, Some(old), Some(now)),
            Some(_) => {}
        }
    }
    for (name, old) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
        tell("removed", name, Some(old), None);
    }
}

fn keys(data_dir: &Path) -> Result<Entries, Unreadable> {
    let keys = KeyFile::of(data_dir).load().map_err(Unreadable::of)?;
    let shown = |(id, key): (&str, &signalbox_govern::api_keys::ApiKey)| {
        let mut shown = json!(key);
        // The hash is not secret, but of no use in a record.
        if let Some(members) = shown.as_object_mut() {
            members.remove("sha256");
        }
        (id.to_owned(), shown)
    };
    Ok(keys.iter().map(shown).collect())
}

fn users(data_dir: &Path) -> Result<Entries, Unreadable> {
    let users = UserFile::of(data_dir).load().map_err(Unreadable::of)?;
    Ok(users.iter().map(|(name, user)| (name.to_owned(), json!({"created": user.created}))).collect())
}

fn grants(data_dir: &Path) -> Result<Entries, Unreadable> {
    let grants = GrantFile::of(data_dir).load().map_err(Unreadable::of)?;
    Ok(grants.0.iter().map(|grant| (grant.id.clone(), json!(grant))).collect())
}

fn switches(data_dir: &Path) -> Result<Entries, Unreadable> {
    let switches = SwitchFile::of(data_dir).load().map_err(Unreadable::of)?;
    let name =
        |principal: bool, pattern: &str| if principal { format!("caller {pattern}") } else { pattern.to_owned() };
    Ok(switches.0.iter().map(|switch| (name(switch.principal, &switch.pattern), json!(switch))).collect())
}

fn seal_keys(data_dir: &Path) -> Result<Entries, Unreadable> {
    let keys = SealFolder::of(data_dir).key_set().map_err(Unreadable::of)?;
    let time = |seconds: Option<i64>| seconds.map(timestamp::rfc3339);
    let shown = |key: &TrustedKey| {
        let roles: Vec<&str> = key.roles.iter().map(|role| role.name()).collect();
        let shown = json!({
            "name": key.name,
            "public_key": key.key.to_hex(),
            "roles": roles,
            "valid_from": time(key.valid_from),
            "valid_until": time(key.valid_until),
            "revoked_at": time(key.revoked_at),
            "replaces": key.replaces,
        });
        (key.key.id().to_owned(), shown)
    };
    Ok(keys.iter().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_that_came_changed_or_went_is_told_once() {
        let of = |pairs: &[(&str, u64)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let (before, after): (Entries, Entries) =
            (of(&[("a", 1), ("b", 1), ("c", 1)]), of(&[("a", 1), ("b", 2), ("d", 1)]));
        let mut told = Vec::new();
        differences(&before, &after, |word, name, old, new| {
            told.push(format!("{word} {name} {} {}", old.is_some(), new.is_some()));
        });
        assert_eq!(told, ["changed b true true", "added d false true", "removed c true false"]);
    }
}
