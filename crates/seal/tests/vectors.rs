//! Golden vectors of both profiles, RFC 8949 appendix A, and Wycheproof's Ed25519 file.
//!
//! `examples/verify-seal/vectors.py` checks the golden ones with libraries that are not ours.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]
#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use serde_json::Value;
use signalbox_seal::{Domain, Profile, Signature, SigningKey, canonical, hex, unhex, verify_signature};

fn file(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

/// Proves P-15.
#[test]
fn golden_vectors_of_both_profiles() {
    for name in ["mcp-cbor-1.json", "mcp-cbor-2.json"] {
        let vectors = file(name);
        let profile: Profile = text(&vectors, "profile").parse().unwrap();
        assert!(list(&vectors, "cases").len() > 50);
        for case in list(&vectors, "cases") {
            let json = text(case, "json");
            let found = canonical::json_as(profile, json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"));
            assert_eq!(hex(&found), text(case, "cbor"), "{json} in {profile}");
        }
        for refused in list(&vectors, "refused") {
            let refused = refused.as_str().unwrap();
            assert!(canonical::json_as(profile, refused.as_bytes()).is_err(), "{refused}");
        }
    }
}

#[test]
fn golden_signatures_of_every_domain() {
    let vectors = file("signatures.json");
    let key = SigningKey::from_seed(&unhex(text(&vectors, "seed")).unwrap()).unwrap();
    assert_eq!(key.verifying_key().to_hex(), text(&vectors, "public_key"));
    assert_eq!(list(&vectors, "cases").len(), 2 * Domain::ALL.len());
    for case in list(&vectors, "cases") {
        let (profile, domain) = (text(case, "profile").parse().unwrap(), text(case, "domain").parse().unwrap());
        let cbor = unhex(text(case, "cbor")).unwrap();
        let signature = Signature::from_hex(text(case, "signature")).unwrap();
        assert_eq!(key.sign(profile, domain, &cbor).unwrap(), signature, "{case}");
        assert_eq!(key.verifying_key().verify(profile, domain, &cbor, &signature), Ok(()));
    }
}

/// Appendix A has the shortest form of every value. Left out is what has no JSON, what is no deterministic encoding
/// (indefinite lengths, longer floats), and integers beyond 64 bits.
#[test]
fn appendix_a_of_rfc_8949_where_it_applies() {
    let vectors = file("rfc8949_appendix_a.json");
    let raw = std::fs::read_to_string(format!("{}/tests/vectors/rfc8949_appendix_a.json", env!("CARGO_MANIFEST_DIR")));
    let raw: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(&raw.unwrap()).unwrap();
    let mut checked = 0;
    for (case, raw) in vectors.as_array().unwrap().iter().zip(raw) {
        let cbor = text(case, "hex");
        let member: std::collections::HashMap<String, Box<serde_json::value::RawValue>> =
            serde_json::from_str(raw.get()).unwrap();
        let Some(decoded) = member.get("decoded").filter(|_| case["roundtrip"] == true) else { continue };
        let Ok(found) = canonical::json(decoded.get().as_bytes()) else {
            assert!(["c2", "c3", "3b"].iter().any(|start| cbor.starts_with(start)), "{decoded}");
            continue;
        };
        // The file writes some floats as integers: 1.0e+300, and 100000.0 as 100000.
        let as_float = decoded.get().contains(['.', 'e']) || !cbor.starts_with('f');
        if as_float || cbor.starts_with("f4") || cbor.starts_with("f5") || cbor.starts_with("f6") {
            assert_eq!(hex(&found), cbor, "{decoded}");
            checked += 1;
        }
    }
    assert!(checked > 45, "only {checked} values were checked");
}

/// Proves PO-13.
#[test]
fn every_vector_of_wycheproof() {
    let vectors = file("wycheproof_ed25519.json");
    let mut checked = 0;
    for group in list(&vectors, "testGroups") {
        let public = unhex(text(&group["publicKey"], "pk")).unwrap();
        for test in list(group, "tests") {
            let (message, signature) = (unhex(text(test, "msg")).unwrap(), unhex(text(test, "sig")).unwrap());
            let found = verify_signature(&public, &message, &signature, "Ed25519").unwrap_or(false);
            assert_eq!(found, text(test, "result") == "valid", "{}: {}", test["tcId"], test["comment"]);
            checked += 1;
        }
    }
    assert_eq!(checked, vectors["numberOfTests"].as_u64().unwrap());
}
