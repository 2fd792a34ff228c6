//! Canonical form of a request.

use super::fields::{bytes, float, json, nanos, nanos_of, number, text, texts, time};
use super::frame;
use crate::canonical::{EncodeError, Encoder, MapEncoder, Value};
use crate::domain::Domain;
use crate::message_error::MessageError;
use crate::profile::Profile;
use crate::proto::mcp_request::Params;
use crate::proto::{
    AuthenticationInfo, CompensationModel, FirstSigner, McpRequest, Permission, PermissionSpecification, PurposeDna,
    RequestorIdentity, TrustInformation,
};
use crate::signed_params::{struct_subject, subject, write_params, write_struct_params, write_whole_struct};
use prost::Message as _;

/// Times of a request, converted before anything is written.
struct Times {
    made: i64,
    expiry: Option<i64>,
    purpose_expiry: Option<i64>,
    token_expiry: Option<i64>,
}

pub(super) fn write(request: &McpRequest) -> Result<Vec<u8>, MessageError> {
    let missing = MessageError::MissingField;
    let (profile, prefix) = frame(&request.profile, &request.domain, Domain::Request)?;
    let made = request.timestamp.as_ref().ok_or(missing("timestamp"))?;
    let (identity, purpose) = (request.requestor_identity.as_ref(), request.purpose_dna.as_ref());
    // `mcp-cbor/1` requires both. An MCP call in `mcp-cbor/2` names its key in the signature, and may have no purpose.
    if profile == Profile::One {
        identity.ok_or(missing("requestor_identity"))?;
        purpose.ok_or(missing("purpose_dna"))?;
    }
    let login = request.authentication_info.as_ref();
    let times = Times {
        made: nanos("timestamp", made)?,
        expiry: nanos_of("request_expiry", request.request_expiry.as_ref())?,
        purpose_expiry: nanos_of(
            "purpose_dna.purpose_expiry",
            purpose.and_then(|purpose| purpose.purpose_expiry.as_ref()),
        )?,
        token_expiry: nanos_of(
            "authentication_info.token_expiry",
            login.and_then(|login| login.token_expiry.as_ref()),
        )?,
    };
    let mut encoder = Encoder::after(profile, prefix).made_of(request.encoded_len());
    encoder.value().map(|map| {
        document_fields(map, request, &times)?;
        if let Some(identity) = identity {
            map.entry("requestor_identity").map(|map| requestor(map, identity))?;
        }
        if let Some(purpose) = purpose {
            map.entry("purpose_dna").map(|map| purpose_fields(map, purpose, times.purpose_expiry))?;
        }
        call_fields(map, request)
    })?;
    Ok(encoder.finish()?)
}

/// Writes the fields that the specification of `mcp-cbor/1` defines, except identity and purpose.
fn document_fields(map: &mut MapEncoder<'_>, request: &McpRequest, times: &Times) -> Result<(), EncodeError> {
    text(map, "request_id", &request.request_id);
    text(map, "mcp_version", &request.mcp_version);
    map.entry("timestamp").time(times.made);
    time(map, "request_expiry", times.expiry);
    text(map, "related_request_id", &request.related_request_id);
    map.entry("permissions").array(|array| {
        request.permissions.iter().try_for_each(|permission| permission_value(array.item(), permission))
    })?;
    if let Some(data) = &request.context_data {
        write_whole_struct(map.entry("context_data"), data)?;
    }
    if let Some(model) = &request.compensation_model {
        map.entry("compensation_model").map(|map| compensation(map, model))?;
    }
    if let Some(trust) = &request.trust_information {
        map.entry("trust_information").map(|map| trust_fields(map, trust))?;
    }
    if let Some(login) = &request.authentication_info {
        map.entry("authentication_info").map(|map| {
            login_fields(map, login, times.token_expiry);
            Ok(())
        })?;
    }
    if !request.metadata.is_empty() {
        map.entry("metadata").map(|map| {
            request.metadata.iter().for_each(|(key, value)| map.entry(key).text(value));
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes the fields of an MCP call, and those that the signature needs.
fn call_fields(map: &mut MapEncoder<'_>, request: &McpRequest) -> Result<(), EncodeError> {
    text(map, "profile", &request.profile);
    text(map, "domain", &request.domain);
    bytes(map, "nonce", &request.nonce);
    text(map, "method", &request.method);
    let named = match &request.params {
        Some(Params::ParamsJson(params)) => {
            write_params(map.entry("params"), &request.method, params)?;
            subject(&request.method, params).map(std::borrow::Cow::into_owned)
        }
        Some(Params::ParamsStruct(params)) => {
            write_struct_params(map.entry("params"), &request.method, params)?;
            struct_subject(&request.method, params).map(ToOwned::to_owned)
        }
        None => None,
    };
    // The name as the signer saw it. Unless a gateway renamed it, that is the one in the params.
    let name = Some(&request.signed_name).filter(|name| !name.is_empty()).or(named.as_ref());
    if let Some(name) = name {
        map.entry("name").text(name);
    }
    if let Some(first) = &request.first_signer {
        map.entry("first_signer").map(|map| {
            first_signer(map, first);
            Ok(())
        })?;
    }
    json(map, "other_members", &request.other_members_json)
}

fn first_signer(map: &mut MapEncoder<'_>, first: &FirstSigner) {
    text(map, "key_id", &first.key_id);
    bytes(map, "signature", &first.signature);
}

fn requestor(map: &mut MapEncoder<'_>, identity: &RequestorIdentity) -> Result<(), EncodeError> {
    text(map, "pseudonym_id", &identity.pseudonym_id);
    bytes(map, "public_key", &identity.public_key);
    texts(map, "attestations", &identity.attestations)
}

fn purpose_fields(map: &mut MapEncoder<'_>, purpose: &PurposeDna, expiry: Option<i64>) -> Result<(), EncodeError> {
    text(map, "purpose_id", &purpose.purpose_id);
    number(map, "primary_category", purpose.primary_category.into());
    if !purpose.secondary_categories.is_empty() {
        map.entry("secondary_categories").array(|array| {
            purpose.secondary_categories.iter().for_each(|category| array.item().signed((*category).into()));
            Ok(())
        })?;
    }
    text(map, "description", &purpose.description);
    texts(map, "data_types_involved", &purpose.data_types_involved)?;
    text(map, "legal_basis", &purpose.legal_basis);
    time(map, "purpose_expiry", expiry);
    Ok(())
}

fn permission_value(value: Value<'_>, permission: &Permission) -> Result<(), EncodeError> {
    value.map(|map| {
        text(map, "resource_identifier", &permission.resource_identifier);
        number(map, "requested_action", permission.requested_action.into());
        match &permission.permission_specification {
            Some(bounds) => map.entry("permission_specification").map(|map| bounds_fields(map, bounds)),
            None => Ok(()),
        }
    })
}

fn bounds_fields(map: &mut MapEncoder<'_>, bounds: &PermissionSpecification) -> Result<(), EncodeError> {
    number(map, "max_frequency_per_hour", bounds.max_frequency_per_hour.into());
    text(map, "data_access_scope", &bounds.data_access_scope);
    match &bounds.constraints {
        Some(constraints) => write_whole_struct(map.entry("constraints"), constraints),
        None => Ok(()),
    }
}

fn compensation(map: &mut MapEncoder<'_>, model: &CompensationModel) -> Result<(), EncodeError> {
    text(map, "model_type", &model.model_type);
    float(map, "amount", model.amount)?;
    text(map, "currency", &model.currency);
    match &model.terms {
        Some(terms) => write_whole_struct(map.entry("terms"), terms),
        None => Ok(()),
    }
}

fn trust_fields(map: &mut MapEncoder<'_>, trust: &TrustInformation) -> Result<(), EncodeError> {
    float(map, "trust_score", trust.trust_score)?;
    texts(map, "credentials", &trust.credentials)
}

fn login_fields(map: &mut MapEncoder<'_>, login: &AuthenticationInfo, expiry: Option<i64>) {
    text(map, "method", &login.method);
    bytes(map, "token", &login.token);
    time(map, "token_expiry", expiry);
}
