//! API keys: random, shown once, stored as hashes.
//!
//! A key is `sbx_ID_SECRET`. The id is public and identifies the key. The secret has 256 random bits, of which only the
//! SHA-256 is stored.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use signalbox_engine::standing::TrustLevel;
use signalbox_wire::hex::hex;
use std::collections::BTreeMap;
use std::fmt;

/// Prefix of every key.
pub const PREFIX: &str = "sbx_";
/// Number of random bytes in a key: those of its id, then those of its secret.
pub const RANDOM: usize = ID + 32;
const ID: usize = 6;

/// API key in clear text. Neither its `Debug` output nor an error reveals it.
pub struct ApiKeySecret(String);

impl ApiKeySecret {
    /// Returns the key, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Properties of a key to be created.
#[derive(Clone, Debug, Default)]
pub struct NewKey {
    pub name: String,
    /// Principal on whose behalf the holder calls.
    pub subject: String,
    pub roles: Vec<String>,
    /// Scopes; `None` leaves the key unlimited by scopes.
    pub scopes: Option<Vec<String>>,
    /// Trust level of the holder.
    pub trust: Option<TrustLevel>,
    /// Expiry, in milliseconds since 1970.
    pub expires: Option<u64>,
}

/// API key as stored: a hash of the secret and the holder's properties.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    pub name: String,
    /// Principal on whose behalf the holder calls.
    pub subject: String,
    /// SHA-256 of the secret, in hexadecimal.
    sha256: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Scopes; absent if the key is not limited by scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Trust level of the holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
    /// Creation time, in milliseconds since 1970.
    pub created: u64,
    /// Expiry, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Time of revocation, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
}

impl ApiKey {
    /// Returns the reason why the key is not valid at `now`, if it is not.
    #[must_use]
    pub fn fault(&self, now: u64) -> Option<&'static str> {
        match (self.revoked, self.expires) {
            (Some(_), _) => Some("revoked"),
            (None, Some(expires)) if expires <= now => Some("expired"),
            _ => None,
        }
    }
}

/// Error for a key file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ApiKeyFileError {
    /// The file is not the JSON that this program writes.
    #[error("the file of API keys is damaged: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The hash of a key is not a SHA-256.
    #[error("the file of API keys is damaged: the hash of key `{0}` is not a SHA-256")]
    Hash(String),
    /// The trust level of a key does not exist.
    #[error("the file of API keys is damaged: key `{0}` has an unknown trust level")]
    Trust(String),
}

/// All API keys, by id.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKeys {
    keys: BTreeMap<String, ApiKey>,
}

impl ApiKeys {
    /// Parses the text of a key file.
    ///
    /// # Errors
    /// If [`ApiKeys::to_text`] did not write it.
    pub fn parse(text: &str) -> Result<Self, ApiKeyFileError> {
        let keys: Self = serde_json::from_str(text)?;
        for (id, key) in &keys.keys {
            if key.sha256.len() != 64 || !key.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(ApiKeyFileError::Hash(id.clone()));
            }
            if key.trust.as_deref().is_some_and(|word| TrustLevel::of(word).is_none()) {
                return Err(ApiKeyFileError::Trust(id.clone()));
            }
        }
        Ok(keys)
    }

    /// Serializes the keys for storage. The text contains no secret.
    ///
    /// # Errors
    /// Never in practice: every field can be written as JSON.
    pub fn to_text(&self) -> Result<String, ApiKeyFileError> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// Adds a key made of these random bytes. Returns its id and the secret to show.
    pub fn add(&mut self, new: NewKey, random: &[u8; RANDOM], now: u64) -> (String, ApiKeySecret) {
        let (id, secret) = random.split_at(ID);
        let (id, secret) = (hex(id), URL_SAFE_NO_PAD.encode(secret));
        let key = ApiKey {
            name: new.name,
            subject: new.subject,
            sha256: hash(secret.as_bytes()),
            roles: new.roles,
            scopes: new.scopes,
            trust: new.trust.map(|trust| trust.word().to_owned()),
            created: now,
            expires: new.expires,
            revoked: None,
        };
        let shown = ApiKeySecret(format!("{PREFIX}{id}_{secret}"));
        self.keys.insert(id.clone(), key);
        (id, shown)
    }

    /// Revokes the keys with this id or name. Returns the ids of those that were not revoked before.
    pub fn revoke(&mut self, id_or_name: &str, now: u64) -> Vec<String> {
        let meant = |id: &str, key: &ApiKey| id == id_or_name || key.name == id_or_name;
        let mut revoked = Vec::new();
        for (id, key) in &mut self.keys {
            if meant(id, key) && key.revoked.is_none() {
                key.revoked = Some(now);
                revoked.push(id.clone());
            }
        }
        revoked
    }

    /// Revokes all keys of `subject`. Returns the ids of those that were not revoked before.
    pub fn revoke_subject(&mut self, subject: &str, now: u64) -> Vec<String> {
        let good = self.keys.iter_mut().filter(|(_, key)| key.subject == subject && key.revoked.is_none());
        good.map(|(id, key)| {
            key.revoked = Some(now);
            id.clone()
        })
        .collect()
    }

    /// Returns true if a key has this id or name.
    #[must_use]
    pub fn knows(&self, id_or_name: &str) -> bool {
        self.keys.iter().any(|(id, key)| id == id_or_name || key.name == id_or_name)
    }

    /// Iterates over all keys with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ApiKey)> {
        self.keys.iter().map(|(id, key)| (id.as_str(), key))
    }

    /// Finds the key whose clear text is `shown`. It may be expired or revoked.
    #[must_use]
    pub fn find(&self, shown: &[u8]) -> Option<(&str, &ApiKey)> {
        let rest = std::str::from_utf8(shown).ok()?.strip_prefix(PREFIX)?;
        let (id, secret) = rest.split_once('_')?;
        let (id, key) = self.keys.get_key_value(id)?;
        let same = verify_slices_are_equal(hash(secret.as_bytes()).as_bytes(), key.sha256.as_bytes());
        same.is_ok().then_some((id.as_str(), key))
    }
}

fn hash(secret: &[u8]) -> String {
    hex(digest(&SHA256, secret).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u8) -> [u8; RANDOM] {
        [seed; RANDOM]
    }

    fn new(name: &str) -> NewKey {
        NewKey { name: name.to_owned(), subject: "ada".to_owned(), ..NewKey::default() }
    }

    #[test]
    fn a_key_is_found_by_the_whole_of_its_text_only() {
        let mut keys = ApiKeys::default();
        let (id, shown) = keys.add(new("ci"), &random(7), 1);
        let (other, _) = keys.add(new("other"), &random(8), 1);
        assert_eq!(keys.find(shown.reveal().as_bytes()).map(|(id, _)| id), Some(id.as_str()));
        let secret = shown.reveal().rsplit_once('_').unwrap().1;
        for wrong in [
            format!("{PREFIX}{other}_{secret}"),
            format!("{PREFIX}{id}_"),
            format!("{PREFIX}{id}"),
            shown.reveal()[..shown.reveal().len() - 1].to_owned(),
            shown.reveal().to_uppercase(),
            format!("{}x", shown.reveal()),
        ] {
            assert_eq!(keys.find(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn the_file_holds_no_secret_and_comes_back_the_same() {
        let mut keys = ApiKeys::default();
        let (_, shown) =
            keys.add(NewKey { expires: Some(9), scopes: Some(vec!["a".to_owned()]), ..new("ci") }, &random(7), 1);
        let text = keys.to_text().unwrap();
        assert!(!text.contains(shown.reveal().rsplit_once('_').unwrap().1));
        assert!(!format!("{shown:?}").contains(shown.reveal()));
        assert_eq!(ApiKeys::parse(&text).unwrap(), keys);
    }

    #[test]
    fn a_damaged_file_is_named_as_such() {
        for text in ["", "[]", r#"{"keys":{"a":{"name":"","subject":"","sha256":"00","created":0}}}"#] {
            assert!(ApiKeys::parse(text).unwrap_err().to_string().contains("damaged"), "{text}");
        }
    }

    #[test]
    fn a_key_is_revoked_once() {
        let mut keys = ApiKeys::default();
        let (id, shown) = keys.add(new("ci"), &random(7), 1);
        assert_eq!(keys.revoke("ci", 5), std::slice::from_ref(&id));
        assert!(keys.revoke(&id, 6).is_empty());
        let (_, key) = keys.find(shown.reveal().as_bytes()).unwrap();
        assert_eq!((key.fault(9), key.revoked), (Some("revoked"), Some(5)));
    }

    #[test]
    fn all_keys_of_a_subject_are_revoked_and_no_others() {
        let mut keys = ApiKeys::default();
        let (one, _) = keys.add(new("ci"), &random(1), 1);
        let (two, _) = keys.add(new("laptop"), &random(2), 1);
        let (other, _) = keys.add(NewKey { subject: "ada2".to_owned(), ..new("other") }, &random(3), 1);
        keys.revoke(&one, 4);
        assert_eq!(keys.revoke_subject("ada", 5), std::slice::from_ref(&two));
        let revoked = |id: &str| keys.iter().find(|(known, _)| *known == id).and_then(|(_, key)| key.revoked);
        assert_eq!((revoked(&one), revoked(&two), revoked(&other)), (Some(4), Some(5), None));
    }
}
