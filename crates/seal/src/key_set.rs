//! Trusted public keys, with their roles and validity.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::verifying_key::VerifyingKey;

/// Role of a key: the kinds of data it may sign.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum KeyRole {
    /// Signs the requests that it sends.
    Client,
    /// Signs the responses that it sends.
    Server,
    /// Signs requests and responses that it forwards, and the names that it changes in them.
    Gateway,
    /// Signs tapes and audit logs.
    Recorder,
}

/// Error for a name that is not a role.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a key is trusted as `client`, `server`, `gateway` or `recorder`, not as {0:?}")]
pub struct UnknownRole(pub String);

impl KeyRole {
    /// All roles, in order of definition.
    pub const ALL: [Self; 4] = [Self::Client, Self::Server, Self::Gateway, Self::Recorder];

    /// Returns the name of the role in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Gateway => "gateway",
            Self::Recorder => "recorder",
        }
    }
}

impl fmt::Display for KeyRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KeyRole {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

/// Trusted public key with its validity. Times are in seconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrustedKey {
    /// The key, with the id that signatures name.
    pub key: VerifyingKey,
    /// Principal of the owner, which a valid signature proves.
    pub name: String,
    /// Roles in which the key may sign.
    pub roles: Vec<KeyRole>,
    /// Start of validity; `None` for no start.
    pub valid_from: Option<i64>,
    /// End of validity, exclusive; `None` for no end.
    pub valid_until: Option<i64>,
    /// Time of revocation: from then on the key may be compromised.
    pub revoked_at: Option<i64>,
    /// Id of the key that it replaces.
    pub replaces: Option<String>,
}

impl TrustedKey {
    /// Creates a key that is trusted in these roles without a time limit.
    #[must_use]
    pub fn new(key: VerifyingKey, name: &str, roles: &[KeyRole]) -> Self {
        let (name, roles) = (name.to_owned(), roles.to_vec());
        Self { key, name, roles, valid_from: None, valid_until: None, revoked_at: None, replaces: None }
    }
}

/// Reason why a key is not trusted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TrustError {
    /// The set does not contain the key.
    #[error("the key {0:?} is not known")]
    Unknown(String),
    /// The key was revoked.
    #[error("the key {0:?} was revoked")]
    Revoked(String),
    /// The validity of the key has not begun.
    #[error("the key {0:?} is not valid yet")]
    NotYetValid(String),
    /// The validity of the key has ended.
    #[error("the key {0:?} is no longer valid")]
    Expired(String),
    /// The key does not have the required role.
    #[error("the key {id:?} is not trusted as {}", .roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(" or "))]
    Role {
        /// Id of the key.
        id: String,
        /// Roles of which one is required.
        roles: Vec<KeyRole>,
    },
}

/// Error when a key cannot be added to a set.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyConflict {
    /// Another key has this id.
    #[error("there is another key with the id {0:?}")]
    Id(String),
    /// The set contains the same key under another id. It could be revoked under one id and stay trusted under the
    /// other.
    #[error("the same key is there with the id {0:?}")]
    SameKey(String),
}

/// Set of trusted keys, by id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeySet {
    keys: BTreeMap<String, TrustedKey>,
}

impl KeySet {
    /// Creates an empty set, which trusts no key.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key to the set.
    ///
    /// # Errors
    /// If the set already contains the id or the key.
    pub fn add(&mut self, key: TrustedKey) -> Result<(), KeyConflict> {
        if let Some(same) = self.keys.values().find(|known| known.key == key.key) {
            return Err(KeyConflict::SameKey(same.key.id().to_owned()));
        }
        if self.keys.contains_key(key.key.id()) {
            return Err(KeyConflict::Id(key.key.id().to_owned()));
        }
        self.keys.insert(key.key.id().to_owned(), key);
        Ok(())
    }

    /// Returns a key by its id, whether it is valid or not.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&TrustedKey> {
        self.keys.get(id)
    }

    /// Iterates over all keys in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &TrustedKey> {
        self.keys.values()
    }

    /// Removes a key. Returns true if the set contained it.
    pub fn remove(&mut self, id: &str) -> bool {
        self.keys.remove(id).is_some()
    }

    /// Revokes a key from `at` on. An earlier revocation stays in force.
    ///
    /// # Errors
    /// If the set does not contain the key.
    pub fn revoke(&mut self, id: &str, at: i64) -> Result<(), TrustError> {
        let key = self.keys.get_mut(id).ok_or_else(|| TrustError::Unknown(shown(id)))?;
        key.revoked_at = Some(key.revoked_at.map_or(at, |earlier| earlier.min(at)));
        Ok(())
    }

    /// Revokes all keys of this name from `at` on. Returns the ids of those that were not revoked before.
    pub fn revoke_name(&mut self, name: &str, at: i64) -> Vec<String> {
        let good = |key: &&mut TrustedKey| key.name == name && key.revoked_at.is_none_or(|earlier| earlier > at);
        let revoke = |key: &mut TrustedKey| {
            key.revoked_at = Some(at);
            key.key.id().to_owned()
        };
        self.keys.values_mut().filter(good).map(revoke).collect()
    }

    /// Replaces a key by a new one with the same name and roles. Both are trusted from `at` until `overlap_until`.
    ///
    /// # Errors
    /// If the old key does not exist, or the new one already does.
    pub fn rotate(&mut self, old: &str, new: VerifyingKey, at: i64, overlap_until: i64) -> Result<(), RotateError> {
        let known = self.keys.get(old).ok_or_else(|| TrustError::Unknown(shown(old)))?;
        let until = known.valid_until.map_or(overlap_until, |earlier| earlier.min(overlap_until));
        let mut fresh = TrustedKey::new(new, &known.name, &known.roles);
        fresh.valid_from = Some(at);
        fresh.replaces = Some(old.to_owned());
        self.add(fresh)?;
        if let Some(known) = self.keys.get_mut(old) {
            known.valid_until = Some(until);
        }
        Ok(())
    }

    /// Returns the key with this id, if it is trusted in one of these roles at `now` (seconds since 1970).
    ///
    /// # Errors
    /// The reason why it is not trusted.
    pub fn trusted(&self, id: &str, roles: &[KeyRole], now: i64) -> Result<&TrustedKey, TrustError> {
        let key = self.keys.get(id).ok_or_else(|| TrustError::Unknown(shown(id)))?;
        if key.revoked_at.is_some_and(|at| now >= at) {
            return Err(TrustError::Revoked(shown(id)));
        }
        if key.valid_from.is_some_and(|from| now < from) {
            return Err(TrustError::NotYetValid(shown(id)));
        }
        if key.valid_until.is_some_and(|until| now >= until) {
            return Err(TrustError::Expired(shown(id)));
        }
        if !roles.iter().any(|role| key.roles.contains(role)) {
            return Err(TrustError::Role { id: shown(id), roles: roles.to_vec() });
        }
        Ok(key)
    }
}

/// Error when a key cannot be rotated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RotateError {
    /// The old key does not exist.
    #[error(transparent)]
    Old(#[from] TrustError),
    /// The new key cannot be added.
    #[error(transparent)]
    New(#[from] KeyConflict),
}

/// Truncates an id from outside to a length that is safe in an error.
fn shown(id: &str) -> String {
    id.chars().take(128).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signing_key::SigningKey;

    fn public(seed: u8, id: &str) -> VerifyingKey {
        SigningKey::from_seed(&[seed; 32]).unwrap().named(id).unwrap().verifying_key().clone()
    }

    #[test]
    fn a_key_is_trusted_in_its_time_and_its_roles() {
        let mut keys = KeySet::new();
        let mut ada = TrustedKey::new(public(1, "ada"), "Ada", &[KeyRole::Client]);
        (ada.valid_from, ada.valid_until) = (Some(10), Some(20));
        keys.add(ada).unwrap();
        let at = |now| keys.trusted("ada", &[KeyRole::Client, KeyRole::Gateway], now).map(|key| key.name.as_str());
        assert_eq!(at(9), Err(TrustError::NotYetValid("ada".to_owned())));
        assert_eq!(at(10), Ok("Ada"));
        assert_eq!(at(19), Ok("Ada"));
        assert_eq!(at(20), Err(TrustError::Expired("ada".to_owned())));
        let error = keys.trusted("ada", &[KeyRole::Server, KeyRole::Gateway], 15).unwrap_err();
        assert_eq!(error.to_string(), "the key \"ada\" is not trusted as server or gateway");
        assert_eq!(keys.trusted("eve", &KeyRole::ALL, 15), Err(TrustError::Unknown("eve".to_owned())));
    }

    #[test]
    fn all_keys_of_a_name_are_revoked_at_once() {
        let mut keys = KeySet::new();
        for (seed, id, name) in [(1, "one", "ada"), (2, "two", "ada"), (3, "three", "ada"), (4, "other", "eve")] {
            keys.add(TrustedKey::new(public(seed, id), name, &[KeyRole::Client])).unwrap();
        }
        keys.revoke("one", 5).unwrap();
        keys.revoke("three", 20).unwrap();
        assert_eq!(keys.revoke_name("ada", 10), ["three", "two"]);
        let revoked = |id: &str| keys.get(id).and_then(|key| key.revoked_at);
        assert_eq!(["one", "two", "three", "other"].map(revoked), [Some(5), Some(10), Some(10), None]);
    }

    #[test]
    fn a_revoked_key_stays_revoked_and_cannot_come_back_under_another_id() {
        let mut keys = KeySet::new();
        keys.add(TrustedKey::new(public(1, "ada"), "Ada", &[KeyRole::Client])).unwrap();
        keys.revoke("ada", 15).unwrap();
        keys.revoke("ada", 30).unwrap();
        assert_eq!(keys.trusted("ada", &KeyRole::ALL, 15), Err(TrustError::Revoked("ada".to_owned())));
        assert!(keys.trusted("ada", &KeyRole::ALL, 14).is_ok());
        let again = TrustedKey::new(public(1, "bob"), "Bob", &KeyRole::ALL);
        assert_eq!(keys.add(again), Err(KeyConflict::SameKey("ada".to_owned())));
        let same_id = TrustedKey::new(public(2, "ada"), "Eve", &KeyRole::ALL);
        assert_eq!(keys.add(same_id), Err(KeyConflict::Id("ada".to_owned())));
    }

    #[test]
    fn a_rotated_key_is_trusted_for_a_while_beside_the_new_one() {
        let mut keys = KeySet::new();
        keys.add(TrustedKey::new(public(1, "ada"), "Ada", &[KeyRole::Client])).unwrap();
        keys.rotate("ada", public(2, "ada-2"), 100, 200).unwrap();
        let at = |id: &str, now| keys.trusted(id, &[KeyRole::Client], now).is_ok();
        assert_eq!([at("ada", 99), at("ada", 199), at("ada", 200)], [true, true, false]);
        assert_eq!([at("ada-2", 99), at("ada-2", 100), at("ada-2", 300)], [false, true, true]);
        assert_eq!(keys.get("ada-2").unwrap().replaces.as_deref(), Some("ada"));
        assert_eq!(
            keys.clone().rotate("eve", public(3, "x"), 0, 0).unwrap_err().to_string(),
            "the key \"eve\" is not known"
        );
    }
}
