//! Canonical form of a response.

use super::fields::{bytes, json, nanos, nanos_of, number, text, texts, time};
use super::frame;
use crate::canonical::{EncodeError, Encoder, MapEncoder, Value};
use crate::domain::Domain;
use crate::message_error::MessageError;
use crate::proto::mcp_response::Outcome;
use crate::proto::{McpResponse, PermissionStatus, UsageLimitations};
use crate::signed_params::{write_result, write_struct_result};
use prost::Message as _;

pub(super) fn write(response: &McpResponse) -> Result<Vec<u8>, MessageError> {
    let made = response.timestamp.as_ref().ok_or(MessageError::MissingField("timestamp"))?;
    let made = nanos("timestamp", made)?;
    let consent_expiry = nanos_of("consent_expiry", response.consent_expiry.as_ref())?;
    let limitations = response.usage_limitations.as_ref();
    let retention = limitations.and_then(|limitations| limitations.retention_until.as_ref());
    let retention = nanos_of("usage_limitations.retention_until", retention)?;
    let (profile, prefix) = frame(&response.profile, &response.domain, Domain::Response)?;
    let binary = response.response_payload.len() + response.consent_receipt.len();
    let mut prefix = prefix;
    prefix.reserve(binary + 256);
    let mut encoder = Encoder::after(profile, prefix).made_of(response.encoded_len());
    encoder.value().map(|map| {
        map.entry("timestamp").time(made);
        time(map, "consent_expiry", consent_expiry);
        if let Some(limitations) = limitations {
            map.entry("usage_limitations").map(|map| limitation_fields(map, limitations, retention))?;
        }
        document_fields(map, response)?;
        answer_fields(map, response)
    })?;
    Ok(encoder.finish()?)
}

/// Writes the fields that the specification of `mcp-cbor/1` defines, except times.
fn document_fields(map: &mut MapEncoder<'_>, response: &McpResponse) -> Result<(), EncodeError> {
    text(map, "response_id", &response.response_id);
    text(map, "request_id", &response.request_id);
    text(map, "mcp_version", &response.mcp_version);
    map.entry("status").signed(response.status.into());
    text(map, "status_message", &response.status_message);
    if !response.permission_statuses.is_empty() {
        map.entry("permission_statuses").array(|array| {
            response.permission_statuses.iter().try_for_each(|status| status_value(array.item(), status))
        })?;
    }
    bytes(map, "response_payload", &response.response_payload);
    bytes(map, "consent_receipt", &response.consent_receipt);
    bytes(map, "compensation_receipt", &response.compensation_receipt);
    if response.extensions.is_empty() {
        return Ok(());
    }
    map.entry("extensions").array(|array| {
        response.extensions.iter().try_for_each(|extension| {
            array.item().map(|map| {
                text(map, "type_url", &extension.type_url);
                bytes(map, "value", &extension.value);
                Ok(())
            })
        })
    })
}

/// Writes the fields of an MCP response, and those that the signature needs.
fn answer_fields(map: &mut MapEncoder<'_>, response: &McpResponse) -> Result<(), EncodeError> {
    text(map, "profile", &response.profile);
    text(map, "domain", &response.domain);
    bytes(map, "nonce", &response.nonce);
    bytes(map, "request_hash", &response.request_hash);
    match &response.outcome {
        Some(Outcome::ResultJson(result)) => write_result(map.entry("result"), result)?,
        Some(Outcome::ResultStruct(result)) => write_struct_result(map.entry("result"), result)?,
        Some(Outcome::ErrorJson(error)) => map.entry("error").json(error)?,
        None => {}
    }
    json(map, "other_members", &response.other_members_json)
}

fn status_value(value: Value<'_>, status: &PermissionStatus) -> Result<(), EncodeError> {
    value.map(|map| {
        text(map, "resource_identifier", &status.resource_identifier);
        number(map, "requested_action", status.requested_action.into());
        map.entry("granted").bool(status.granted);
        text(map, "reason", &status.reason);
        Ok(())
    })
}

fn limitation_fields(
    map: &mut MapEncoder<'_>,
    limitations: &UsageLimitations,
    retention: Option<i64>,
) -> Result<(), EncodeError> {
    time(map, "retention_until", retention);
    texts(map, "allowed_uses", &limitations.allowed_uses)?;
    texts(map, "prohibited_uses", &limitations.prohibited_uses)?;
    number(map, "max_uses", limitations.max_uses.into());
    Ok(())
}
