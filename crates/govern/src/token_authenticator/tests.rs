//! The matrix of attacks on tokens, and what a good token says.

use super::*;
use crate::jwks::JsonWebKeySet;
use crate::token::IssuerRules;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The Ed25519 key of RFC 8037, appendix A: a PKCS#8 document around its seed, and its public half.
const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const PUBLIC: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const SECRET: &[u8] = b"a secret that is long enough for HS256";
const NOW: u64 = 1_000_000_000;

fn signing_key() -> EncodingKey {
    let seed = (0..SEED.len()).step_by(2).map(|at| u8::from_str_radix(&SEED[at..at + 2], 16).unwrap());
    let head = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
    EncodingKey::from_ed_der(&head.into_iter().chain(seed).collect::<Vec<u8>>())
}

fn rules(name: &str, algorithm: Algorithm) -> IssuerRules {
    IssuerRules {
        name: name.to_owned(),
        issuer: format!("https://{name}.example"),
        audiences: vec!["https://box.example/mcp".to_owned()],
        algorithms: vec![algorithm],
        skew: 60,
        subject_claim: "sub".to_owned(),
        role_claims: vec!["roles".to_owned(), "role".to_owned(), "realm_access.roles".to_owned()],
        group_claims: vec!["groups".to_owned()],
        require_id: false,
    }
}

fn key_set(kid: &str) -> JsonWebKeySet {
    let set = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"{kid}","alg":"EdDSA","x":"{PUBLIC}"}}]}}"#);
    JsonWebKeySet::parse(&set, &[Algorithm::EdDSA]).unwrap()
}

struct Bench {
    authenticator: TokenAuthenticator,
    corp: Arc<TokenIssuer>,
    asked: Arc<AtomicUsize>,
}

fn bench() -> Bench {
    let corp = Arc::new(TokenIssuer::new(rules("corp", Algorithm::EdDSA), key_set("k1")));
    let shared = TokenIssuer::new(rules("shared", Algorithm::HS256), JsonWebKeySet::secret(SECRET).unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let unknown: KeySupply = Box::new(move |_, wanted| {
        count.fetch_add(usize::from(wanted == KeyRefreshReason::Unknown), Ordering::Relaxed);
    });
    let issuers = vec![Arc::clone(&corp), Arc::new(shared)];
    Bench { authenticator: TokenAuthenticator::new(issuers, Arc::default(), unknown), corp, asked }
}

impl Bench {
    fn ask(&self, token: &str, now: u64) -> Result<Option<Identity>, String> {
        let value = format!("Bearer {token}");
        let header = |name: &str| (name == "authorization").then_some(value.as_bytes());
        let arrival = Arrival { transport: "http", address: None, shown: None, header: &header, now };
        self.authenticator.identify(&arrival).map_err(|fault| fault.to_string())
    }
}

fn sign(header: &str, claims: &str) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = crypto::sign(signed.as_bytes(), &signing_key(), Algorithm::EdDSA).unwrap();
    format!("{signed}.{signature}")
}

fn claims() -> Value {
    json!({
        "iss": "https://corp.example", "aud": "https://box.example/mcp", "sub": "ada", "jti": "t-1",
        "exp": NOW / 1_000 + 300, "iat": NOW / 1_000, "scope": "mcp files:read",
        "role": "reader", "realm_access": { "roles": ["writer"] }, "groups": ["ops"],
    })
}

fn with(changes: Value) -> String {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().shift_remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    sign(r#"{"alg":"EdDSA","kid":"k1"}"#, &claims.to_string())
}

fn good() -> String {
    with(json!({}))
}

#[test]
fn a_good_token_says_who_calls_and_what_it_may() {
    let ada = bench().ask(&good(), NOW).unwrap().unwrap();
    assert_eq!((ada.principal.as_str(), ada.proof), ("corp:ada", Proof::Token));
    let standing = ada.standing.unwrap();
    assert!(standing.has_role("reader") && standing.has_role("writer"));
    assert_eq!(standing.groups, ["ops".into()] as [Box<str>; 1]);
    assert!(standing.lacks(&["files:write".into()]) == ["files:write"] && standing.lacks(&["mcp".into()]).is_empty());
    assert_eq!(standing.credential.as_ref().unwrap().expires, Some(NOW + 360_000));
}

#[test]
fn an_api_key_or_no_bearer_at_all_is_left_to_others() {
    assert_eq!(bench().ask("sbx_0_0", NOW), Ok(None));
    let arrival = Arrival { transport: "http", address: None, shown: None, header: &|_| None, now: NOW };
    assert_eq!(bench().authenticator.identify(&arrival), Ok(None));
}

#[test]
fn forged_and_foreign_tokens_are_refused_each_by_its_reason() {
    let text = claims().to_string();
    let unsigned = |header: &str| format!("{}.{}.", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(&text));
    let public = URL_SAFE_NO_PAD.decode(PUBLIC).unwrap();
    let confused = {
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","kid":"k1"}"#), URL_SAFE_NO_PAD.encode(&text));
        let key = EncodingKey::from_secret(&public);
        format!("{signed}.{}", crypto::sign(signed.as_bytes(), &key, Algorithm::HS256).unwrap())
    };
    let doubled = text.replacen('{', r#"{"sub":"eve","#, 1);
    let cases = [
        ("alg none", format!("{}x", unsigned(r#"{"alg":"none","kid":"k1"}"#)), "algorithm"),
        ("empty signature", unsigned(r#"{"alg":"EdDSA","kid":"k1"}"#), "malformed"),
        ("HS256 with the public key", confused, "algorithm"),
        ("kid as a path", sign(r#"{"alg":"EdDSA","kid":"../../etc/passwd"}"#, &text), "key"),
        ("kid as a query", sign(r#"{"alg":"EdDSA","kid":"k1' OR 1=1"}"#, &text), "key"),
        ("kid as a number", sign(r#"{"alg":"EdDSA","kid":7}"#, &text), "key"),
        ("foreign jku", sign(r#"{"alg":"EdDSA","kid":"k1","jku":"https://evil.example/k"}"#, &text), "`jku`"),
        ("own key in the header", sign(r#"{"alg":"EdDSA","kid":"k1","jwk":{}}"#, &text), "`jwk`"),
        ("critical extension", sign(r#"{"alg":"EdDSA","kid":"k1","crit":["b64"],"b64":false}"#, &text), "`crit`"),
        ("audience of another server", with(json!({ "aud": "https://other.example/mcp" })), "audience"),
        ("no audience", with(json!({ "aud": null })), "audience"),
        ("wrong issuer", with(json!({ "iss": "https://corp.example/" })), "issuer"),
        ("no issuer", with(json!({ "iss": null })), "issuer"),
        ("issuer that uses another kind of key", with(json!({ "iss": "https://shared.example" })), "algorithm"),
        ("expired", with(json!({ "exp": NOW / 1_000 - 61 })), "expired"),
        ("no end", with(json!({ "exp": null })), "`exp`"),
        ("end as text", with(json!({ "exp": "2099" })), "`exp`"),
        ("from the future", with(json!({ "nbf": NOW / 1_000 + 61 })), "not valid yet"),
        ("issued in the future", with(json!({ "iat": NOW / 1_000 + 61 })), "not valid yet"),
        ("no subject", with(json!({ "sub": null })), "`sub`"),
        ("subject with a control", with(json!({ "sub": "a\nb" })), "`sub`"),
        ("claims twice", sign(r#"{"alg":"EdDSA","kid":"k1"}"#, &doubled), "claims"),
        ("header twice", sign(r#"{"alg":"none","alg":"EdDSA","kid":"k1"}"#, &text), "header"),
        ("not a token", "abc".to_owned(), "malformed"),
        ("four parts", format!("{}.x", good()), "malformed"),
        ("too large", format!("{}{}", good(), "A".repeat(20_000)), "malformed"),
    ];
    for (case, token, reason) in cases {
        let refused = bench().ask(&token, NOW).unwrap_err();
        assert!(refused.contains(reason), "{case}: {refused}");
    }
    let token = good();
    for cut in [1, 10, 60] {
        assert!(bench().ask(&token[..token.len() - cut], NOW).is_err(), "truncated by {cut}");
    }
    let (signed, _) = token.rsplit_once('.').unwrap();
    let other = with(json!({ "sub": "eve" }));
    assert!(
        bench().ask(&format!("{signed}.{}", other.rsplit_once('.').unwrap().1), NOW).unwrap_err().contains("signature")
    );
}

#[test]
fn one_of_several_audiences_is_enough() {
    let several = with(json!({ "aud": ["https://other.example", "https://box.example/mcp"] }));
    assert!(bench().ask(&several, NOW).is_ok());
}

#[test]
fn a_token_is_verified_once_and_its_result_kept_until_it_expires() {
    let bench = bench();
    let one = bench.ask(&good(), NOW).unwrap().unwrap().standing.unwrap();
    let two = bench.ask(&good(), NOW + 1).unwrap().unwrap().standing.unwrap();
    assert!(Arc::ptr_eq(&one, &two));
    assert!(bench.ask(&good(), NOW + 360_000).unwrap_err().contains("expired"));
}

#[test]
fn tokens_of_a_withdrawn_key_end_and_an_unknown_key_is_asked_for() {
    let bench = bench();
    let ada = bench.ask(&good(), NOW).unwrap().unwrap();
    bench.corp.replace_keys(key_set("k2"));
    assert_eq!(bench.authenticator.withdraw_keys(&bench.corp), 1);
    assert_eq!(ada.standing.unwrap().credential.as_ref().unwrap().fault(NOW), Some("revoked"));
    assert_eq!(bench.asked.load(Ordering::Relaxed), 0);
    assert!(bench.ask(&good(), NOW).unwrap_err().contains("does not have"));
    assert_eq!(bench.asked.load(Ordering::Relaxed), 1);
}

/// Proves NO-1.
#[test]
fn a_shared_secret_serves_its_own_issuer_only() {
    let claims = claims().to_string().replace("corp.example", "shared.example");
    let signed =
        format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#), URL_SAFE_NO_PAD.encode(&claims));
    let by = |secret: &[u8]| {
        let signature = crypto::sign(signed.as_bytes(), &EncodingKey::from_secret(secret), Algorithm::HS256).unwrap();
        bench().ask(&format!("{signed}.{signature}"), NOW)
    };
    assert_eq!(by(SECRET).unwrap().unwrap().principal.as_str(), "shared:ada");
    assert!(by(b"another secret that is long enough too").unwrap_err().contains("signature"));
}

#[test]
fn a_token_that_its_issuer_takes_back_ends_whether_it_was_seen_before_or_not() {
    let bench = bench();
    let seen = bench.ask(&good(), NOW).unwrap().unwrap();
    bench.corp.replace_revoked(["t-1".to_owned(), "t-2".to_owned()].into());
    assert_eq!(bench.authenticator.withdraw_ids(&bench.corp), 1);
    assert_eq!(seen.standing.unwrap().credential.as_ref().unwrap().fault(NOW), Some("revoked"));
    for id in ["t-1", "t-2"] {
        assert!(bench.ask(&with(json!({"jti": id})), NOW).unwrap_err().contains("revoked"), "{id}");
    }
    assert!(bench.ask(&with(json!({"jti": "t-3"})), NOW).is_ok());
}

#[test]
fn an_id_token_is_the_answer_to_one_request_of_one_client() {
    let corp = bench().corp;
    let verify = |changes: Value| corp.verify_id_token(with(changes).as_bytes(), "n-1", NOW);
    let ada = verify(json!({"nonce": "n-1"})).unwrap();
    assert_eq!((ada.principal.as_str(), ada.said.groups), ("corp:ada", vec!["ops".to_owned()]));
    assert_eq!(verify(json!({})), Err(TokenError::Claim("nonce")));
    assert_eq!(verify(json!({"nonce": "n-2"})), Err(TokenError::Claim("nonce")));
    assert_eq!(verify(json!({"nonce": "n-1", "azp": "another"})), Err(TokenError::Audience));
    assert_eq!(verify(json!({"nonce": "n-1", "aud": "another"})), Err(TokenError::Audience));
    assert_eq!(verify(json!({"nonce": "n-1", "exp": 1})), Err(TokenError::Expired));
}
