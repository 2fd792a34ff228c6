//! Client assertions signed with a private key (RFC 7523).

use crate::error::OauthError;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use signalbox_wire::timestamp;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Lifetime of an assertion.
const LIFETIME: Duration = Duration::from_secs(60);
/// Maximum size of a key file, in bytes.
const MAX_FILE: u64 = 64 * 1024;

/// Private key of a client.
enum PrivateKey {
    Es256(EcdsaKeyPair),
    Es384(EcdsaKeyPair),
    Rs256(RsaKeyPair),
}

impl PrivateKey {
    /// Parses PKCS#8 in PEM.
    fn read(pem: &str) -> Option<Self> {
        let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
        let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
        let body: String = body.split_ascii_whitespace().collect();
        let der = STANDARD.decode(body).ok()?;
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der) {
            return Some(Self::Es256(key));
        }
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &der) {
            return Some(Self::Es384(key));
        }
        RsaKeyPair::from_pkcs8(&der).ok().map(Self::Rs256)
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Es384(_) => "ES384",
            Self::Rs256(_) => "RS256",
        }
    }

    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Es256(key) | Self::Es384(key) => Some(key.sign(&random, text).ok()?.as_ref().to_vec()),
            Self::Rs256(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

/// Creates an assertion of this client for this audience, signed with the key in a file.
pub(crate) async fn assertion(file: &Path, client: &str, audience: &str) -> Result<String, OauthError> {
    let bad = || OauthError::Key(file.display().to_string());
    let length = tokio::fs::metadata(file).await.map_err(|_| bad())?.len();
    if length > MAX_FILE {
        return Err(bad());
    }
    let pem = tokio::fs::read_to_string(file).await.map_err(|_| bad())?;
    let key = PrivateKey::read(&pem).ok_or_else(bad)?;
    signed(&key, client, audience, now(), &crate::pkce::random()?).ok_or_else(bad)
}

fn signed(key: &PrivateKey, client: &str, audience: &str, now: u64, id: &str) -> Option<String> {
    let header = serde_json::json!({"alg": key.algorithm(), "typ": "JWT"});
    let claims = serde_json::json!({
        "iss": client, "sub": client, "aud": audience, "iat": now, "exp": now + LIFETIME.as_secs(), "jti": id,
    });
    let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&header), part(&claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(text.as_bytes())?);
    Some(format!("{text}.{signature}"))
}

/// Returns the current time in seconds since 1970.
pub(crate) fn now() -> u64 {
    timestamp::since_1970(SystemTime::now()).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};

    #[test]
    fn an_assertion_is_signed_and_says_whose_it_is() {
        let made = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let der = made.to_pkcs8v1().unwrap();
        let pem =
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der.as_ref()));
        let key = PrivateKey::read(&pem).unwrap();
        assert_eq!(key.algorithm(), "ES256");
        let token = signed(&key, "me", "https://as.example", 1_000, "id").unwrap();
        let (text, signature) = token.rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, made.public_key().as_ref());
        public.verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(text.split_once('.').unwrap().1).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((claims["iss"].as_str(), claims["exp"].as_u64()), (Some("me"), Some(1_060)));
        assert!(PrivateKey::read("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----").is_none());
        assert!(PrivateKey::read("").is_none());
    }
}
