//! Members of a request that name its subject.

use super::Context;
use super::params::Params;
use super::requests::{FoundRoute, Search, short};
use crate::catalog::ListKind;
use crate::fault::{Fault, FaultKind};
use signalbox_wire::completion_ref::{self, ReferenceKind};
use signalbox_wire::{Envelope, Span, json, method, uri_readings};
use std::borrow::Cow;

/// Returns true for a completion about a resource.
pub(super) fn completes_resource(message: &Envelope, params: &Params) -> bool {
    let read = |span: Span| completion_ref::read(span.of(message.bytes()));
    message.method() == Some(method::COMPLETION_COMPLETE)
        && params.reference.is_some_and(|span| matches!(read(span), Ok((ReferenceKind::Resource, _))))
}

/// Finds the subject of a completion: a prompt by name or a resource template by URI.
pub(super) fn find_reference(
    message: &Envelope,
    params: &Params,
    search: Search,
    ctx: &Context<'_>,
) -> Result<FoundRoute, Fault> {
    let bad = || Fault::new(FaultKind::InvalidParams, "params.ref must name a prompt or a resource");
    let outer = params.reference.ok_or_else(bad)?;
    let read = completion_ref::read(outer.of(message.bytes()));
    let (referenced, span) = read.map_err(|error| Fault::new(FaultKind::InvalidParams, error.to_string()))?;
    let span = Some(span.shift(outer.start));
    if referenced == ReferenceKind::Prompt {
        let (span, name) = text(message, span, "ref.name")?;
        let route = search.route(ListKind::Prompts, &name, ctx);
        let route = route.ok_or_else(|| Fault::unknown(ListKind::Prompts, &name))?;
        return Ok(FoundRoute { route, subject: Some(span) });
    }
    check_variables(message)?;
    let (span, uri) = uri_text(message, span, "ref.uri")?;
    let route = search.route(ListKind::Resources, &uri, ctx);
    let unknown = || Fault::new(FaultKind::InvalidParams, format!("Unknown resource: {}", short(&uri)));
    let route = route.ok_or_else(unknown)?;
    Ok(FoundRoute { route, subject: Some(span) })
}

/// Rejects variables of a resource template that are not strings: the URIs that they make are judged, and a server may
/// read a list or a number as a string.
fn check_variables(message: &Envelope) -> Result<(), Fault> {
    let params = message.params().unwrap_or_default();
    let member = |path: &[&str]| json::path(params, path).map(|span| span.of(params));
    let bad = |what: &str| Err(Fault::new(FaultKind::InvalidParams, format!("params.{what}")));
    let is_object = |value: &[u8]| value.starts_with(b"{") || value == b"null";
    if !["argument", "context"].iter().all(|key| member(&[key]).is_none_or(is_object)) {
        return bad("argument and params.context must be objects");
    }
    if !["name", "value"].iter().all(|key| member(&["argument", key]).is_none_or(|value| value.starts_with(b"\""))) {
        return bad("argument must have strings as name and value");
    }
    let chosen = member(&["context", "arguments"]).unwrap_or(b"null");
    let are_strings = json::members(chosen).all(|member| member.value.of(chosen).starts_with(b"\""));
    if is_object(chosen) && are_strings { Ok(()) } else { bad("context.arguments must be an object of strings") }
}

pub(super) fn text<'a>(message: &'a Envelope, span: Option<Span>, key: &str) -> Result<(Span, Cow<'a, str>), Fault> {
    span.and_then(|span| Some((span, json::string(span.of(message.bytes()))?)))
        .ok_or_else(|| Fault::new(FaultKind::InvalidParams, format!("params.{key} is required, a string")))
}

/// Reads a URI, and rejects one with control characters.
pub(super) fn uri_text<'a>(
    message: &'a Envelope,
    span: Option<Span>,
    key: &str,
) -> Result<(Span, Cow<'a, str>), Fault> {
    let (span, uri) = text(message, span, key)?;
    if uri_readings::has_control(&uri) { Err(control_in_uri(key)) } else { Ok((span, uri)) }
}

/// Rejects arguments that are not an object: permissions, constraints and rules judge the members of an object, so a
/// backend that reads text or a list as arguments would run with unjudged ones. Null means the same as no arguments.
pub(super) fn check_arguments(message: &Envelope, params: &Params) -> Result<(), Fault> {
    let arguments = params.arguments.map(|span| span.of(message.bytes()));
    match arguments.is_none_or(|value| value.starts_with(b"{") || value == b"null") {
        true => Ok(()),
        false => Err(Fault::new(FaultKind::InvalidParams, "`arguments` must be an object")),
    }
}

pub(super) fn control_in_uri(key: &str) -> Fault {
    Fault::new(FaultKind::InvalidParams, format!("params.{key} has a control character, which no URI may have"))
}
