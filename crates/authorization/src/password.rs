//! Local users and their passwords, which are kept as hashes by argon2id.

use crate::moment::hashed;
use crate::reply::Refusal;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The longest password, in bytes.
pub const MAX_PASSWORD: usize = 1_024;
/// The shortest password of a new user, in characters.
pub const MIN_PASSWORD: usize = 8;
/// The longest name of a user.
pub const MAX_USER: usize = 64;

/// A hash of nobody's password, which takes as long to check as one of a user.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Why there is no such user, or no such file.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// A name that cannot be one.
    #[error("the name of a user is 1 to {MAX_USER} letters, digits, `.`, `_`, `-` and `@`")]
    Name,
    /// A password that is too short or too long.
    #[error("a password has at least {MIN_PASSWORD} characters and at most {MAX_PASSWORD} bytes")]
    Password,
    /// It could not be hashed.
    #[error("the password cannot be hashed: {0}")]
    Hash(argon2::password_hash::Error),
    /// The file is damaged.
    #[error("the list of users is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
}

/// A local user.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalUser {
    /// The hash of the password, as a PHC string.
    password: String,
    /// When it was made, in milliseconds since 1970.
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
    /// People of providers whose tokens were ended, with the time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ended: BTreeMap<String, u64>,
}

impl LocalUsers {
    /// Reads the file.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn parse(text: &str) -> Result<Self, UserError> {
        Ok(serde_json::from_str(text)?)
    }

    /// What the file is to hold.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn to_text(&self) -> Result<String, UserError> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// All users.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &LocalUser)> {
        self.users.iter().map(|(name, user)| (name.as_str(), user))
    }

    /// Whether there is such a user.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.users.contains_key(name)
    }

    /// Time at which the present account of this name began, in milliseconds since 1970.
    #[must_use]
    pub fn created(&self, name: &str) -> Option<u64> {
        self.users.get(name).map(|user| user.created)
    }

    /// Identifies the account that has this name now. Another password, or another user of the same name, is another
    /// account: the salt of the hash is drawn anew for each.
    #[must_use]
    pub fn account(&self, name: &str) -> Option<String> {
        let user = self.users.get(name)?;
        Some(hashed(&format!("{}:{}", user.created, user.password)))
    }

    /// Adds a user, or gives one another password. Takes a while and memory.
    ///
    /// # Errors
    /// If name or password cannot be used.
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

    /// Removes a user. False if there was none.
    pub fn remove(&mut self, name: &str) -> bool {
        self.users.remove(name).is_some()
    }

    /// Ends what a person of a provider got by signing in before this time, in milliseconds since 1970.
    pub fn end_person(&mut self, name: &str, now: u64) {
        self.ended.insert(name.to_owned(), now);
    }

    /// Time at which what a person of a provider had was last ended, in milliseconds since 1970.
    #[must_use]
    pub fn ended(&self, name: &str) -> Option<u64> {
        self.ended.get(name).copied()
    }

    pub(crate) fn ended_people(&self) -> impl Iterator<Item = &str> {
        self.ended.keys().map(String::as_str)
    }

    /// Prepares the check of a user's password, which takes as long if there is no such user.
    pub(crate) fn check(&self, name: &str, password: &str) -> Result<PasswordCheck, Refusal> {
        if password.len() > MAX_PASSWORD || name.len() > MAX_USER {
            return Err(Refusal::new("invalid_request", "the name or the password is too long"));
        }
        let user = self.users.get(name);
        let hash = user.map_or(NOBODY, |user| &user.password).to_owned();
        Ok(PasswordCheck { hash, password: password.to_owned(), account: self.account(name) })
    }
}

/// A password that is to be checked, which takes a while and memory.
pub struct PasswordCheck {
    hash: String,
    password: String,
    /// The account that the password is checked for, if there is one.
    pub(crate) account: Option<String>,
}

impl fmt::Debug for PasswordCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordCheck").finish_non_exhaustive()
    }
}

impl PasswordCheck {
    /// Whether it is the user's password.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let checked = PasswordHash::new(&self.hash)
            .and_then(|hash| Argon2::default().verify_password(self.password.as_bytes(), &hash));
        self.account.is_some() && checked.is_ok()
    }
}

/// 19 MiB, two passes, one lane: what OWASP recommends, and what [`NOBODY`] has.
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
        let hash = PasswordHash::new(NOBODY).unwrap();
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
