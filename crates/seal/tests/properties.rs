//! Properties of all data: equal data have equal bytes, different data different ones, and the wire loses nothing.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_seal::{
    CryptoSignature, McpMessage, McpRequest, Timestamp, canonical, message_from_json, message_to_json,
    prepare_request_for_signing, struct_from_json, struct_to_json,
};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no other", |number| number.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map("[a-z\"\u{e9}]{0,3}", inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The same value with the members of all objects the other way round.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(map) => map.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect(),
        other => other.clone(),
    }
}

fn canonical_of(value: &Value) -> Vec<u8> {
    canonical::json(value.to_string().as_bytes()).unwrap()
}

proptest! {
    /// Proves P-14.
    #[test]
    fn equal_data_have_equal_bytes(value in values()) {
        let pretty = serde_json::to_string_pretty(&reversed(&value)).unwrap();
        prop_assert_eq!(canonical_of(&value), canonical::json(pretty.as_bytes()).unwrap());
    }

    #[test]
    fn different_data_have_different_bytes(one in values(), other in values()) {
        let texts = (one.to_string(), other.to_string());
        if one != other {
            prop_assert_ne!(canonical_of(&one), canonical_of(&other));
        // serde_json tells -0.0 from 0.0 as little as IEEE does; the text tells them apart.
        } else if texts.0 == texts.1 {
            prop_assert_eq!(canonical_of(&one), canonical_of(&other));
        }
    }

    #[test]
    fn canonical_bytes_are_read_back_by_another_decoder(value in values()) {
        let bytes = canonical_of(&value);
        let read: ciborium::Value = ciborium::from_reader(&bytes[..]).unwrap();
        let mut again = Vec::new();
        ciborium::into_writer(&read, &mut again).unwrap();
        prop_assert_eq!(again, bytes, "ciborium writes shortest forms too, and keeps the order of keys");
    }

    #[test]
    fn json_survives_protobuf_byte_for_byte(params in btree_map("[a-z]{1,4}", values(), 0..5), id in any::<i64>()) {
        let params = serde_json::to_string(&params).unwrap();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        let message = message_from_json(Bytes::from(text.clone())).unwrap();
        let carried: McpMessage = prost::Message::decode(&*prost::Message::encode_to_vec(&message)).unwrap();
        prop_assert_eq!(message_to_json(&carried).unwrap(), text.as_bytes());
    }

    #[test]
    fn a_struct_holds_json_without_loss_or_refuses_it(params in btree_map("[a-z]{1,4}", values(), 0..5)) {
        let text = serde_json::to_string(&params).unwrap();
        if let Ok(held) = struct_from_json(text.as_bytes()) {
            let back = struct_to_json(&held).unwrap();
            prop_assert_eq!(struct_from_json(&back).unwrap(), held);
        }
    }

    /// Proves P-24.
    #[test]
    fn prepare_of_signed_equals_prepare_of_unsigned(params in values(), profile in 1..=2, signature in vec(any::<u8>(), 0..80)) {
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": params}});
        let message = message_from_json(Bytes::from(text.to_string())).unwrap().message.unwrap();
        let signalbox_seal::proto::mcp_message::Message::Request(request) = message else { panic!("a request") };
        let request = McpRequest {
            profile: format!("mcp-cbor/{profile}"),
            timestamp: Some(Timestamp { seconds: 1, nanos: 0 }),
            requestor_identity: Some(Default::default()),
            purpose_dna: Some(Default::default()),
            ..request
        };
        let signature = Some(CryptoSignature { signature: signature.into(), ..Default::default() });
        let signed = McpRequest { signature, ..request.clone() };
        prop_assert_eq!(prepare_request_for_signing(&signed).unwrap(), prepare_request_for_signing(&request).unwrap());
    }
}
