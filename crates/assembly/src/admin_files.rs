//! Tells the audit log of changes to the files of administration: keys, users, grants and switches, whoever wrote them. A command
//! that runs beside the gateway, an editor and another process all leave their mark there.

use crate::auditing::Auditing;
use crate::auth_file::{AuthFile, FileStamp};
use crate::grants::GrantFile;
use crate::key_file::KeyFile;
use crate::permissions::SwitchFile;
use crate::user_file::UserFile;
use serde_json::{Value, json};
use signalbox_audit::{AdminAction, AdminOrigin, AdminOutcome};
use signalbox_engine::lock::LockResultExt as _;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Mutex;

/// The entries of a file, by name, without secrets.
type Entries = BTreeMap<String, Value>;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unreadable(String);

impl Unreadable {
    fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// A file that is looked at.
#[derive(Copy, Clone)]
struct Kind {
    /// What an entry of it is called in records.
    noun: &'static str,
    file: &'static str,
    load: fn(&Path) -> Result<Entries, Unreadable>,
}

const KINDS: [Kind; 4] = [
    Kind { noun: "key", file: "keys.json", load: keys },
    Kind { noun: "user", file: "users.json", load: users },
    Kind { noun: "grant", file: "grants.json", load: grants },
    Kind { noun: "switch", file: "switches.json", load: switches },
];

#[derive(Debug, Default)]
struct Seen {
    stamp: Option<FileStamp>,
    entries: Entries,
}

/// Contents of the files at the last look.
#[derive(Debug)]
pub(crate) struct AdminFiles(Mutex<[Seen; KINDS.len()]>);

impl AdminFiles {
    /// Reads all of them. What is there already is not told.
    pub fn new(data_dir: &Path) -> Self {
        let seen = KINDS.map(|kind| Seen {
            stamp: AuthFile::of(data_dir, kind.file).stamp(),
            entries: (kind.load)(data_dir).unwrap_or_default(),
        });
        Self(Mutex::new(seen))
    }

    /// True if one of them was written since it was last looked at. Nothing is read.
    pub fn have_news(&self, data_dir: &Path) -> bool {
        let seen = self.0.lock().unpoisoned();
        KINDS.iter().zip(&*seen).any(|(kind, seen)| AuthFile::of(data_dir, kind.file).stamp() != seen.stamp)
    }

    /// Tells what changed. Blocks.
    pub fn tell(&self, data_dir: &Path, audit: &Auditing) {
        let mut all = self.0.lock().unpoisoned();
        for (kind, seen) in KINDS.iter().zip(all.iter_mut()) {
            let file = AuthFile::of(data_dir, kind.file);
            let stamp = file.stamp();
            if stamp == seen.stamp {
                continue;
            }
            seen.stamp = stamp;
            let owner = std::fs::metadata(file.path())
                .map_or_else(|_| "unknown".to_owned(), |one| format!("uid:{}", one.uid()));
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

/// Tells each entry that came, changed or went.
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
        // It is no secret, and of no use to those who read records.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 31, point 16.
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
