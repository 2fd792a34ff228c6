//! TOML file of trusted public keys.

use serde::{Deserialize, Serialize};
use signalbox_wire::timestamp;

use crate::key_set::{KeyConflict, KeySet, TrustedKey, UnknownRole};
use crate::signing_key::KeyError;
use crate::verifying_key::VerifyingKey;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Reason why a file is not a set of trusted keys.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeySetError {
    /// The file is not TOML, or a member is missing.
    #[error("{0}")]
    Toml(String),
    /// A public key or its id is invalid.
    #[error("key {id:?}: {why}")]
    Key {
        /// Id of the key.
        id: String,
        /// Reason why it is invalid.
        why: KeyError,
    },
    /// A role is unknown.
    #[error("key {id:?}: {why}")]
    Role {
        /// Id of the key.
        id: String,
        /// Name that is not a role.
        why: UnknownRole,
    },
    /// A time cannot be parsed.
    #[error("key {id:?}: {text:?} is no moment like 2026-01-01T00:00:00Z")]
    Time {
        /// Id of the key.
        id: String,
        /// Text in place of the time.
        text: String,
    },
    /// The file contains a key twice.
    #[error(transparent)]
    Conflict(#[from] KeyConflict),
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "key")]
    keys: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    name: String,
    public_key: String,
    roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    valid_from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    valid_until: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaces: Option<String>,
}

/// Parses the text of a key set file.
///
/// # Errors
/// The first error, with the key that it concerns.
pub fn read_key_set(text: &str) -> Result<KeySet, KeySetError> {
    let file: File = toml::from_str(text).map_err(|error| KeySetError::Toml(error.to_string()))?;
    let mut keys = KeySet::new();
    for entry in file.keys {
        keys.add(entry.read()?)?;
    }
    Ok(keys)
}

/// Formats trusted keys as the text of a file.
///
/// # Errors
/// If the TOML library fails.
pub fn write_key_set(keys: &KeySet) -> Result<String, KeySetError> {
    let file = File { keys: keys.iter().map(Entry::of).collect() };
    toml::to_string(&file).map_err(|error| KeySetError::Toml(error.to_string()))
}

impl Entry {
    fn read(self) -> Result<TrustedKey, KeySetError> {
        let id = &self.id;
        let bad_key = |why| KeySetError::Key { id: id.clone(), why };
        let key = VerifyingKey::from_hex(&self.public_key).and_then(|key| key.named(id)).map_err(bad_key)?;
        let role = |name: &String| name.parse().map_err(|why| KeySetError::Role { id: id.clone(), why });
        let time = |text: &Option<String>| text.as_ref().map(|text| seconds(id, text)).transpose();
        Ok(TrustedKey {
            key,
            roles: self.roles.iter().map(role).collect::<Result<_, _>>()?,
            valid_from: time(&self.valid_from)?,
            valid_until: time(&self.valid_until)?,
            revoked_at: time(&self.revoked_at)?,
            name: self.name,
            replaces: self.replaces,
        })
    }

    fn of(key: &TrustedKey) -> Self {
        let time = |seconds: Option<i64>| seconds.map(timestamp::rfc3339);
        Self {
            id: key.key.id().to_owned(),
            name: key.name.clone(),
            public_key: key.key.to_hex(),
            roles: key.roles.iter().map(ToString::to_string).collect(),
            valid_from: time(key.valid_from),
            valid_until: time(key.valid_until),
            revoked_at: time(key.revoked_at),
            replaces: key.replaces.clone(),
        }
    }
}

fn seconds(id: &str, text: &str) -> Result<i64, KeySetError> {
    timestamp::parse_rfc3339(text)
        .and_then(|nanos| i64::try_from(nanos / NANOS_PER_SECOND).ok())
        .ok_or_else(|| KeySetError::Time { id: id.to_owned(), text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_set::{KeyRole, TrustError};

    const FILE: &str = r#"[[key]]
id = "ada-1"
name = "ada"
public_key = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
roles = ["client", "gateway"]
valid_from = "2026-01-01T00:00:00Z"
valid_until = "2027-01-01T00:00:00Z"
revoked_at = "2026-06-01T00:00:00Z"
replaces = "ada-0"
"#;

    #[test]
    fn a_file_is_read_and_written_alike() {
        let keys = read_key_set(FILE).unwrap();
        assert_eq!(write_key_set(&keys).unwrap(), FILE);
        let at = |now| keys.trusted("ada-1", &[KeyRole::Client], now).map(|key| key.name.clone());
        assert_eq!(at(1_767_225_600), Ok("ada".to_owned()));
        assert_eq!(at(1_780_272_000), Err(TrustError::Revoked("ada-1".to_owned())));
        assert_eq!(read_key_set("").unwrap(), KeySet::new());
    }

    #[test]
    fn every_mistake_is_told_with_its_key() {
        for (from, to, expected) in [
            ("3d40", "zz40", "key \"ada-1\": that is no Ed25519 key"),
            ("\"gateway\"", "\"king\"", "key \"ada-1\": a key is trusted as"),
            ("2026-06-01T", "June", "key \"ada-1\": \"June00:00:00Z\" is no moment"),
            ("replaces", "replaced", "unknown field `replaced`"),
            ("ada-1", "a b", "key \"a b\": the id of a key"),
        ] {
            let error = read_key_set(&FILE.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let twice = read_key_set(&[FILE, FILE].concat()).unwrap_err();
        assert_eq!(twice.to_string(), "the same key is there with the id \"ada-1\"");
    }
}
