//! Golden vectors of whole messages: every field of requests and responses, in both profiles, with the bytes that are
//! signed and their signature. `MCP_TEST_BLESS=1` writes them again; `examples/verify-seal/vectors.py` checks them from
//! the .proto and the documentation alone.
#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use bytes::Bytes;
use prost::Message;
use prost_types::value::Kind;
use prost_types::{ListValue, Value};
use serde_json::json;
use signalbox_seal::proto::mcp_request::Params;
use signalbox_seal::proto::mcp_response::Outcome;
use signalbox_seal::proto::{
    Action, AuthenticationInfo, CompensationModel, Extension, FirstSigner, Hop, PermissionSpecification,
    PurposeCategory, Status, TrustInformation, UsageLimitations,
};
use signalbox_seal::{
    CryptoSignature, McpRequest, McpResponse, Permission, PermissionStatus, PurposeDna, RequestorIdentity, SigningKey,
    Struct, Timestamp, deserialize_request, deserialize_response, hex, prepare_request_for_signing,
    prepare_response_for_signing, unhex, verify_signature,
};
use std::collections::HashMap;

const SEED: [u8; 32] = [42; 32];
const PROFILES: [&str; 2] = ["mcp-cbor/1", "mcp-cbor/2"];

fn key() -> SigningKey {
    SigningKey::from_seed(&SEED).unwrap()
}

fn at(seconds: i64, nanos: i32) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos })
}

fn text(value: &str) -> Value {
    Value { kind: Some(Kind::StringValue(value.to_owned())) }
}

fn number(value: f64) -> Value {
    Value { kind: Some(Kind::NumberValue(value)) }
}

/// A structure with every kind of value.
fn structure() -> Struct {
    let list = vec![number(-1.5), number(3.0), Value { kind: Some(Kind::BoolValue(true)) }];
    let fields = [
        ("ratio", number(1.1)),
        ("who", text("Zoë")),
        ("a", Value { kind: Some(Kind::NullValue(0)) }),
        ("bb", Value { kind: Some(Kind::ListValue(ListValue { values: list })) }),
        ("inner", Value { kind: Some(Kind::StructValue(Struct { fields: [("z".to_owned(), text(""))].into() })) }),
    ];
    Struct { fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
}

/// A request in which every field says something.
fn full_request(profile: &str) -> McpRequest {
    let params =
        br#"{"name":"add","arguments":{"b":2,"a":[1,0.5,"\u00e9",null]},"_meta":{"progressToken":7,"kept":true}}"#;
    let two = profile == PROFILES[1];
    McpRequest {
        request_id: "request-1".to_owned(),
        mcp_version: "2025-11-25".to_owned(),
        timestamp: at(1_790_000_000, 5),
        request_expiry: at(1_790_000_060, 0),
        related_request_id: "request-0".to_owned(),
        requestor_identity: Some(RequestorIdentity {
            pseudonym_id: "ada".to_owned(),
            public_key: Bytes::copy_from_slice(key().verifying_key().as_bytes()),
            attestations: vec!["known".to_owned(), "trusted".to_owned()],
        }),
        purpose_dna: Some(PurposeDna {
            purpose_id: "p-1".to_owned(),
            primary_category: PurposeCategory::Analytics.into(),
            secondary_categories: vec![PurposeCategory::Security.into(), PurposeCategory::Legal.into()],
            description: "counts".to_owned(),
            data_types_involved: vec!["mail".to_owned()],
            legal_basis: "consent".to_owned(),
            purpose_expiry: at(1_800_000_000, 999_999_999),
        }),
        permissions: vec![
            Permission {
                resource_identifier: "mail".to_owned(),
                requested_action: Action::Read.into(),
                permission_specification: Some(PermissionSpecification {
                    max_frequency_per_hour: 1000,
                    data_access_scope: "personal".to_owned(),
                    constraints: Some(structure()),
                }),
            },
            Permission::default(),
        ],
        context_data: Some(structure()),
        compensation_model: Some(CompensationModel {
            model_type: "flat".to_owned(),
            amount: Some(0.1),
            currency: "EUR".to_owned(),
            terms: Some(structure()),
        }),
        trust_information: Some(TrustInformation { trust_score: Some(1e-9), credentials: vec!["c".to_owned()] }),
        authentication_info: Some(AuthenticationInfo {
            method: "token".to_owned(),
            token: Bytes::from_static(&[0, 255, 24]),
            token_expiry: at(1_790_000_030, 1),
        }),
        metadata: HashMap::from([("b".to_owned(), "1".to_owned()), ("aa".to_owned(), "2".to_owned())]),
        signature: None,
        profile: if two { profile.to_owned() } else { String::new() },
        domain: if two { "request".to_owned() } else { String::new() },
        nonce: Bytes::from_static(b"nonce-0001"),
        method: "tools/call".to_owned(),
        params: Some(Params::ParamsJson(Bytes::from_static(params))),
        signed_name: "west__add".to_owned(),
        hops: vec![Hop { from: "west__add".to_owned(), to: "add".to_owned(), signature: None }],
        first_signer: Some(FirstSigner { key_id: "first".to_owned(), signature: Bytes::from_static(&[1; 64]) }),
        id_json: Bytes::from_static(b"17"),
        other_members_json: Bytes::from_static(br#"{"x":[{"y":-7}]}"#),
    }
}

/// A response in which every field says something.
fn full_response(profile: &str) -> McpResponse {
    let two = profile == PROFILES[1];
    McpResponse {
        response_id: "response-1".to_owned(),
        request_id: "request-1".to_owned(),
        mcp_version: "2025-11-25".to_owned(),
        status: Status::Partial.into(),
        timestamp: at(1_790_000_001, 0),
        status_message: "half of it".to_owned(),
        permission_statuses: vec![
            PermissionStatus {
                resource_identifier: "mail".to_owned(),
                requested_action: Action::Observe.into(),
                granted: true,
                reason: "agreed".to_owned(),
            },
            PermissionStatus::default(),
        ],
        response_payload: Bytes::from_static(b"payload"),
        consent_receipt: Bytes::from_static(b"receipt"),
        extensions: vec![Extension { type_url: "t".to_owned(), value: Bytes::from_static(b"v") }],
        compensation_receipt: Bytes::from_static(b"paid"),
        consent_expiry: at(1_790_000_600, 250),
        usage_limitations: Some(UsageLimitations {
            retention_until: at(1_795_000_000, 0),
            allowed_uses: vec!["count".to_owned()],
            prohibited_uses: vec!["sell".to_owned()],
            max_uses: 70_000,
        }),
        signature: None,
        profile: if two { profile.to_owned() } else { String::new() },
        domain: if two { "response".to_owned() } else { String::new() },
        nonce: Bytes::from_static(b"nonce-0002"),
        outcome: Some(Outcome::ResultJson(Bytes::from_static(
            br#"{"content":[{"type":"text","text":"3"}],"isError":false}"#,
        ))),
        request_hash: Bytes::from_static(&[9; 32]),
        id_json: Bytes::from_static(b"\"seventeen\""),
        other_members_json: Bytes::from_static(br#"{"z":1}"#),
    }
}

fn sign(prepared: &[u8]) -> CryptoSignature {
    let signature = Bytes::copy_from_slice(key().sign_prepared(prepared).unwrap().as_ref());
    CryptoSignature { key_id: "golden".to_owned(), algorithm: "Ed25519".to_owned(), signature }
}

/// A message of a vector: its name, its protobuf and the bytes that are signed.
struct Golden {
    name: String,
    kind: &'static str,
    protobuf: Vec<u8>,
    prepared: Vec<u8>,
}

fn request(name: &str, profile: &str, request: McpRequest) -> Golden {
    let prepared = prepare_request_for_signing(&request).unwrap();
    let signed = McpRequest { signature: Some(sign(&prepared)), ..request };
    Golden { name: format!("{name}, {profile}"), kind: "request", protobuf: signed.encode_to_vec(), prepared }
}

fn response(name: &str, profile: &str, response: McpResponse) -> Golden {
    let prepared = prepare_response_for_signing(&response).unwrap();
    let signed = McpResponse { signature: Some(sign(&prepared)), ..response };
    Golden { name: format!("{name}, {profile}"), kind: "response", protobuf: signed.encode_to_vec(), prepared }
}

fn goldens() -> Vec<Golden> {
    let mut all = Vec::new();
    for profile in PROFILES {
        let (full, answer) = (|| full_request(profile), || full_response(profile));
        all.push(request("a request with all fields", profile, full()));
        let params = Struct { fields: [("uri".to_owned(), text("file:///a")), ("n".to_owned(), number(2.0))].into() };
        let read = McpRequest {
            method: "resources/read".to_owned(),
            params: Some(Params::ParamsStruct(params)),
            signed_name: String::new(),
            ..full()
        };
        all.push(request("a request with params as a structure", profile, read));
        let bare = McpRequest {
            timestamp: at(1_790_000_000, 0),
            requestor_identity: full().requestor_identity,
            purpose_dna: Some(PurposeDna::default()),
            profile: full().profile,
            method: "tools/list".to_owned(),
            ..McpRequest::default()
        };
        all.push(request("a request with few fields", profile, bare));
        all.push(response("a response with all fields", profile, answer()));
        let structure = McpResponse { outcome: Some(Outcome::ResultStruct(structure())), ..answer() };
        all.push(response("a response with a structure", profile, structure));
        let error = Bytes::from_static(br#"{"code":-32602,"message":"no","data":{"reason":"x"}}"#);
        let error = McpResponse {
            timestamp: at(1_790_000_001, 0),
            profile: answer().profile,
            status: Status::Error.into(),
            outcome: Some(Outcome::ErrorJson(error)),
            ..McpResponse::default()
        };
        all.push(response("an error", profile, error));
    }
    all
}

fn path() -> String {
    format!("{}/tests/vectors/messages.json", env!("CARGO_MANIFEST_DIR"))
}

/// Proves P-15 and P-27.
#[test]
fn golden_vectors_of_whole_messages() {
    let public = key().verifying_key().to_hex();
    if std::env::var_os("MCP_TEST_BLESS").is_some() {
        let case = |golden: &Golden| {
            json!({
                "name": golden.name,
                "kind": golden.kind,
                "protobuf": hex(&golden.protobuf),
                "prepared": hex(&golden.prepared),
                "signature": hex(&sign(&golden.prepared).signature),
            })
        };
        let cases: Vec<_> = goldens().iter().map(case).collect();
        let file = json!({"seed": hex(&SEED), "public_key": public, "cases": cases});
        std::fs::write(path(), format!("{}\n", serde_json::to_string_pretty(&file).unwrap())).unwrap();
    }
    let file: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap();
    assert_eq!(file["public_key"], public.as_str());
    let (goldens, cases) = (goldens(), file["cases"].as_array().unwrap());
    assert_eq!(goldens.len(), cases.len());
    for (golden, case) in goldens.iter().zip(cases) {
        let bytes = |member: &str| unhex(case[member].as_str().unwrap()).unwrap();
        assert_eq!(case["name"], golden.name.as_str());
        assert_eq!(bytes("prepared"), golden.prepared, "{}", golden.name);
        let (protobuf, signature) = (bytes("protobuf"), bytes("signature"));
        // The order of maps in protobuf is anybody's choice, so that the bytes are compared by what they say.
        let (prepared, carried) = match golden.kind {
            "request" => {
                let request = deserialize_request(&protobuf).unwrap();
                assert_eq!(request, deserialize_request(&golden.protobuf).unwrap(), "{}", golden.name);
                (prepare_request_for_signing(&request).unwrap(), request.signature.unwrap())
            }
            _ => {
                let response = deserialize_response(&protobuf).unwrap();
                assert_eq!(response, deserialize_response(&golden.protobuf).unwrap(), "{}", golden.name);
                (prepare_response_for_signing(&response).unwrap(), response.signature.unwrap())
            }
        };
        assert_eq!(prepared, golden.prepared, "{}", golden.name);
        assert_eq!(carried.signature, signature, "{}", golden.name);
        let public = key().verifying_key().as_bytes().to_vec();
        assert_eq!(verify_signature(&public, &prepared, &signature, "Ed25519"), Ok(true));
    }
}
