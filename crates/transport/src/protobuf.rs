//! Messages that clients carry as protobuf. They become the JSON that everything behind the fronts sees, and
//! answers become protobuf again.

use crate::large_proof::{LARGE, off_the_workers};
use crate::proved::Proved;
use bytes::Bytes;
use http::HeaderValue;
use signalbox_engine::{Caller, Fault, FaultKind};
use signalbox_runtime::clock::unix_millis;
use signalbox_runtime::{Gateway, Session};
use signalbox_seal::proto::mcp_message::Message;
use signalbox_seal::{AnswerDetails, message_from_json, message_from_protobuf, message_to_json, message_to_protobuf};
use std::sync::Arc;

/// The content type of requests and answers over HTTP.
pub(crate) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/vnd.signalbox.mcp+protobuf");
/// The subprotocol of WebSockets.
pub(crate) const SUBPROTOCOL: &str = "signalbox.v1.protobuf";

/// A message that came as protobuf.
pub(crate) struct Decoded {
    /// The same as JSON-RPC.
    pub json: Bytes,
    /// Who signed it.
    pub proof: Proved,
    /// The members that its answer repeats of it.
    pub origin: RequestOrigin,
}

/// The parts of a request that its answer speaks of.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestOrigin {
    /// Its `request_id`.
    pub request_id: String,
    /// True if the message itself is signed.
    pub signed: bool,
}

/// True where a body says that it is protobuf.
pub(crate) fn is_named(kind: Option<&HeaderValue>) -> bool {
    let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.as_bytes().eq_ignore_ascii_case(CONTENT_TYPE.as_bytes())
}

/// Reads a message, and checks who signed it; a large one on a thread that serves no connections.
///
/// # Errors
/// If it is no message.
pub(crate) async fn decode(gateway: &Arc<Gateway>, caller: &Caller, bytes: Bytes) -> Result<Decoded, Fault> {
    if bytes.len() < LARGE {
        return decode_here(gateway, caller, bytes);
    }
    let (gateway, caller) = (Arc::clone(gateway), caller.clone());
    Box::pin(off_the_workers(move || decode_here(&gateway, &caller, bytes))).await
}

fn decode_here(gateway: &Gateway, caller: &Caller, bytes: Bytes) -> Result<Decoded, Fault> {
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
    Ok(Decoded { json, proof: Proved(proof), origin })
}

/// A message for the client of this session. An answer has an id, a time and a signature of its own, as the
/// document has them; `origin` is looked up by the id of JSON-RPC. A message that is no JSON-RPC, which the gateway
/// never sends, is none.
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

/// The message after its length, where others may follow it.
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
