//! Rows P-1 to P-30 and PO-1, PO-10 to PO-17 on whole messages.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]
#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use prost::Message;
use prost_types::Value;
use prost_types::value::Kind;
use signalbox_seal::proto::{
    Action, CompensationModel, Extension, PermissionSpecification, PurposeCategory, Status, UsageLimitations,
    mcp_request::Params, mcp_response::Outcome,
};
use signalbox_seal::{
    BadSignature, CryptoSignature, McpRequest, McpResponse, MessageError, MessageLimits, Permission, PermissionStatus,
    PurposeDna, RequestorIdentity, SigningKey, Struct, Timestamp, deserialize_request, deserialize_response,
    prepare_request_for_signing, prepare_response_for_signing, serialize_request, serialize_response, verify_request,
    verify_response, verify_signature,
};

fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

fn structure(fields: &[(&str, Kind)]) -> Struct {
    let fields = fields.iter().map(|(key, kind)| ((*key).to_owned(), Value { kind: Some(kind.clone()) }));
    Struct { fields: fields.collect() }
}

fn request() -> McpRequest {
    McpRequest {
        request_id: "request-1".to_owned(),
        mcp_version: "2025-11-25".to_owned(),
        timestamp: Some(Timestamp { seconds: 1_790_000_000, nanos: 5 }),
        request_expiry: Some(Timestamp { seconds: 1_790_000_060, nanos: 0 }),
        requestor_identity: Some(RequestorIdentity {
            pseudonym_id: "ada".to_owned(),
            public_key: Bytes::copy_from_slice(key().verifying_key().as_bytes()),
            attestations: vec!["known".to_owned()],
        }),
        purpose_dna: Some(PurposeDna {
            purpose_id: "p".to_owned(),
            primary_category: PurposeCategory::Analytics.into(),
            data_types_involved: vec!["mail".to_owned()],
            ..Default::default()
        }),
        permissions: vec![Permission {
            resource_identifier: "mail".to_owned(),
            requested_action: Action::Read.into(),
            permission_specification: Some(PermissionSpecification {
                max_frequency_per_hour: 10,
                data_access_scope: "personal".to_owned(),
                constraints: None,
            }),
        }],
        context_data: Some(structure(&[("ratio", Kind::NumberValue(1.1)), ("who", Kind::StringValue("x".to_owned()))])),
        compensation_model: Some(CompensationModel { amount: Some(0.1), ..Default::default() }),
        metadata: HashMap::from([("b".to_owned(), "1".to_owned()), ("aa".to_owned(), "2".to_owned())]),
        method: "tools/call".to_owned(),
        params: Some(Params::ParamsJson(Bytes::from_static(br#"{"name":"add","arguments":{"b":2,"a":1}}"#))),
        ..Default::default()
    }
}

fn response() -> McpResponse {
    McpResponse {
        response_id: "response-1".to_owned(),
        request_id: "request-1".to_owned(),
        mcp_version: "2025-11-25".to_owned(),
        status: Status::Success.into(),
        timestamp: Some(Timestamp { seconds: 1_790_000_001, nanos: 0 }),
        permission_statuses: vec![PermissionStatus { granted: true, ..Default::default() }],
        response_payload: Bytes::from_static(b"payload"),
        consent_receipt: Bytes::from_static(b"receipt"),
        extensions: vec![Extension { type_url: "t".to_owned(), value: Bytes::from_static(b"v") }],
        usage_limitations: Some(UsageLimitations { max_uses: 3, ..Default::default() }),
        outcome: Some(Outcome::ResultJson(Bytes::from_static(br#"{"content":[]}"#))),
        ..Default::default()
    }
}

fn signed(mut request: McpRequest) -> McpRequest {
    let signature = key().sign_prepared(&prepare_request_for_signing(&request).unwrap()).unwrap();
    request.signature = Some(CryptoSignature {
        key_id: "key-1".to_owned(),
        algorithm: "Ed25519".to_owned(),
        signature: Bytes::copy_from_slice(signature.as_ref()),
    });
    request
}

/// Proves P-2, P-3, P-4 and P-5.
#[test]
fn messages_survive_protobuf() {
    let bytes = serialize_request(&signed(request())).unwrap();
    let back = deserialize_request(&bytes).unwrap();
    assert_eq!(back, signed(request()));
    assert_eq!(prepare_request_for_signing(&back), prepare_request_for_signing(&request()));
    let back = deserialize_response(&serialize_response(&response()).unwrap()).unwrap();
    assert_eq!(back, response());
}

/// Proves P-6, P-7, P-8, P-9 and PO-10.
#[test]
fn the_canonical_request_has_the_specified_keys() {
    let bytes = prepare_request_for_signing(&request()).unwrap();
    let keys = top_keys(&bytes);
    assert_eq!(
        keys,
        [
            "compensation_model",
            "context_data",
            "mcp_version",
            "metadata",
            "method",
            "name",
            "params",
            "permissions",
            "purpose_dna",
            "request_expiry",
            "request_id",
            "requestor_identity",
            "timestamp"
        ],
        "empty fields are left out, and the rest is in lexicographic order"
    );
    let bare = McpRequest { permissions: vec![], ..request() };
    assert!(top_keys(&prepare_request_for_signing(&bare).unwrap()).contains(&"permissions".to_owned()), "always there");
    for (broken, field) in [
        (McpRequest { timestamp: None, ..request() }, "timestamp"),
        (McpRequest { requestor_identity: None, ..request() }, "requestor_identity"),
        (McpRequest { purpose_dna: None, ..request() }, "purpose_dna"),
    ] {
        assert_eq!(prepare_request_for_signing(&broken), Err(MessageError::MissingField(field)));
    }
}

/// Proves P-7 and PO-11.
#[test]
fn the_canonical_response_has_the_specified_keys() {
    let bytes = prepare_response_for_signing(&response()).unwrap();
    assert_eq!(
        top_keys(&bytes),
        [
            "consent_receipt",
            "extensions",
            "mcp_version",
            "permission_statuses",
            "request_id",
            "response_id",
            "response_payload",
            "result",
            "status",
            "timestamp",
            "usage_limitations"
        ]
    );
    assert!(contains(&bytes, b"\x70response_payload\xd8\x18\x47payload"), "tag 24");
    assert!(contains(&bytes, b"\x65value\xd8\x18\x41v"), "tag 24");
    let untimed = McpResponse { timestamp: None, ..response() };
    assert_eq!(prepare_response_for_signing(&untimed), Err(MessageError::MissingField("timestamp")));
}

/// Proves P-10, P-16 and PO-12.
#[test]
fn numbers_of_a_struct_are_texts_with_eight_decimals() {
    let bytes = prepare_request_for_signing(&request()).unwrap();
    assert!(contains(&bytes, b"\x65ratio\x6a1.10000000"));
    assert!(contains(&bytes, b"\x66amount\x6a0.10000000"));
    let with = |kind: Option<Kind>| McpRequest {
        context_data: Some(Struct { fields: BTreeMap::from([("x".to_owned(), Value { kind })]) }),
        ..request()
    };
    for number in [f64::NAN, f64::INFINITY] {
        assert!(prepare_request_for_signing(&with(Some(Kind::NumberValue(number)))).is_err());
    }
    assert!(prepare_request_for_signing(&with(None)).is_err(), "an empty value");
    let whole = prepare_request_for_signing(&with(Some(Kind::NumberValue(1.0)))).unwrap();
    let look_alike = prepare_request_for_signing(&with(Some(Kind::StringValue("1.00000000".to_owned())))).unwrap();
    assert_eq!(whole, look_alike, "a documented look-alike of mcp-cbor/1");
    let apart =
        |kind| prepare_request_for_signing(&McpRequest { profile: "mcp-cbor/2".to_owned(), ..with(Some(kind)) });
    assert_ne!(apart(Kind::NumberValue(1.0)), apart(Kind::StringValue("1.00000000".to_owned())));
}

/// Proves P-12 and P-21.
#[test]
fn moments_are_nanoseconds_with_tag_1() {
    let bytes = prepare_request_for_signing(&request()).unwrap();
    let nanos = 1_790_000_000_000_000_005_u64.to_be_bytes();
    assert!(contains(&bytes, &[b"\x69timestamp\xc1\x1b", &nanos[..]].concat()));
    for time in [Timestamp { seconds: i64::MAX, nanos: 0 }, Timestamp { seconds: 0, nanos: -1 }] {
        let broken = McpRequest { timestamp: Some(time), ..request() };
        assert_eq!(prepare_request_for_signing(&broken), Err(MessageError::TimeOutOfRange("timestamp")));
    }
}

/// Proves P-14 and P-30.
#[test]
fn the_same_data_have_the_same_bytes_whatever_protobuf_did() {
    let expected = prepare_request_for_signing(&request()).unwrap();
    // Fields in another order: the later half of the message before the earlier one.
    let late = McpRequest {
        method: request().method,
        params: request().params,
        metadata: request().metadata,
        ..Default::default()
    };
    let early = McpRequest { method: String::new(), params: None, metadata: HashMap::new(), ..request() };
    let bytes = [late.encode_to_vec(), early.encode_to_vec()].concat();
    assert_ne!(bytes, request().encode_to_vec());
    assert_eq!(prepare_request_for_signing(&deserialize_request(&bytes).unwrap()).unwrap(), expected);
    // Maps in whatever order a hash map has them.
    for _ in 0..20 {
        let metadata: HashMap<_, _> = request().metadata.into_iter().collect();
        assert_eq!(prepare_request_for_signing(&McpRequest { metadata, ..request() }).unwrap(), expected);
    }
    // Optional fields that are there with their default.
    let explicit = [request().encode_to_vec(), vec![5 << 3 | 2, 0]].concat();
    assert_eq!(prepare_request_for_signing(&deserialize_request(&explicit).unwrap()).unwrap(), expected);
    // Floats that differ in bits and not in eight decimals.
    let other = structure(&[("ratio", Kind::NumberValue(1.100_000_000_1)), ("who", Kind::StringValue("x".to_owned()))]);
    let other = McpRequest { context_data: Some(other), ..request() };
    assert_eq!(prepare_request_for_signing(&other).unwrap(), expected);
}

/// Proves P-22, P-23, P-24 and PO-14.
#[test]
fn a_signed_request_verifies_and_a_changed_one_does_not() {
    let request = signed(request());
    assert_eq!(verify_request(&request), Ok(()));
    assert_eq!(prepare_request_for_signing(&request), prepare_request_for_signing(&self::request()));
    let changed = McpRequest { request_id: "request-2".to_owned(), ..request.clone() };
    assert_eq!(verify_request(&changed), Err(MessageError::Signature(BadSignature::Mismatch)));
    let renamed = Bytes::from_static(br#"{"name":"delete","arguments":{"b":2,"a":1}}"#);
    let renamed = McpRequest { params: Some(Params::ParamsJson(renamed)), ..request.clone() };
    assert_eq!(verify_request(&renamed), Err(MessageError::Signature(BadSignature::Mismatch)));
    let unsigned = McpRequest { signature: None, ..request.clone() };
    assert_eq!(verify_request(&unsigned), Err(MessageError::MissingField("signature")));

    let mut response = response();
    let prepared = prepare_response_for_signing(&response).unwrap();
    let signature = Bytes::copy_from_slice(key().sign_prepared(&prepared).unwrap().as_ref());
    response.signature = Some(CryptoSignature { algorithm: "ed25519".to_owned(), signature, ..Default::default() });
    assert_eq!(verify_response(&response, key().verifying_key()), Ok(()));
    response.status = Status::Denied.into();
    assert!(verify_response(&response, key().verifying_key()).is_err());
}

#[test]
fn a_signed_name_other_than_the_one_in_the_params_needs_hops() {
    let mut request = signed(request());
    request.signed_name = "add".to_owned();
    request.params = Some(Params::ParamsJson(Bytes::from_static(br#"{"name":"delete","arguments":{"b":2,"a":1}}"#)));
    assert!(matches!(verify_request(&request), Err(MessageError::Renamed(_))));
}

/// Proves PO-13.
#[test]
fn algorithms_keys_and_signatures_are_checked_apart() {
    let (key, prepared) = (key(), b"prepared");
    let signature = key.sign_prepared(prepared).unwrap();
    let public = key.verifying_key().as_bytes();
    for name in ["Ed25519", "ED25519", "ed25519"] {
        assert_eq!(verify_signature(public, prepared, signature.as_ref(), name), Ok(true), "{name}");
    }
    assert_eq!(verify_signature(public, b"other", signature.as_ref(), "Ed25519"), Ok(false));
    let unsupported = verify_signature(public, prepared, signature.as_ref(), "ES256");
    assert_eq!(unsupported, Err(MessageError::UnsupportedAlgorithm("ES256".to_owned())));
    assert!(matches!(
        verify_signature(b"short", prepared, signature.as_ref(), "Ed25519"),
        Err(MessageError::InvalidKey(_))
    ));
    let short = verify_signature(public, prepared, b"short", "Ed25519");
    assert_eq!(short, Err(MessageError::Signature(BadSignature::Length(5))));
}

/// Proves P-25 and PO-1.
#[test]
fn sizes_of_messages_are_limited() {
    let large = vec![0; 15_000_000];
    assert_eq!(
        deserialize_request(&large),
        Err(MessageError::TooLarge { what: "the request", bytes: 15_000_000, limit: 10_000_000 })
    );
    assert!(matches!(deserialize_response(&large), Err(MessageError::TooLarge { .. })));
    let payload = |bytes| McpResponse { response_payload: Bytes::from(vec![0; bytes]), ..response() };
    assert!(serialize_response(&payload(5_000_000)).is_ok());
    assert!(matches!(serialize_response(&payload(5_000_001)), Err(MessageError::TooLarge { limit: 5_000_000, .. })));
    let small = MessageLimits { message: 10, payload: 10 };
    assert!(matches!(small.serialize_request(&request()), Err(MessageError::TooLarge { limit: 10, .. })));
}

/// Proves P-26 and PO-17.
#[test]
fn bytes_that_are_no_message_are_refused() {
    let error = deserialize_request(&[0xff, 0xff, 0xff, 0xff]).unwrap_err();
    assert!(error.to_string().starts_with("not a protobuf message of signalbox.v1: "), "{error}");
    assert!(deserialize_response(&[0xff; 4]).is_err());
}

/// Proves P-28.
#[test]
fn binary_fields_are_not_copied() {
    let payload = Bytes::from(vec![1; 1_000_000]);
    let bytes = Bytes::from(serialize_response(&McpResponse { response_payload: payload, ..response() }).unwrap());
    let back = MessageLimits::default().deserialize_response(bytes.clone()).unwrap();
    let range = bytes.as_ptr_range();
    assert!(range.contains(&back.response_payload.as_ptr()), "the payload is a part of the message");
}

#[test]
fn a_request_names_its_profile_and_its_domain() {
    let two = McpRequest { profile: "mcp-cbor/2".to_owned(), ..request() };
    let bytes = prepare_request_for_signing(&two).unwrap();
    assert!(bytes.starts_with(b"signalbox-seal\0mcp-cbor/2\0request\0"));
    let bare = McpRequest { purpose_dna: None, requestor_identity: None, ..two.clone() };
    assert!(prepare_request_for_signing(&bare).is_ok(), "a call needs no purpose");
    let other = McpRequest { profile: "mcp-cbor/9".to_owned(), ..request() };
    assert!(matches!(prepare_request_for_signing(&other), Err(MessageError::UnknownProfile(_))));
    let other = McpRequest { domain: "response".to_owned(), ..request() };
    assert!(matches!(prepare_request_for_signing(&other), Err(MessageError::WrongDomain { .. })));
}

/// Proves P-1.
#[test]
fn protobuf_travels_and_canonical_cbor_is_signed() {
    let request = signed(request());
    let (wire, canonical) = (serialize_request(&request).unwrap(), prepare_request_for_signing(&request).unwrap());
    assert_eq!(deserialize_request(&wire).unwrap(), request);
    assert!(ciborium::from_reader::<ciborium::Value, _>(&canonical[..]).is_ok_and(|value| value.is_map()));
    let (public, signature) = (key().verifying_key().as_bytes().to_vec(), request.signature.unwrap());
    assert_eq!(verify_signature(&public, &canonical, &signature.signature, "Ed25519"), Ok(true));
    assert_eq!(verify_signature(&public, &wire, &signature.signature, "Ed25519"), Ok(false));
}

/// Whether the keys of every map, at any depth, are in ascending order.
fn is_sorted(value: &ciborium::Value) -> bool {
    match value {
        ciborium::Value::Map(map) => {
            let keys: Vec<&str> = map.iter().map(|(key, _)| key.as_text().unwrap()).collect();
            keys.is_sorted() && map.iter().all(|(_, value)| is_sorted(value))
        }
        ciborium::Value::Array(items) => items.iter().all(is_sorted),
        ciborium::Value::Tag(_, inner) => is_sorted(inner),
        _ => true,
    }
}

/// Proves P-11 and P-13.
#[test]
fn maps_are_sorted_at_every_depth() {
    let nested = |names: [&str; 3]| {
        let fields = names.map(|name| (name.to_owned(), Value { kind: Some(Kind::StringValue(name.to_owned())) }));
        Kind::StructValue(Struct { fields: fields.into() })
    };
    let names = [["b", "aa", "a"], ["aa", "b", "a"], ["a", "b", "aa"]];
    let prepared = names.map(|names| {
        let metadata = names.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        let context_data = Some(structure(&[("z", nested(names)), ("a", nested(names))]));
        prepare_request_for_signing(&McpRequest { metadata, context_data, ..request() }).unwrap()
    });
    assert!(prepared.iter().all(|bytes| *bytes == prepared[0]));
    for bytes in [prepared[0].clone(), prepare_response_for_signing(&response()).unwrap()] {
        assert!(is_sorted(&ciborium::from_reader(&bytes[..]).unwrap()));
    }
}

/// The fields of a message, each as its bytes.
fn fields(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let mut rest = bytes;
        let (number, wire) = prost::encoding::decode_key(&mut rest).unwrap();
        prost::encoding::skip_field(wire, number, &mut rest, prost::encoding::DecodeContext::default()).unwrap();
        let (field, left) = bytes.split_at(bytes.len() - rest.len());
        found.push(field);
        bytes = left;
    }
    found
}

/// Proves P-27.
#[test]
fn every_variant_is_the_same_in_any_order_of_its_fields() {
    let requests = [
        request(),
        signed(request()),
        McpRequest { permissions: vec![], context_data: None, metadata: HashMap::new(), ..request() },
        McpRequest { params: Some(Params::ParamsStruct(structure(&[("a", Kind::BoolValue(true))]))), ..request() },
        McpRequest { profile: "mcp-cbor/2".to_owned(), purpose_dna: None, ..request() },
    ];
    for request in requests {
        let (bytes, expected) = (request.encode_to_vec(), prepare_request_for_signing(&request).unwrap());
        let parts = fields(&bytes);
        for turn in 0..parts.len() {
            let mut turned = parts.clone();
            turned.rotate_left(turn);
            // The order of a list means something; every list here has one item.
            turned.reverse();
            let request = deserialize_request(&turned.concat()).unwrap();
            assert_eq!(prepare_request_for_signing(&request).unwrap(), expected, "turned by {turn}");
        }
    }
    let errors = Outcome::ErrorJson(Bytes::from_static(br#"{"code":-1,"message":"no"}"#));
    let responses = [
        response(),
        McpResponse { outcome: Some(errors), ..response() },
        McpResponse { outcome: None, extensions: vec![], ..response() },
        McpResponse { profile: "mcp-cbor/2".to_owned(), ..response() },
    ];
    for response in responses {
        let (bytes, expected) = (response.encode_to_vec(), prepare_response_for_signing(&response).unwrap());
        let mut turned = fields(&bytes);
        turned.reverse();
        let response = deserialize_response(&turned.concat()).unwrap();
        assert_eq!(prepare_response_for_signing(&response).unwrap(), expected);
    }
}

/// Proves PO-17.
#[test]
fn the_tests_of_the_earlier_system() {
    // A round trip is equal byte for byte: with one entry in each map, protobuf has one spelling.
    let one = McpRequest { metadata: HashMap::from([("a".to_owned(), "1".to_owned())]), ..request() };
    let bytes = serialize_request(&one).unwrap();
    assert_eq!(serialize_request(&deserialize_request(&bytes).unwrap()).unwrap(), bytes);
    let bytes = serialize_response(&response()).unwrap();
    assert_eq!(serialize_response(&deserialize_response(&bytes).unwrap()).unwrap(), bytes);
    let with = |ratio| {
        let context_data = Some(structure(&[("ratio", Kind::NumberValue(ratio))]));
        prepare_request_for_signing(&McpRequest { context_data, ..request() }).unwrap()
    };
    assert_eq!(with(1.1), with("1.1000000000000001".parse().unwrap()));
    assert_ne!(with(1.1), with(1.100_000_01));
    assert_eq!(
        prepare_request_for_signing(&signed(request())).unwrap(),
        prepare_request_for_signing(&request()).unwrap()
    );
    assert!(deserialize_request(&[0xff, 0xff, 0xff, 0xff]).is_err());
    assert!(deserialize_request(&vec![0; 15_000_000]).is_err());
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The keys of the outermost map, in their order, read by a decoder that is not ours.
fn top_keys(bytes: &[u8]) -> Vec<String> {
    let value: ciborium::Value = ciborium::from_reader(bytes).unwrap();
    value.as_map().unwrap().iter().map(|(key, _)| key.as_text().unwrap().to_owned()).collect()
}
