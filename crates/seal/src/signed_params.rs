//! The signed part of params and results: everything except what gateways between signer and verifier have to change.
//!
//! Excluded are the progress token, the `_meta` keys by which a request of 2026-07-28 describes its sender, trace
//! context, and the signature itself. A `_meta` with nothing else in it is treated as absent. The name of the tool,
//! prompt or resource is removed from the params and signed separately, because gateways rename.

use std::borrow::Cow;

use prost_types::value::Kind;
use prost_types::{Struct, Value as StructValue};
use signalbox_wire::completion_ref::{self, ReferenceKind};
use signalbox_wire::{json, meta, method};

use crate::canonical::{EncodeError, MapEncoder, Value};

/// Key of `_meta` under which a JSON message carries its signature.
pub const META_SIGNATURE: &str = "io.signalbox/signature";

const LEFT_OUT: [&str; 10] = [
    meta::PROGRESS_TOKEN,
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
    meta::SERVER_INFO,
    meta::TRACEPARENT,
    meta::TRACESTATE,
    meta::BAGGAGE,
    META_SIGNATURE,
];

/// Returns the path of params members, outermost first, that leads to the name a request is about.
fn name_path(method: &str, params: &[u8]) -> &'static [&'static str] {
    match method {
        method::TOOLS_CALL | method::PROMPTS_GET => &["name"],
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => &["uri"],
        method::COMPLETION_COMPLETE => {
            let reference = json::member(params, "ref").map(|span| span.of(params));
            match reference.and_then(|reference| completion_ref::read(reference).ok()) {
                Some((ReferenceKind::Prompt, _)) => &["ref", "name"],
                Some((ReferenceKind::Resource, _)) => &["ref", "uri"],
                // Such a request is refused, so everything in it is signed as it is.
                None => &[],
            }
        }
        _ => &[],
    }
}

/// Returns the tool, prompt or resource that a request with this method and these params names.
#[must_use]
pub fn subject<'a>(method: &str, params: &'a [u8]) -> Option<Cow<'a, str>> {
    let path = name_path(method, params);
    if path.is_empty() {
        return None;
    }
    json::string(json::path(params, path)?.of(params))
}

/// Writes JSON params, without the name and the parts that change in transit.
pub(crate) fn write_params(value: Value<'_>, method: &str, params: &[u8]) -> Result<(), EncodeError> {
    let path = if subject(method, params).is_some() { name_path(method, params) } else { &[] };
    write_object(value, params, path)
}

/// Writes a JSON result, without the parts that change in transit.
pub(crate) fn write_result(value: Value<'_>, result: &[u8]) -> Result<(), EncodeError> {
    write_object(value, result, &[])
}

fn write_object(value: Value<'_>, text: &[u8], name: &[&str]) -> Result<(), EncodeError> {
    signalbox_wire::scan(text, &signalbox_wire::Limits::default())?;
    if text.get(json::skip_whitespace(text, 0)) != Some(&b'{') {
        return value.json(text);
    }
    value.map(|map| {
        for member in json::members(text) {
            let (key, inner) = (member.key.of(text), member.value.of(text));
            let key = json::string(key).unwrap_or_default();
            match name {
                [leaf] if *leaf == key => {}
                [outer, rest @ ..] if *outer == key => write_object(map.entry(&key), inner, rest)?,
                _ if key == meta::META && is_object(inner) => write_meta(map, inner)?,
                _ => map.entry(&key).json(inner)?,
            }
        }
        Ok(())
    })
}

fn write_meta(map: &mut MapEncoder<'_>, text: &[u8]) -> Result<(), EncodeError> {
    let kept = || {
        json::members(text).filter_map(|member| {
            let key = json::string(member.key.of(text))?;
            (!LEFT_OUT.contains(&key.as_ref())).then(|| (key, member.value.of(text)))
        })
    };
    if kept().next().is_none() {
        return Ok(());
    }
    map.entry(meta::META).map(|map| kept().try_for_each(|(key, value)| map.entry(&key).json(value)))
}

fn is_object(text: &[u8]) -> bool {
    text.first() == Some(&b'{')
}

/// Returns the tool, prompt or resource that a request with structured params names.
pub(crate) fn struct_subject<'a>(method: &str, params: &'a Struct) -> Option<&'a str> {
    let path = struct_path(method, params);
    let (leaf, outer) = path.split_last()?;
    let mut here = params;
    for key in outer {
        here = match here.fields.get(*key)?.kind.as_ref()? {
            Kind::StructValue(inner) => inner,
            _ => return None,
        };
    }
    match here.fields.get(*leaf)?.kind.as_ref()? {
        Kind::StringValue(text) => Some(text),
        _ => None,
    }
}

fn struct_path(method: &str, params: &Struct) -> &'static [&'static str] {
    let reference = match params.fields.get("ref").and_then(|inner| inner.kind.as_ref()) {
        Some(Kind::StructValue(inner)) if method == method::COMPLETION_COMPLETE => inner,
        _ => return name_path(method, b"{}"),
    };
    let text = |key: &str| match reference.fields.get(key).and_then(|value| value.kind.as_ref()) {
        Some(Kind::StringValue(text)) => Some(json::quote(text)),
        _ => None,
    };
    let member = |key: &str| match text(key) {
        Some(text) => format!("\"{key}\":{text}"),
        None if reference.fields.contains_key(key) => format!("\"{key}\":0"),
        None => format!("\"without {key}\":0"),
    };
    let read = format!("{{\"ref\":{{{},{},{}}}}}", member("type"), member("name"), member("uri"));
    name_path(method, read.as_bytes())
}

/// Writes structured params, without the name and the parts that change in transit.
pub(crate) fn write_struct_params(value: Value<'_>, method: &str, params: &Struct) -> Result<(), EncodeError> {
    let path = if struct_subject(method, params).is_some() { struct_path(method, params) } else { &[] };
    write_struct(value, params, path)
}

fn write_struct(value: Value<'_>, from: &Struct, name: &[&str]) -> Result<(), EncodeError> {
    value.map(|map| {
        for (key, inner) in &from.fields {
            match (name, inner.kind.as_ref()) {
                ([leaf], _) if leaf == key => {}
                ([outer, rest @ ..], Some(Kind::StructValue(inner))) if outer == key => {
                    write_struct(map.entry(key), inner, rest)?;
                }
                (_, Some(Kind::StructValue(inner))) if key == meta::META => {
                    let kept = || inner.fields.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()));
                    if kept().next().is_some() {
                        map.entry(key)
                            .map(|map| kept().try_for_each(|(key, value)| write_value(map.entry(key), value)))?;
                    }
                }
                _ => write_value(map.entry(key), inner)?,
            }
        }
        Ok(())
    })
}

/// Writes a structure as a whole.
pub(crate) fn write_whole_struct(value: Value<'_>, from: &Struct) -> Result<(), EncodeError> {
    value.map(|map| from.fields.iter().try_for_each(|(key, inner)| write_value(map.entry(key), inner)))
}

/// Writes a structured result, without the parts that change in transit.
pub(crate) fn write_struct_result(value: Value<'_>, from: &Struct) -> Result<(), EncodeError> {
    write_struct(value, from, &[])
}

fn write_value(value: Value<'_>, from: &StructValue) -> Result<(), EncodeError> {
    match &from.kind {
        None => return Err(EncodeError::NoValue),
        Some(Kind::NullValue(_)) => value.null(),
        Some(Kind::BoolValue(inner)) => value.bool(*inner),
        Some(Kind::NumberValue(inner)) => value.float(*inner)?,
        Some(Kind::StringValue(inner)) => value.text(inner),
        Some(Kind::StructValue(inner)) => write_whole_struct(value, inner)?,
        Some(Kind::ListValue(inner)) => {
            value.array(|array| inner.values.iter().try_for_each(|inner| write_value(array.item(), inner)))?;
        }
    }
    Ok(())
}
