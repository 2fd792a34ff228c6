//! Names of users and groups from the local account files.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum number of bytes read of an account file. Ids beyond it are shown as numbers.
const MAX_FILE: u64 = 1 << 20;

/// Names of users and groups by id.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl Accounts {
    /// Reads the system's account files. If one is missing, its ids are shown as numbers.
    pub(super) fn load() -> Accounts {
        Accounts { users: read(Path::new("/etc/passwd")), groups: read(Path::new("/etc/group")) }
    }

    /// Returns the user's name, or the id as text.
    pub(super) fn user(&self, id: u32) -> String {
        self.users.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    /// Returns the group's name, or the id as text.
    pub(super) fn group(&self, id: u32) -> String {
        self.groups.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }
}

fn read(path: &Path) -> HashMap<u32, String> {
    let mut bytes = Vec::new();
    let complete = File::open(path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut bytes));
    match complete {
        Ok(_) => parse(&String::from_utf8_lossy(&bytes)),
        Err(_) => HashMap::new(),
    }
}

/// Parses lines of the form `name:password:number:…`. The first line with an id wins.
fn parse(text: &str) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(_), Some(Ok(id))) = (fields.next(), fields.next(), fields.next().map(str::parse)) {
            names.entry(id).or_insert_with(|| name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_when_known_and_numbers_when_not() {
        let accounts = Accounts {
            users: parse("root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\n# note\nbroken:x:abc:1\n"),
            groups: parse("wheel:x:10:root\n"),
        };
        assert_eq!(accounts.user(0), "root");
        assert_eq!(accounts.user(4_000_000_000), "4000000000");
        assert_eq!(accounts.group(10), "wheel");
        assert_eq!(accounts.group(11), "11");
    }
}
