//! Signed calls, and what each kind of forgery is told.

use super::*;
use crate::hash::sha256;
use crate::key_set::{KeyRole, KeySet, TrustedKey};
use crate::nonces::NonceBook;
use crate::time_window::{TimeWindow, WrongTime};
use std::time::Duration;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"web__search","arguments":{"q":"x","n":1},"_meta":{"progressToken":7,"com.example/kept":true}}}"#;
const NOW: u64 = 1_790_000_000_000;
const MINUTE: u64 = 60_000;

fn key(seed: u8, id: &str) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap().named(id).unwrap()
}

fn keys() -> KeySet {
    let mut keys = KeySet::new();
    for (seed, id, role) in [(1, "ada", KeyRole::Client), (2, "west", KeyRole::Gateway), (3, "server", KeyRole::Server)]
    {
        keys.add(TrustedKey::new(key(seed, id).verifying_key().clone(), &format!("{id}-principal"), &[role])).unwrap();
    }
    keys
}

fn terms() -> SignatureTerms {
    SignatureTerms::new("nonce-0001", NOW, NOW + MINUTE)
}

fn signed(message: &str) -> String {
    text(&sign_request(message.as_bytes(), &key(1, "ada"), &terms()).unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn verify_at(message: &str, keys: &KeySet, now: u64) -> Result<VerifiedSignature, VerifyError> {
    let nonces = NonceBook::new(10);
    let window = TimeWindow::around(Duration::from_secs(300));
    let verifier = SignatureVerifier { keys, window, nonces: &nonces, profiles: &Profile::ALL };
    verifier.request(message.as_bytes(), now)
}

fn verify(message: &str) -> Result<VerifiedSignature, VerifyError> {
    verify_at(message, &keys(), NOW)
}

#[test]
fn a_signature_survives_what_gateways_must_change() {
    let message = signed(CALL);
    let verified = verify(&message).unwrap();
    assert_eq!((verified.principal.as_str(), verified.key_id.as_str()), ("ada-principal", "ada"));
    assert_eq!(verified.signed_name.as_deref(), Some("web__search"));
    for (from, to) in [
        (r#""id":1"#, r#""id":"other""#),
        (r#""progressToken":7"#, r#""progressToken":"abc""#),
        (r#""progressToken":7,"#, r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"00","#),
        (r#""arguments":{"q":"x","n":1}"#, r#""arguments": {"n" : 1, "q":"\u0078"}"#),
    ] {
        assert!(message.contains(from), "{from}");
        assert_eq!(
            verify(&message.replacen(from, to, 1)).map(|verified| verified.key_id),
            Ok("ada".to_owned()),
            "{to}"
        );
    }
}

#[test]
fn every_other_change_is_noticed() {
    let message = signed(CALL);
    for (from, to) in [
        (r#""n":1"#, r#""n":1.0"#),
        (r#""n":1"#, r#""n":2"#),
        (r#""n":1"#, r#""n":1,"m":0"#),
        ("com.example/kept\":true", "com.example/kept\":false"),
        ("tools/call", "prompts/get"),
        (r#""jsonrpc":"2.0","#, r#""jsonrpc":"2.0","extra":1,"#),
        ("nonce-0001", "nonce-0002"),
        (r#""profile":"mcp-cbor/2""#, r#""profile":"mcp-cbor/1""#),
    ] {
        assert!(message.contains(from), "{from}");
        assert_eq!(verify(&message.replacen(from, to, 1)), Err(VerifyError::Tampered), "{from} became {to}");
    }
    let later = message.replace(&(NOW + MINUTE).to_string(), &(NOW + 2 * MINUTE).to_string());
    assert_eq!(verify(&later), Err(VerifyError::Tampered));
    assert!(matches!(
        verify(&message.replacen(r#""name":"web__search""#, r#""name":"web__delete""#, 1)),
        Err(VerifyError::Renamed(_))
    ));
}

#[test]
fn each_kind_of_refusal_has_its_own_error() {
    let message = signed(CALL);
    assert_eq!(verify(CALL), Err(VerifyError::Missing));
    assert_eq!(verify_at(&message, &keys(), NOW + MINUTE), Err(VerifyError::Expired(WrongTime::Expired)));
    assert_eq!(verify_at(&message, &keys(), NOW - 6 * MINUTE), Err(VerifyError::FromTheFuture));
    assert_eq!(verify_at(&message, &KeySet::new(), NOW), Err(VerifyError::UnknownKey("ada".to_owned())));
    let mut revoked = keys();
    revoked.revoke("ada", 0).unwrap();
    assert_eq!(verify_at(&message, &revoked, NOW), Err(VerifyError::RevokedKey("ada".to_owned())));
    let rsa = message.replace("Ed25519", "RSA");
    assert_eq!(verify(&rsa), Err(VerifyError::UnsupportedAlgorithm("RSA".to_owned())));
    assert!(verify(&message.replace("Ed25519", "ED25519")).is_ok(), "names are compared without regard to case");
    let domain = message.replace(r#""domain":"request""#, r#""domain":"tape""#);
    assert!(matches!(verify(&domain), Err(VerifyError::WrongDomain { expected: "request", .. })));
    let profile = message.replace("mcp-cbor/2", "mcp-cbor/3");
    assert_eq!(verify(&profile), Err(VerifyError::UnsupportedProfile("mcp-cbor/3".to_owned())));
    let unknown = message.replace(r#""domain""#, r#""more":1,"domain""#);
    assert!(matches!(verify(&unknown), Err(VerifyError::Malformed(_))));
    let by_server = sign_request(CALL.as_bytes(), &key(3, "server"), &terms()).unwrap();
    assert!(matches!(verify(&text(&by_server)), Err(VerifyError::Untrusted(_))));
    let old = sign_request(
        CALL.as_bytes(),
        &key(1, "ada"),
        &SignatureTerms::new("nonce-0001", NOW - 6 * MINUTE, NOW + MINUTE),
    );
    assert_eq!(verify(&text(&old.unwrap())), Err(VerifyError::Expired(WrongTime::TooOld)));
}

#[test]
fn the_same_request_is_accepted_once() {
    let (keys, nonces) = (keys(), NonceBook::new(1));
    let verifier =
        SignatureVerifier { keys: &keys, window: TimeWindow::default(), nonces: &nonces, profiles: &Profile::ALL };
    let message = signed(CALL);
    assert!(verifier.request(message.replace(r#""n":1"#, r#""n":3"#).as_bytes(), NOW).is_err());
    assert!(verifier.request(message.as_bytes(), NOW).is_ok(), "a forgery uses no nonce up");
    assert_eq!(verifier.request(message.as_bytes(), NOW), Err(VerifyError::Replayed));
    let other = SignatureTerms { nonce: "nonce-0002".to_owned(), ..terms() };
    let other = sign_request(CALL.as_bytes(), &key(1, "ada"), &other).unwrap();
    assert_eq!(verifier.request(&other, NOW), Err(VerifyError::TooManyNonces("ada".to_owned())));
}

#[test]
fn a_renamed_call_is_followed_over_hops_of_trusted_gateways() {
    let hopped = add_hop(signed(CALL).as_bytes(), &key(2, "west"), "web__search", "search").unwrap();
    let renamed = text(&hopped).replacen(r#""name":"web__search""#, r#""name":"search""#, 1);
    assert_eq!(verify(&renamed).unwrap().signed_name.as_deref(), Some("web__search"));
    let elsewhere = renamed.replacen(r#""name":"search""#, r#""name":"delete""#, 1);
    assert!(matches!(verify(&elsewhere), Err(VerifyError::Renamed(_))));
    let by_client = add_hop(signed(CALL).as_bytes(), &key(1, "ada"), "web__search", "search").unwrap();
    let by_client = text(&by_client).replacen(r#""name":"web__search""#, r#""name":"search""#, 1);
    assert!(matches!(verify(&by_client), Err(VerifyError::Renamed(_))));
    assert_eq!(add_hop(CALL.as_bytes(), &key(2, "west"), "a", "b"), Err(SignError::Unsigned));
}

#[test]
fn a_gateway_that_changes_a_request_names_who_signed_it_first() {
    let before = signature_of(signed(CALL).as_bytes()).unwrap().unwrap();
    let first = FirstSigner { key_id: before.key_id, signature: before.signature };
    let changed = signed(CALL).replace(r#""n":1"#, r#""n":5"#);
    let again = SignatureTerms { first_signer: Some(first.clone()), ..terms() };
    let again = text(&sign_request(changed.as_bytes(), &key(2, "west"), &again).unwrap());
    let verified = verify(&again).unwrap();
    assert_eq!((verified.principal.as_str(), verified.first_signer), ("west-principal", Some(first)));
    assert_eq!(verify(&again.replace(r#""keyId":"ada""#, r#""keyId":"eve""#)), Err(VerifyError::Tampered));
}

#[test]
fn messages_without_params_and_notifications_can_be_signed() {
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}}"#,
    ] {
        let message = signed(message);
        assert!(verify(&message).is_ok(), "{message}");
    }
    let array = sign_request(br#"{"jsonrpc":"2.0","method":"x","params":[1]}"#, &key(1, "ada"), &terms());
    assert!(array.is_err());
    let nonce = SignatureTerms { nonce: "short".to_owned(), ..terms() };
    assert_eq!(sign_request(CALL.as_bytes(), &key(1, "ada"), &nonce), Err(SignError::Nonce(5)));
    assert!(matches!(sign_response(CALL.as_bytes(), &key(1, "ada"), &terms()), Err(SignError::NotAMessage { .. })));
}

#[test]
fn responses_are_signed_over_the_request_that_they_answer() {
    let (keys, nonces) = (keys(), NonceBook::new(100));
    let verifier =
        SignatureVerifier { keys: &keys, window: TimeWindow::default(), nonces: &nonces, profiles: &Profile::ALL };
    let hash = sha256(CALL.as_bytes());
    for (number, answer) in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let terms = SignatureTerms { request_hash: Some(hash), nonce: format!("response-{number}"), ..terms() };
        let answer = text(&sign_response(answer.as_bytes(), &key(3, "server"), &terms).unwrap());
        assert_eq!(verifier.response(answer.as_bytes(), Some(&[0; 32]), NOW), Err(VerifyError::OtherRequest));
        let changed = answer.replace("[]", "[1]").replace("\"no\"", "\"yes\"");
        assert_eq!(verifier.response(changed.as_bytes(), Some(&hash), NOW), Err(VerifyError::Tampered));
        assert!(verifier.response(answer.as_bytes(), Some(&hash), NOW).is_ok(), "{answer}");
    }
}

#[test]
fn short_messages_with_long_numbers_have_no_canonical_form() {
    let numbers = |count: usize| vec!["1e308"; count].join(",");
    let call = |count| {
        let arguments = numbers(count);
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"n":[{arguments}]}}}}}}"#
        )
    };
    let sign = |count| {
        sign_request(call(count).as_bytes(), &key(1, "ada"), &SignatureTerms { profile: Profile::One, ..terms() })
    };
    assert!(verify(&text(&sign(100).unwrap())).is_ok(), "a few of them are signed as ever");
    let error = sign(90_000).unwrap_err();
    assert!(
        matches!(error, SignError::Encode(EncodeError::TooLarge(limit)) if limit < 4 * 540_000 + 70_000),
        "{error}"
    );
    let forged = signed(&call(90_000)).replace("mcp-cbor/2", "mcp-cbor/1");
    let error = verify(&forged).unwrap_err();
    assert!(matches!(error, VerifyError::NoCanonicalForm(EncodeError::TooLarge(_))), "{error}");
}

/// A message that has no canonical form tells which checks came before it was asked for.
#[test]
fn everything_cheap_is_checked_before_the_canonical_form_is_made() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":1}}}"#;
    let numbers = format!(r#""n":[{}]"#, vec!["1e308"; 2000].join(","));
    let costly = signed(call).replace(r#""n":1"#, &numbers).replace("mcp-cbor/2", "mcp-cbor/1");
    assert_eq!(verify(&costly).unwrap_err().reason(), "no_canonical_form");
    let (ada, zeros) = (costly.rsplit_once(r#""signature":""#).unwrap().0, "0".repeat(127));
    for (message, reason) in [
        (costly.replace(r#""keyId":"ada""#, r#""keyId":"eve""#), "unknown_key"),
        (costly.replace("Ed25519", "RSA"), "unsupported_algorithm"),
        (costly.replace("mcp-cbor/1", "mcp-cbor/9"), "unsupported_profile"),
        (costly.replace("nonce-0001", "short"), "signature_malformed"),
        (format!(r#"{ada}"signature":"{zeros}"}}}}}}}}"#), "signature_malformed"),
    ] {
        assert_eq!(verify(&message).unwrap_err().reason(), reason, "{message}");
    }
    assert_eq!(verify_at(&costly, &keys(), NOW + 2 * MINUTE).unwrap_err().reason(), "expired");
    let (keys, nonces) = (keys(), NonceBook::new(10));
    let verifier =
        SignatureVerifier { keys: &keys, window: TimeWindow::default(), nonces: &nonces, profiles: &Profile::ALL };
    verifier.request(signed(call).as_bytes(), NOW).unwrap();
    assert_eq!(verifier.request(costly.as_bytes(), NOW).unwrap_err().reason(), "replayed");
}

#[test]
fn a_profile_that_is_not_accepted_is_refused_before_anything_is_computed() {
    let one = SignatureTerms { profile: Profile::One, ..terms() };
    let message = sign_request(CALL.as_bytes(), &key(1, "ada"), &one).unwrap();
    let (keys, nonces) = (keys(), NonceBook::new(10));
    let verifier =
        SignatureVerifier { keys: &keys, window: TimeWindow::default(), nonces: &nonces, profiles: &[Profile::Two] };
    let error = verifier.request(&message, NOW).unwrap_err();
    assert_eq!((error.reason(), &error), ("unsupported_profile", &VerifyError::ProfileNotAccepted(Profile::One)));
    assert!(SignatureVerifier { profiles: &Profile::ALL, ..verifier }.request(&message, NOW).is_ok());
}
