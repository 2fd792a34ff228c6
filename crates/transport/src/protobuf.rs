//! Messages that clients send as protobuf. They are converted to JSON for everything behind the fronts, and answers are
//! converted back.

use crate::large_proof::{LARGE, off_the_workers};
use crate::signer_proof::SignerProof;
use bytes::Bytes;
use http::HeaderValue;
use signalbox_engine::{Caller, Fault, FaultKind};
use signalbox_runtime::clock::unix_millis;
use signalbox_runtime::{Gateway, Session};
use signalbox_seal::proto::mcp_message::Message;
use signalbox_seal::{AnswerDetails, message_from_json, message_from_protobuf, message_to_json, message_to_protobuf};
use std::sync::Arc;

/// Content type of requests and responses over HTTP.
pub(crate) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/vnd.signalbox.mcp+protobuf");
/// WebSocket subprotocol for protobuf messages.
pub(crate) const SUBPROTOCOL: &str = "signalbox.v1.protobuf";

/// A protobuf message after conversion.
pub(crate) struct DecodedMessage {
    /// JSON-RPC form of the message.
    pub json: Bytes,
    /// Verified signer of the message.
    pub proof: SignerProof,
    /// Fields that its answer repeats.
    pub origin: RequestOrigin,
}

/// Fields of a request that its answer repeats.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestOrigin {
    pub request_id: String,
    /// Set if the message itself is signed.
    pub signed: bool,
}

/// Returns `true` if the content type is protobuf.
pub(crate) fn is_named(kind: Option<&HeaderValue>) -> bool {
    let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.as_bytes().eq_ignore_ascii_case(CONTENT_TYPE.as_bytes())
}

/// Decodes a message and verifies its signature. A large one is processed off the workers.
///
/// # Errors
/// Returns an error if the bytes are not a message.
pub(crate) async fn decode(gateway: &Arc<Gateway>, caller: &Caller, bytes: Bytes) -> Result<DecodedMessage, Fault> {
    if bytes.len() < LARGE {
        return decode_here(gateway, caller, bytes);
    }
    let (gateway, caller) = (Arc::clone(gateway), caller.clone());
    Box::pin(off_the_workers(move || decode_here(&gateway, &caller, bytes))).await
}

fn decode_here(gateway: &Gateway, caller: &Caller, bytes: Bytes) -> Result<DecodedMessage, Fault> {
    let message = message_from_protobuf(bytes.clone())
        .map_err(|error| Fault::new(FaultKind::Parse, format!("Parse error: {error}")))?;
    let json = message_to_json(&message)
        .map_err(|error| Fault::new(FaultKind::InvalidRequest, format!("Invalid request: {error}")))?;
    let origin = match message.message {
        Some(Message::Request(request)) => {
            RequestOrigin { signed: request.signature.is_some(), request_id: request.request_id }
        }
        _ => RequestOrigin::default(),
    };
    let proof = if origin.signed { gateway.confirm_protobuf(caller, &bytes) } else { Ok(None) };
    Ok(DecodedMessage { json, proof: SignerProof(proof), origin })
}

/// Encodes a message for the client of this session. The protobuf schema requires an answer to carry its own id, time
/// and signature; `origin` is looked up by the JSON-RPC id. Returns `None` for bytes that are not JSON-RPC, which the
/// gateway never sends.
pub(crate) fn encode(
    gateway: &Gateway,
    session: &Session,
    json: Bytes,
    origin: impl FnOnce(&[u8]) -> RequestOrigin,
) -> Option<Bytes> {
    let mut message = message_from_json(json).ok()?;
    let Some(Message::Response(response)) = &message.message else {
        return Some(message_to_protobuf(&message, false).into());
    };
    let origin = origin(&response.id_json);
    let details = AnswerDetails {
        response_id: Gateway::new_session_id().unwrap_or_default(),
        request_id: origin.request_id,
        mcp_version: session.client().map(|client| client.revision.as_str().to_owned()).unwrap_or_default(),
        unix_ms: unix_millis(),
    };
    details.add_to(&mut message);
    Some(gateway.sign_protobuf(message_to_protobuf(&message, false).into(), origin.signed))
}

/// Prefixes a message with its length, so that others can follow it.
pub(crate) fn delimited(message: &Bytes) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + 10);
    let mut length = message.len() as u64;
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push((length & 0x7f) as u8);
    out.extend_from_slice(message);
    out.into()
}
