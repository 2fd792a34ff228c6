//! Messages that clients carry as protobuf. They become the JSON that everything behind the fronts sees, and answers become
//! protobuf again.

use crate::large_proof::{LARGE, off_the_workers};
use crate::proved::Proved;
use bytes::Bytes;
use http::HeaderValue;
use signalbox_engine::{Caller, Fault, FaultKind};
use signalbox_runtime::Gateway;
use signalbox_seal::proto::mcp_message::Message;
use signalbox_seal::{message_from_json, message_from_protobuf, message_to_json, message_to_protobuf};
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
    let signed = matches!(&message.message, Some(Message::Request(request)) if request.signature.is_some());
    let proof = if signed { gateway.confirm_protobuf(caller, &bytes) } else { Ok(None) };
    Ok(Decoded { json, proof: Proved(proof) })
}

/// A message for the client, after its length where others may follow it. A message that is no JSON-RPC, which the gateway never
/// sends, is none.
pub(crate) fn encode(json: Bytes, delimited: bool) -> Option<Bytes> {
    message_from_json(json).ok().map(|message| message_to_protobuf(&message, delimited).into())
}
