//! Random values, and PKCE with S256.

use crate::error::OauthError;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Generates a random value of 256 bits.
pub fn random() -> Result<String, OauthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| OauthError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Computes the S256 challenge of a verifier.
pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
