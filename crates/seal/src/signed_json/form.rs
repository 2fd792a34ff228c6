//! Canonical form of a signed JSON message.

use signalbox_wire::{Envelope, json};

use super::message_signature::MessageSignature;
use crate::canonical::{EncodeError, Encoder, MapEncoder};
use crate::profile::Profile;
use crate::signed_params::{write_params, write_result};

/// Members that JSON-RPC defines.
const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

pub(super) fn write(
    envelope: &Envelope,
    profile: Profile,
    signature: &MessageSignature,
) -> Result<Vec<u8>, EncodeError> {
    let length = envelope.bytes().len();
    let mut encoder = Encoder::with_capacity(profile, length).made_of(length);
    encoder.value().map(|map| {
        message_fields(map, envelope)?;
        signature_fields(map, signature)?;
        other_members(map, envelope)
    })?;
    encoder.finish()
}

fn message_fields(map: &mut MapEncoder<'_>, envelope: &Envelope) -> Result<(), EncodeError> {
    if let Some(method) = envelope.method() {
        map.entry("method").text(method);
        // Absent and empty params are the same: adding the signature creates the params.
        return write_params(map.entry("params"), method, envelope.params().unwrap_or(b"{}"));
    }
    match (envelope.result(), envelope.error()) {
        (Some(result), _) => write_result(map.entry("result"), result),
        (None, Some(error)) => write_result(map.entry("error"), error),
        (None, None) => Ok(()),
    }
}

fn signature_fields(map: &mut MapEncoder<'_>, signature: &MessageSignature) -> Result<(), EncodeError> {
    map.entry("key_id").text(&signature.key_id);
    map.entry("nonce").text(&signature.nonce);
    map.entry("signed_at").unsigned(signature.signed_at);
    map.entry("expires_at").unsigned(signature.expires_at);
    if let Some(name) = &signature.name {
        map.entry("name").text(name);
    }
    if let Some(hash) = &signature.request_hash {
        map.entry("request_hash").text(hash);
    }
    if let Some(first) = &signature.first_signer {
        map.entry("first_signer").map(|map| {
            map.entry("key_id").text(&first.key_id);
            map.entry("signature").text(&first.signature);
            Ok(())
        })?;
    }
    Ok(())
}

fn other_members(map: &mut MapEncoder<'_>, envelope: &Envelope) -> Result<(), EncodeError> {
    let object = envelope.object_span().of(envelope.bytes());
    let others = || {
        json::members(object).filter_map(|member| {
            let key = json::string(member.key.of(object))?;
            (!KNOWN.contains(&key.as_ref())).then(|| (key, member.value.of(object)))
        })
    };
    if others().next().is_none() {
        return Ok(());
    }
    map.entry("other_members").map(|map| others().try_for_each(|(key, value)| map.entry(&key).json(value)))
}
