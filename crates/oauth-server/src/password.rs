//! Local users and their passwords, hashed with argon2id.

use crate::moment::hashed;
use crate::reply::OauthRefusal;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum length of a password, in bytes.
pub const MAX_PASSWORD: usize = 1_024;
/// Minimum length of a new password, in characters.
pub const MIN_PASSWORD: usize = 8;
/// Maximum length of a user name.
pub const MAX_USER: usize = 64;

/// Hash for unknown users, which takes as long to verify as that of a known one.
const UNKNOWN_USER_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Error of user management.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The name is invalid.
    #[error("the name of a user is 1 to {MAX_USER} letters, digits, `.`, `_`, `-` and `@`")]
    Name,
    /// The password is too short or too long.
    #[error("a password has at least {MIN_PASSWORD} characters and at most {MAX_PASSWORD} bytes")]
    Password,
    /// The password cannot be hashed.
    #[error("the password cannot be hashed: {0}")]
    Hash(argon2::password_hash::Error),
    /// The file is malformed.
    #[error("the list of users is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
}

/// Local user with a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalUser {
    /// Hash of the password, as a PHC string.
    password: String,
    /// Creation time, in milliseconds since 1970.
    pub created: u64,
}

impl fmt::Debug for LocalUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalUser").field("created", &self.created).finish_non_exhaustive()
    }
}

/// All local users, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LocalUsers {
    users: BTreeMap<String, LocalUser>,
    /// People of providers whose tokens were ended, with the time in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ended: BTreeMap<String, u64>,
}

impl LocalUsers {
    /// Parses the user file.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(text: &str) -> Result<Self, UserError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Serializes the users for the file.
    ///
    /// # Errors
    /// If they cannot be written as JSON.
    pub fn to_text(&self) -> Result<String, UserError> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Iterates over all users.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &LocalUser)> {
        self.users.iter().map(|(name, user)| (name.as_str(), user))
    }

    /// Returns true if the user exists.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.users.contains_key(name)
    }

    /// Returns the creation time of the user's current account, in milliseconds since 1970.
    #[must_use]
    pub fn created(&self, name: &str) -> Option<u64> {
        self.users.get(name).map(|user| user.created)
    }

    /// Returns an identifier of the user's current account. A new password, or a new user of the same name, is a new
    /// account, because the salt of each hash is random.
    #[must_use]
    pub fn account(&self, name: &str) -> Option<String> {
        let user = self.users.get(name)?;
        Some(hashed(&format!("{}:{}", user.created, user.password)))
    }

    /// Adds a user, or changes a password. Slow and memory-intensive.
    ///
    /// # Errors
    /// If the name or the password is invalid.
    pub fn set(&mut self, name: &str, password: &str, salt: &[u8; 16], now: u64) -> Result<(), UserError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'@');
        if name.is_empty() || name.len() > MAX_USER || !name.bytes().all(plain) {
            return Err(UserError::Name);
        }
        if password.chars().count() < MIN_PASSWORD || password.len() > MAX_PASSWORD {
            return Err(UserError::Password);
        }
        let salt = SaltString::encode_b64(salt).map_err(UserError::Hash)?;
        let hash = hasher().hash_password(password.as_bytes(), &salt).map_err(UserError::Hash)?.to_string();
        self.users.insert(name.to_owned(), LocalUser { password: hash, created: now });
        Ok(())
    }

    /// Removes a user. Returns false if there was none.
    pub fn remove(&mut self, name: &str) -> bool {
        self.users.remove(name).is_some()
    }

    /// Ends everything that a person of a provider obtained by signing in before `now`, in milliseconds since 1970.
    pub fn end_person(&mut self, name: &str, now: u64) {
        self.ended.insert(name.to_owned(), now);
    }

    /// Returns the time at which a person's tokens were last ended, in milliseconds since 1970.
    #[must_use]
    pub fn ended(&self, name: &str) -> Option<u64> {
        self.ended.get(name).copied()
    }

    pub(crate) fn ended_people(&self) -> impl Iterator<Item = &str> {
        self.ended.keys().map(String::as_str)
    }

    /// Prepares the verification of a user's password. It takes as long for an unknown user.
    pub(crate) fn check(&self, name: &str, password: &str) -> Result<PasswordCheck, OauthRefusal> {
        if password.len() > MAX_PASSWORD || name.len() > MAX_USER {
            return Err(OauthRefusal::new("invalid_request", "the name or the password is too long"));
        }
        let user = self.users.get(name);
        let hash = user.map_or(UNKNOWN_USER_HASH, |user| &user.password).to_owned();
        Ok(PasswordCheck { hash, password: password.to_owned(), account: self.account(name) })
    }
}

/// Password verification to be run. Slow and memory-intensive.
pub struct PasswordCheck {
    hash: String,
    password: String,
    /// Account of the user, if there is one.
    pub(crate) account: Option<String>,
}

impl fmt::Debug for PasswordCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordCheck").finish_non_exhaustive()
    }
}

impl PasswordCheck {
    /// Verifies the password. Slow.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let checked = PasswordHash::new(&self.hash)
            .and_then(|hash| Argon2::default().verify_password(self.password.as_bytes(), &hash));
        self.account.is_some() && checked.is_ok()
    }
}

/// Returns the hasher: 19 MiB, two passes, one lane, as OWASP recommends. [`UNKNOWN_USER_HASH`] has the same
/// parameters.
fn hasher() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_kept_as_a_hash_by_argon2id() {
        let mut users = LocalUsers::default();
        users.set("ada", "correct horse", &[7; 16], 5).unwrap();
        let text = users.to_text().unwrap();
        assert!(text.contains("$argon2id$v=19$m=19456,t=2,p=1$") && !text.contains("horse"), "{text}");
        let users = LocalUsers::parse(&text).unwrap();
        assert!(users.check("ada", "correct horse").unwrap().is_good());
        assert!(!users.check("ada", "correct hors").unwrap().is_good());
        assert!(!users.check("eve", "correct horse").unwrap().is_good());
        assert!(users.check("ada", &"x".repeat(MAX_PASSWORD + 1)).is_err());
        assert!(!format!("{users:?}{:?}", users.check("ada", "correct horse")).contains("argon2"));
    }

    #[test]
    fn nobodys_hash_is_a_real_one_of_the_same_cost() {
        let hash = PasswordHash::new(UNKNOWN_USER_HASH).unwrap();
        let params = Params::try_from(&hash).unwrap();
        assert_eq!((params.m_cost(), params.t_cost(), params.p_cost()), (19_456, 2, 1));
        assert_eq!(hash.hash.unwrap().len(), 32);
    }

    #[test]
    fn names_and_passwords_have_their_bounds() {
        let mut users = LocalUsers::default();
        for name in ["", "a b", "ä", "a/b", &"a".repeat(MAX_USER + 1)] {
            assert!(matches!(users.set(name, "long enough", &[0; 16], 0), Err(UserError::Name)), "{name}");
        }
        assert!(matches!(users.set("ada", "short", &[0; 16], 0), Err(UserError::Password)));
        assert!(!users.remove("ada"));
    }
}
