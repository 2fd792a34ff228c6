//! Bodies of the fuzz targets in /fuzz.

use crate::api_keys::ApiKeys;
use crate::jwks::JsonWebKeySet;
use crate::token::Parts;

/// Parses any bytes as a token, a key set and a key file. Nothing panics, and a parsed token has exactly three parts.
#[expect(clippy::expect_used, reason = "a fuzz target reports by panicking")]
pub fn credential(data: &[u8]) {
    if let Ok(parts) = Parts::of(data) {
        let _ = (parts.issuer(), parts.kid());
        assert_eq!(data.iter().filter(|byte| **byte == b'.').count(), 2, "a token has three parts");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = JsonWebKeySet::parse(text, &["EdDSA", "ES256", "RS256"].map(|name| name.parse().expect("an algorithm")));
    if let Ok(keys) = ApiKeys::parse(text) {
        let again = ApiKeys::parse(&keys.to_text().expect("what was read can be written"));
        assert_eq!(again.expect("what was written can be read"), keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::fuzzing::run_mutated;

    #[test]
    fn the_target_holds_on_seeds_and_mutations() {
        let seeds = [
            &b"eyJhbGciOiJFZERTQSIsImtpZCI6ImsxIn0.eyJpc3MiOiJhIiwic3ViIjoiYiIsImV4cCI6MX0.c2lnbmVk"[..],
            br#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
            br#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"oct","k":"AAAA"},{"kty":"EC","crv":"P-256","x":"","y":""}]}"#,
            br#"{"keys":{}}"#,
        ];
        let pieces: &[&[u8]] =
            &[b".", b"..", b"=", b"\"", b"{", b"}", b"\"kty\":\"oct\"", b"null", b"\\u0000", b"\xff"];
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_vec()).collect();
        run_mutated(&[("credential", credential)], &seeds, pieces, 5_000);
    }
}
