//! PO-15 and PO-16.

use super::*;
use crate::hop::Hop;
use crate::key_set::{TrustError, TrustedKey};
use crate::nonces::NonceBook;
use crate::proto::mcp_request::Params;
use crate::proto::{
    Action, CryptoSignature, Permission, PermissionSpecification, PurposeCategory, PurposeDna, RequestorIdentity,
};
use crate::signing_key::SigningKey;
use crate::time_window::WrongTime;
use bytes::Bytes;
use prost_types::Timestamp;

const NOW: i64 = 1_790_000_000;

fn key(seed: u8, id: &str) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap().named(id).unwrap()
}

fn at(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos: 0 })
}

fn unsigned() -> McpRequest {
    McpRequest {
        mcp_version: "2025-11-25".to_owned(),
        timestamp: at(NOW),
        request_expiry: at(NOW + 60),
        requestor_identity: Some(RequestorIdentity {
            public_key: Bytes::copy_from_slice(key(1, "ada").verifying_key().as_bytes()),
            ..Default::default()
        }),
        purpose_dna: Some(PurposeDna {
            primary_category: PurposeCategory::Analytics.into(),
            data_types_involved: vec!["mail".to_owned()],
            purpose_expiry: at(NOW + 3600),
            ..Default::default()
        }),
        permissions: vec![permission(Action::Read)],
        ..Default::default()
    }
}

fn permission(action: Action) -> Permission {
    Permission {
        resource_identifier: "mail".to_owned(),
        requested_action: action.into(),
        permission_specification: Some(PermissionSpecification {
            max_frequency_per_hour: 1000,
            data_access_scope: "aggregated".to_owned(),
            constraints: None,
        }),
    }
}

fn sign(mut request: McpRequest, key: &SigningKey) -> McpRequest {
    let signature = key.sign_prepared(&prepare_request_for_signing(&request).unwrap()).unwrap();
    let signature = Bytes::copy_from_slice(signature.as_ref());
    request.signature =
        Some(CryptoSignature { key_id: key.id().to_owned(), algorithm: "Ed25519".to_owned(), signature });
    request
}

fn keys() -> KeySet {
    let mut keys = KeySet::new();
    keys.add(TrustedKey::new(key(1, "ada").verifying_key().clone(), "Ada", &[KeyRole::Client])).unwrap();
    keys.add(TrustedKey::new(key(2, "west").verifying_key().clone(), "West", &[KeyRole::Gateway])).unwrap();
    keys
}

fn check(mode: ValidationMode, request: McpRequest) -> Result<String, ValidationError> {
    let (keys, nonces) = (keys(), NonceBook::new(10));
    let validator = Validator::new(mode, &keys, &nonces);
    let request = if request.signature.is_none() { sign(request, &key(1, "ada")) } else { request };
    validator.request(&request, NOW * NANOS_PER_SECOND).map(ToOwned::to_owned)
}

fn full(request: McpRequest) -> Result<String, ValidationError> {
    check(ValidationMode::Full, request)
}

/// Proves PO-15.
#[test]
fn requests_with_wrong_times_or_empty_members_are_refused() {
    use SyntaxError as S;
    assert_eq!(full(unsigned()), Ok("Ada".to_owned()));
    let none = |purpose_expiry| PurposeDna { purpose_expiry, ..unsigned().purpose_dna.unwrap() };
    for (request, expected) in [
        (
            McpRequest { timestamp: at(NOW + 301), request_expiry: None, ..unsigned() },
            S::Time(WrongTime::FromTheFuture),
        ),
        (McpRequest { timestamp: at(NOW - 86_401), request_expiry: None, ..unsigned() }, S::Time(WrongTime::TooOld)),
        (McpRequest { timestamp: at(NOW - 60), request_expiry: at(NOW), ..unsigned() }, S::Time(WrongTime::Expired)),
        (McpRequest { request_expiry: at(NOW), ..unsigned() }, S::Time(WrongTime::ExpiresBeforeItWasMade)),
        (McpRequest { purpose_dna: Some(none(at(NOW))), ..unsigned() }, S::PurposeExpired),
        (McpRequest { permissions: vec![], ..unsigned() }, S::Missing("permissions")),
        (McpRequest { mcp_version: String::new(), ..unsigned() }, S::Missing("mcp_version")),
    ] {
        assert_eq!(full(request), Err(ValidationError::Syntax(expected)));
    }
    for request in [
        McpRequest { timestamp: at(NOW + 300), request_expiry: None, ..unsigned() },
        McpRequest { timestamp: at(NOW - 86_400), ..unsigned() },
    ] {
        assert!(full(request).is_ok());
    }
    let mut hollow = sign(unsigned(), &key(1, "ada"));
    hollow.signature.as_mut().unwrap().key_id.clear();
    assert_eq!(full(hollow), Err(ValidationError::Syntax(S::Missing("signature.key_id"))));
    let (keys, nonces) = (keys(), NonceBook::new(10));
    let bare = Validator::new(ValidationMode::Light, &keys, &nonces).request(&unsigned(), NOW * NANOS_PER_SECOND);
    assert_eq!(bare, Err(ValidationError::Syntax(S::Missing("signature"))));
}

/// Proves PO-16.
#[test]
fn requests_whose_permissions_do_not_fit_their_purpose_are_refused() {
    use Action::{Execute, Observe, Read, Write};
    use PurposeCategory as C;
    for (category, allowed) in [
        (C::Analytics, &[Read][..]),
        (C::Personalization, &[Read, Write]),
        (C::ResearchAndDevelopment, &[Read, Observe]),
        (C::Security, &[Read, Execute]),
        (C::Operations, &[Read, Write, Execute]),
        (C::Legal, &[Read]),
        (C::Unspecified, &[]),
    ] {
        for action in [Read, Write, Execute, Observe] {
            let mut request = unsigned();
            request.purpose_dna.as_mut().unwrap().primary_category = category.into();
            request.permissions = vec![permission(action)];
            let outcome = full(request);
            assert_eq!(outcome.is_ok(), allowed.contains(&action), "{category:?} {action:?}: {outcome:?}");
        }
    }
    let with = |change: &dyn Fn(&mut Permission)| {
        let mut permission = permission(Read);
        change(&mut permission);
        full(McpRequest { permissions: vec![permission], ..unsigned() }).unwrap_err().to_string()
    };
    assert_eq!(
        with(&|p| p.resource_identifier = "files".to_owned()),
        "semantics: permission 1: the purpose does not involve \"files\""
    );
    assert_eq!(with(&|p| p.requested_action = 0), "semantics: permission 1 names no action");
    let bounds = |p: &mut Permission, often, scope: &str| {
        let bounds = p.permission_specification.as_mut().unwrap();
        (bounds.max_frequency_per_hour, bounds.data_access_scope) = (often, scope.to_owned());
    };
    assert_eq!(
        with(&|p| bounds(p, 1001, "personal")),
        "semantics: permission 1: 1001 times per hour are more than 1000"
    );
    assert!(with(&|p| bounds(p, 1, "all")).contains("\"all\" is no scope"));
}

#[test]
fn security_proves_who_asks() {
    use SecurityError as S;
    let security = |error| Err(ValidationError::Security(error));
    let mut changed = sign(unsigned(), &key(1, "ada"));
    changed.request_id = "other".to_owned();
    assert_eq!(full(changed), security(S::Tampered));
    let eve = sign(unsigned(), &key(3, "eve"));
    assert_eq!(full(eve), security(S::Untrusted(TrustError::Unknown("eve".to_owned()))));
    assert_eq!(full(sign(unsigned(), &key(2, "west"))), security(S::OtherIdentity));
    let mut rsa = sign(unsigned(), &key(1, "ada"));
    rsa.signature.as_mut().unwrap().algorithm = "RSA".to_owned();
    assert!(matches!(full(rsa), Err(ValidationError::Security(S::Message(_)))));

    let (keys, nonces) = (keys(), NonceBook::new(10));
    let validator = Validator::new(ValidationMode::Light, &keys, &nonces);
    let request = sign(unsigned(), &key(1, "ada"));
    assert!(validator.request(&request, NOW * NANOS_PER_SECOND).is_ok());
    assert_eq!(validator.request(&request, NOW * NANOS_PER_SECOND), Err(ValidationError::Security(S::Replayed)));
}

#[test]
fn the_light_mode_needs_no_purpose() {
    let list = McpRequest {
        profile: "mcp-cbor/2".to_owned(),
        nonce: Bytes::from_static(b"nonce"),
        timestamp: at(NOW),
        method: "tools/list".to_owned(),
        ..Default::default()
    };
    assert_eq!(check(ValidationMode::Light, list.clone()), Ok("Ada".to_owned()));
    assert_eq!(full(list), Err(ValidationError::Syntax(SyntaxError::Missing("mcp_version"))));
}

#[test]
fn a_renamed_call_is_followed_over_hops() {
    let params = |name: &str| Some(Params::ParamsJson(format!(r#"{{"name":"{name}"}}"#).into()));
    let call = McpRequest { method: "tools/call".to_owned(), params: params("web__search"), ..unsigned() };
    let mut call = sign(call, &key(1, "ada"));
    call.signed_name = "web__search".to_owned();
    call.params = params("search");
    let refused = check(ValidationMode::Light, call.clone());
    assert!(matches!(refused, Err(ValidationError::Security(SecurityError::Renamed(_)))));
    let previous = call.signature.clone().unwrap().signature;
    call.hops = vec![Hop::sign(&key(2, "west"), &previous, "web__search", "search").unwrap().into()];
    assert_eq!(check(ValidationMode::Light, call), Ok("Ada".to_owned()));
}

/// A request that has no canonical form tells which checks came before it was asked for.
#[test]
fn everything_cheap_is_checked_before_the_canonical_form_is_made() {
    let signed = sign(unsigned(), &key(1, "ada"));
    let costly = |change: &dyn Fn(&mut CryptoSignature)| {
        let mut request = signed.clone();
        request.method = "tools/list".to_owned();
        request.params = Some(Params::ParamsJson(Bytes::from_static(br#"{"n":1e999}"#)));
        request.signature.iter_mut().for_each(change);
        request
    };
    let reason = |change: &dyn Fn(&mut CryptoSignature)| full(costly(change)).unwrap_err().reason();
    assert_eq!(reason(&|_| {}), "no_canonical_form");
    assert_eq!(reason(&|signature| signature.key_id = "eve".to_owned()), "unknown_key");
    assert_eq!(reason(&|signature| signature.algorithm = "RSA".to_owned()), "unsupported_algorithm");
    assert_eq!(reason(&|signature| signature.signature.truncate(63)), "signature_malformed");
    let (keys, nonces) = (keys(), NonceBook::new(10));
    let validator = Validator::new(ValidationMode::Full, &keys, &nonces);
    validator.request(&signed, NOW * NANOS_PER_SECOND).unwrap();
    let again = validator.request(&costly(&|_| {}), NOW * NANOS_PER_SECOND);
    assert_eq!(again.unwrap_err().reason(), "replayed");
}

/// A request that names no profile is one of `mcp-cbor/1`.
#[test]
fn a_profile_that_is_not_accepted_is_refused() {
    let (keys, nonces) = (keys(), NonceBook::new(10));
    let both = Validator::new(ValidationMode::Full, &keys, &nonces);
    let strict = Validator { profiles: &[Profile::Two], ..both };
    let named = |profile: &str| sign(McpRequest { profile: profile.to_owned(), ..unsigned() }, &key(1, "ada"));
    let at = NOW * NANOS_PER_SECOND;
    for profile in ["", "mcp-cbor/1"] {
        assert_eq!(strict.request(&named(profile), at).unwrap_err().reason(), "unsupported_profile");
        assert!(both.request(&named(profile), at).is_ok());
    }
    assert!(strict.request(&named("mcp-cbor/2"), at).is_ok());
}
