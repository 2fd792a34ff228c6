//! Conversion between JSON-RPC and protobuf.
//!
//! Params, results, errors and ids are carried byte for byte, and so are members that JSON-RPC does not define.

use bytes::Bytes;
use prost::Message as _;
use signalbox_wire::{Envelope, Kind, Limits, json};

use crate::domain::Domain;
use crate::message::MessageLimits;
use crate::message_error::MessageError;
use crate::prepare::prepare_response_for_signing;
use crate::profile::Profile;
use crate::proto::mcp_message::Message as Either;
use crate::proto::mcp_request::Params;
use crate::proto::mcp_response::Outcome;
use crate::proto::{CryptoSignature, McpMessage, McpRequest, McpResponse, Status};
use crate::signature::ALGORITHM;
use crate::signing_key::SigningKey;
use crate::struct_json::struct_to_json;
use prost_types::Timestamp;

const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Converts a JSON-RPC message to protobuf. Its params, result, error and id are slices of `message`, not copies.
/// Fields that JSON-RPC does not have (times, identity, signature) stay empty.
///
/// # Errors
/// If the message is not JSON-RPC.
pub fn message_from_json(message: Bytes) -> Result<McpMessage, MessageError> {
    let envelope =
        Envelope::read(message, &Limits::default()).map_err(|error| MessageError::NotJsonRpc(error.to_string()))?;
    let bytes = envelope.bytes();
    let part = |span: Option<signalbox_wire::Span>| span.map(|span| bytes.slice(span.range()));
    let id_json = part(envelope.id_span()).unwrap_or_default();
    let other_members_json = other_members(&envelope);
    let either = if matches!(envelope.kind(), Kind::Request | Kind::Notification) {
        Either::Request(McpRequest {
            method: envelope.method().unwrap_or_default().to_owned(),
            params: part(envelope.params_span()).map(Params::ParamsJson),
            id_json,
            other_members_json,
            ..Default::default()
        })
    } else {
        let result = part(envelope.result_span()).map(Outcome::ResultJson);
        let status = if result.is_some() { Status::Success } else { Status::Error };
        Either::Response(McpResponse {
            outcome: result.or_else(|| part(envelope.error_span()).map(Outcome::ErrorJson)),
            status: status.into(),
            id_json,
            other_members_json,
            ..Default::default()
        })
    };
    Ok(McpMessage { message: Some(either) })
}

/// Parses a message from protobuf, within the default [`MessageLimits`]. Its binary fields are slices of `bytes`, not
/// copies.
///
/// # Errors
/// If the message or its payload is too large, or it is not a message of this package.
pub fn message_from_protobuf(bytes: Bytes) -> Result<McpMessage, MessageError> {
    MessageLimits::default().deserialize_message(bytes)
}

/// Fields of a response that protobuf has and JSON-RPC does not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AnswerDetails {
    /// Unique id of the response at this gateway.
    pub response_id: String,
    /// The `request_id` of the request.
    pub request_id: String,
    /// MCP revision of the response.
    pub mcp_version: String,
    /// Time of the response, in milliseconds since 1970.
    pub unix_ms: u64,
}

impl AnswerDetails {
    /// Adds these fields to a message, if it is a response.
    pub fn add_to(self, message: &mut McpMessage) {
        let Some(Either::Response(response)) = &mut message.message else { return };
        let seconds = i64::try_from(self.unix_ms / 1_000).unwrap_or(i64::MAX);
        let nanos = i32::try_from(self.unix_ms % 1_000 * 1_000_000).unwrap_or_default();
        response.response_id = self.response_id;
        response.request_id = self.request_id;
        response.mcp_version = self.mcp_version;
        response.timestamp = Some(Timestamp { seconds, nanos });
    }
}

/// Signs a response in `mcp-cbor/2`. Its [`AnswerDetails`] must have been added before.
///
/// # Errors
/// If the response has no canonical form, or the key cannot sign.
pub fn sign_answer(response: &mut McpResponse, key: &SigningKey) -> Result<(), MessageError> {
    response.profile = Profile::Two.name().to_owned();
    response.domain = Domain::Response.name().to_owned();
    let signature = key.sign_prepared(&prepare_response_for_signing(response)?)?;
    response.signature = Some(CryptoSignature {
        key_id: key.id().to_owned(),
        algorithm: ALGORITHM.to_owned(),
        signature: Bytes::copy_from_slice(signature.as_ref()),
    });
    Ok(())
}

/// Serializes a message to protobuf. With `delimited`, its length precedes it, for streams of messages.
#[must_use]
pub fn message_to_protobuf(message: &McpMessage, delimited: bool) -> Vec<u8> {
    if delimited { message.encode_length_delimited_to_vec() } else { message.encode_to_vec() }
}

/// Converts a message to JSON-RPC: `jsonrpc`, `id`, `method` and `params` or `result` or `error`, in this order,
/// without whitespace.
///
/// Fields that JSON-RPC does not have are dropped.
///
/// # Errors
/// If the message is empty, or a part that should be JSON is not.
pub fn message_to_json(message: &McpMessage) -> Result<Bytes, MessageError> {
    match &message.message {
        Some(Either::Request(request)) => request_to_json(request),
        Some(Either::Response(response)) => response_to_json(response),
        None => Err(MessageError::MissingField("message")),
    }
}

/// Converts a request or notification to JSON-RPC.
///
/// # Errors
/// If the method is missing, or a part that should be JSON is not.
pub fn request_to_json(request: &McpRequest) -> Result<Bytes, MessageError> {
    if request.method.is_empty() {
        return Err(MessageError::MissingField("method"));
    }
    let mut out = start(&request.id_json);
    out.extend_from_slice(br#","method":"#);
    json::write_quoted(&mut out, &request.method);
    match &request.params {
        Some(Params::ParamsJson(params)) => member(&mut out, "params", params),
        Some(Params::ParamsStruct(params)) => member(&mut out, "params", &struct_to_json(params)?),
        None => {}
    }
    finish(out, &request.other_members_json)
}

/// Converts a response to JSON-RPC.
///
/// # Errors
/// If the outcome is missing, or a part that should be JSON is not.
pub fn response_to_json(response: &McpResponse) -> Result<Bytes, MessageError> {
    let mut out = start(&response.id_json);
    match &response.outcome {
        Some(Outcome::ResultJson(result)) => member(&mut out, "result", result),
        Some(Outcome::ResultStruct(result)) => member(&mut out, "result", &struct_to_json(result)?),
        Some(Outcome::ErrorJson(error)) => member(&mut out, "error", error),
        None => return Err(MessageError::MissingField("outcome")),
    }
    finish(out, &response.other_members_json)
}

fn start(id: &[u8]) -> Vec<u8> {
    let mut out = br#"{"jsonrpc":"2.0""#.to_vec();
    if !id.is_empty() {
        member(&mut out, "id", id);
    }
    out
}

fn member(out: &mut Vec<u8>, key: &str, value: &[u8]) {
    out.push(b',');
    json::write_quoted(out, key);
    out.push(b':');
    out.extend_from_slice(value);
}

/// Closes the object and parses it, because its parts came from outside and may be malformed.
fn finish(mut out: Vec<u8>, other_members: &[u8]) -> Result<Bytes, MessageError> {
    for other in json::members(other_members) {
        out.push(b',');
        out.extend_from_slice(other.whole.of(other_members));
    }
    out.push(b'}');
    let out = Bytes::from(out);
    Envelope::read(out.clone(), &Limits::default()).map_err(|error| MessageError::NotJsonRpc(error.to_string()))?;
    Ok(out)
}

fn other_members(envelope: &Envelope) -> Bytes {
    let object = envelope.object_span().of(envelope.bytes());
    let mut out = Vec::new();
    for other in json::members(object) {
        let key = json::string(other.key.of(object)).unwrap_or_default();
        if !KNOWN.contains(&key.as_ref()) {
            out.push(if out.is_empty() { b'{' } else { b',' });
            out.extend_from_slice(other.whole.of(object));
        }
    }
    if !out.is_empty() {
        out.push(b'}');
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{deserialize_request, serialize_request};

    #[test]
    fn a_message_survives_protobuf_byte_for_byte() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{ "name":"a", "arguments": {"n":1.00,"big":123456789012345678901234567890}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":"é","result":{"content":[ ]}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"extra":[1, 2],"more":"x"}"#,
        ] {
            let message = message_from_json(Bytes::from_static(text.as_bytes())).unwrap();
            let carried = <McpMessage as prost::Message>::decode(&*prost::Message::encode_to_vec(&message)).unwrap();
            assert_eq!(String::from_utf8_lossy(&message_to_json(&carried).unwrap()), text);
        }
    }

    /// The gateway's own decoding has the same limits.
    /// Proves PO-1.
    #[test]
    fn messages_and_payloads_beyond_the_size_limits_are_refused() {
        let response = |payload: usize, message: usize| {
            let mut response = McpResponse { response_payload: vec![0; payload].into(), ..Default::default() };
            let used = prost::Message::encoded_len(&McpMessage { message: Some(Either::Response(response.clone())) });
            response.consent_receipt = vec![0; message.saturating_sub(used + 16)].into();
            Bytes::from(message_to_protobuf(&McpMessage { message: Some(Either::Response(response)) }, false))
        };
        assert!(message_from_protobuf(response(5_000_000, 9_999_990)).is_ok());
        for (payload, message) in [(5_000_001, 0), (0, 10_000_100)] {
            let refused = message_from_protobuf(response(payload, message));
            assert!(matches!(refused, Err(MessageError::TooLarge { .. })), "{payload} {message}");
        }
    }

    #[test]
    fn an_answer_has_an_id_a_time_and_a_signature_that_covers_them() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let mut message = message_from_json(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#)).unwrap();
        let details = AnswerDetails {
            response_id: "r".to_owned(),
            request_id: "q".to_owned(),
            mcp_version: "2025-11-25".to_owned(),
            unix_ms: 1_500,
        };
        details.add_to(&mut message);
        let Some(Either::Response(mut response)) = message.message else { panic!("it is an answer") };
        sign_answer(&mut response, &key).unwrap();
        assert_eq!(response.timestamp, Some(Timestamp { seconds: 1, nanos: 500_000_000 }));
        assert!(crate::prepare::verify_response(&response, key.verifying_key()).is_ok());
        response.request_id = "other".to_owned();
        assert!(crate::prepare::verify_response(&response, key.verifying_key()).is_err());
    }

    #[test]
    fn parts_that_are_no_json_cannot_smuggle_members_in() {
        let request = |params: &'static str, id: &'static str| McpRequest {
            method: "tools/list".to_owned(),
            params: Some(Params::ParamsJson(Bytes::from_static(params.as_bytes()))),
            id_json: Bytes::from_static(id.as_bytes()),
            ..Default::default()
        };
        for (params, id) in [("{", "1"), (r#"{},"id":2"#, "1"), ("{}", r#"1,"method":"tools/call""#), ("", "1")] {
            let carried = deserialize_request(&serialize_request(&request(params, id)).unwrap()).unwrap();
            assert!(matches!(request_to_json(&carried), Err(MessageError::NotJsonRpc(_))), "{params} {id}");
        }
        assert!(request_to_json(&request("{}", "1")).is_ok());
        assert_eq!(request_to_json(&McpRequest::default()), Err(MessageError::MissingField("method")));
        assert_eq!(response_to_json(&McpResponse::default()), Err(MessageError::MissingField("outcome")));
    }
}
