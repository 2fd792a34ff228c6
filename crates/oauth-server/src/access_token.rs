//! Access tokens in the form of RFC 9068, signed with Ed25519, and the public keys that verify them.

use crate::moment::hashed;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::fmt;

/// Error for a seed that makes no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("that is no seed of an Ed25519 key")]
pub struct BadSeed;

/// Signer of access tokens.
pub struct TokenSigner {
    pair: Ed25519KeyPair,
    kid: String,
    /// Previous keys, whose tokens may still be valid.
    former: Vec<TokenSigner>,
}

impl fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSigner").field("kid", &self.kid).finish_non_exhaustive()
    }
}

impl TokenSigner {
    /// Creates the signer of this seed.
    ///
    /// # Errors
    /// If the seed is invalid.
    pub fn new(seed: &[u8]) -> Result<Self, BadSeed> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| BadSeed)?;
        let kid = hashed(&URL_SAFE_NO_PAD.encode(pair.public_key())).chars().take(16).collect();
        Ok(Self { pair, kid, former: Vec::new() })
    }

    /// Adds a previous key, whose tokens are still recognized.
    #[must_use]
    pub fn after(mut self, former: Self) -> Self {
        self.former.extend(Some(former).filter(|former| former.kid != self.kid));
        self
    }

    fn each(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.former)
    }

    /// Returns the public keys as a JSON Web Key Set, the signing one first.
    #[must_use]
    pub fn key_set(&self) -> Value {
        let key = |one: &Self| {
            let x = URL_SAFE_NO_PAD.encode(one.pair.public_key());
            json!({"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": one.kid, "x": x})
        };
        json!({"keys": self.each().map(key).collect::<Vec<_>>()})
    }

    /// Signs a token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": self.kid});
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// Returns the id of a token that one of these keys has signed.
    pub(crate) fn id_of(&self, token: &str) -> Option<String> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let verifies = |one: &Self| {
            let key = UnparsedPublicKey::new(&ED25519, one.pair.public_key().as_ref());
            key.verify(signed.as_bytes(), &signature).is_ok()
        };
        self.each().find(|one| verifies(one))?;
        let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?;
        let claims: Value = serde_json::from_slice(&claims).ok()?;
        claims.get("jti").and_then(Value::as_str).map(str::to_owned)
    }
}
