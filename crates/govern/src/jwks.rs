//! JSON Web Key Sets: the public keys of an issuer, each with the algorithms it may be used with.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fmt;
use std::str::FromStr as _;

/// Maximum size of a key set, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;
/// Maximum number of keys in a key set.
pub const MAX_KEYS: usize = 100;

/// Key that verifies tokens.
#[derive(Clone)]
pub struct TokenKey {
    /// Key id from the JWK.
    pub kid: Option<Box<str>>,
    /// Algorithms it may be used with, regardless of what a token claims.
    pub algorithms: Vec<Algorithm>,
    pub(crate) key: DecodingKey,
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey")
            .field("kid", &self.kid)
            .field("algorithms", &self.algorithms)
            .finish_non_exhaustive()
    }
}

/// Keys of an issuer.
#[derive(Clone, Debug, Default)]
pub struct JsonWebKeySet {
    pub keys: Vec<TokenKey>,
    /// Number of unusable keys: of another kind, for another use, or malformed.
    pub skipped: usize,
}

/// Error for a key set that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JsonWebKeySetError {
    /// The text exceeds [`MAX_BYTES`].
    #[error("the key set has {0} bytes; at most {MAX_BYTES} are read")]
    TooLarge(usize),
    /// The text is not a JWKS.
    #[error("this is not a JSON Web Key Set: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The set has more than [`MAX_KEYS`] keys.
    #[error("the key set has {0} keys; at most {MAX_KEYS} are read")]
    TooMany(usize),
    /// No key verifies signatures.
    #[error("the key set has no key that verifies signatures with {0}")]
    NoKey(String),
    /// A secret is too short for its algorithm.
    #[error("a secret for HS256 has at least 32 bytes; this one has {0}")]
    ShortSecret(usize),
}

#[derive(Deserialize)]
struct RawSet<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

impl JsonWebKeySet {
    /// Parses a JWKS. Keeps the keys that verify signatures with one of the `allowed` algorithms; shared secrets are
    /// never accepted.
    ///
    /// # Errors
    /// If the text is not a JWKS, or none of its keys can be used.
    pub fn parse(text: &str, allowed: &[Algorithm]) -> Result<Self, JsonWebKeySetError> {
        if text.len() > MAX_BYTES {
            return Err(JsonWebKeySetError::TooLarge(text.len()));
        }
        let raw: RawSet<'_> = serde_json::from_str(text)?;
        if raw.keys.len() > MAX_KEYS {
            return Err(JsonWebKeySetError::TooMany(raw.keys.len()));
        }
        // Issuers publish keys of unsupported kinds beside the ones that we can use.
        let read = |raw: &&RawValue| verifying_key(&serde_json::from_str(raw.get()).ok()?, allowed);
        let keys: Vec<TokenKey> = raw.keys.iter().filter_map(read).collect();
        if keys.is_empty() {
            let names: Vec<String> = allowed.iter().map(|algorithm| format!("{algorithm:?}")).collect();
            return Err(JsonWebKeySetError::NoKey(names.join(", ")));
        }
        Ok(Self { skipped: raw.keys.len() - keys.len(), keys })
    }

    /// Wraps the secret of an issuer that signs with HS256.
    ///
    /// # Errors
    /// If it is too short to resist guessing.
    pub fn secret(secret: &[u8]) -> Result<Self, JsonWebKeySetError> {
        if secret.len() < 32 {
            return Err(JsonWebKeySetError::ShortSecret(secret.len()));
        }
        let key = DecodingKey::from_secret(secret);
        Ok(Self { keys: vec![TokenKey { kid: None, algorithms: vec![Algorithm::HS256], key }], skipped: 0 })
    }

    /// Finds the key for this key id and algorithm. A token without a key id is verified only if exactly one key
    /// matches.
    #[must_use]
    pub fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<&TokenKey> {
        let mut fitting = self.keys.iter().filter(|key| {
            let named = match (kid, key.kid.as_deref()) {
                (Some(wanted), Some(kid)) => wanted == kid,
                // A secret has no id, and issuers name it as they like.
                (_, None) | (None, _) => true,
            };
            named && key.algorithms.contains(&algorithm)
        });
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// Returns true if a key has this id.
    #[must_use]
    pub fn knows(&self, kid: Option<&str>) -> bool {
        self.keys.iter().any(|key| key.kid.as_deref() == kid || key.kid.is_none())
    }
}

fn verifying_key(jwk: &Jwk, allowed: &[Algorithm]) -> Option<TokenKey> {
    if jwk.common.public_key_use.as_ref().is_some_and(|usage| *usage != PublicKeyUse::Signature) {
        return None;
    }
    let family = family(&jwk.algorithm);
    let named = jwk.common.key_algorithm.as_ref().map(algorithm);
    let algorithms: Vec<Algorithm> = match named {
        Some(named) => named.into_iter().collect(),
        None => family.to_vec(),
    };
    let algorithms: Vec<Algorithm> =
        algorithms.into_iter().filter(|one| family.contains(one) && allowed.contains(one)).collect();
    if algorithms.is_empty() {
        return None;
    }
    let key = DecodingKey::from_jwk(jwk).ok()?;
    Some(TokenKey { kid: jwk.common.key_id.as_deref().map(Box::from), algorithms, key })
}

/// Returns the algorithms that a key of this kind can sign with. Shared secrets have none: they do not belong in a
/// public set.
fn family(parameters: &AlgorithmParameters) -> &'static [Algorithm] {
    use Algorithm as A;
    match parameters {
        AlgorithmParameters::RSA(_) => &[A::RS256, A::RS384, A::RS512, A::PS256, A::PS384, A::PS512],
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => &[A::ES256],
            EllipticCurve::P384 => &[A::ES384],
            _ => &[],
        },
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => &[A::EdDSA],
        _ => &[],
    }
}

fn algorithm(named: &KeyAlgorithm) -> Option<Algorithm> {
    Algorithm::from_str(&named.to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED: &str = r#"{"kty":"OKP","crv":"Ed25519","kid":"e","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

    fn set(keys: &[&str]) -> String {
        format!(r#"{{"keys":[{}]}}"#, keys.join(","))
    }

    #[test]
    fn a_key_is_used_only_with_what_its_kind_can_do() {
        let keys = JsonWebKeySet::parse(&set(&[ED]), &[Algorithm::EdDSA, Algorithm::RS256]).unwrap();
        assert!(keys.find(Some("e"), Algorithm::EdDSA).is_some());
        assert!(keys.find(Some("e"), Algorithm::RS256).is_none());
        assert!(keys.find(Some("e"), Algorithm::HS256).is_none());
        assert!(keys.find(Some("../e"), Algorithm::EdDSA).is_none());
        assert!(keys.find(None, Algorithm::EdDSA).is_some());
    }

    #[test]
    fn secrets_and_encryption_keys_of_a_public_set_are_left_out() {
        let secret = r#"{"kty":"oct","kid":"s","alg":"HS256","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#;
        let encryption = ED.replace(r#""kid""#, r#""use":"enc","kid""#);
        let keys = JsonWebKeySet::parse(
            &set(&[secret, &encryption, r#"{"kty":"new"}"#, ED]),
            &[Algorithm::EdDSA, Algorithm::HS256],
        );
        let keys = keys.unwrap();
        assert_eq!((keys.keys.len(), keys.skipped), (1, 3));
        assert!(JsonWebKeySet::parse(&set(&[secret]), &[Algorithm::HS256]).is_err());
    }

    #[test]
    fn what_is_not_a_key_set_is_refused_with_the_reason() {
        assert!(
            JsonWebKeySet::parse("<html>", &[Algorithm::EdDSA])
                .unwrap_err()
                .to_string()
                .contains("not a JSON Web Key Set")
        );
        let many = vec![ED; MAX_KEYS + 1];
        assert!(JsonWebKeySet::parse(&set(&many), &[Algorithm::EdDSA]).unwrap_err().to_string().contains("101 keys"));
        assert!(matches!(JsonWebKeySet::secret(b"short"), Err(JsonWebKeySetError::ShortSecret(5))));
    }
}
