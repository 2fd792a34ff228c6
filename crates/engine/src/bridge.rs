//! What must differ in a message when its two ends speak different eras.
//!
//! This covers the plain methods (tools, prompts, resources, completion). What needs more than a field added or read is
//! refused by name: the feature and both revisions stand in the error.

use crate::exchange::Call;
use crate::fault::{Fault, FaultKind};
use signalbox_wire::{Edits, Envelope, Era, Revision, Span, json, meta, method};

/// Fits a request to the era of the connection it leaves by.
///
/// # Errors
/// A fault that names what cannot be carried.
pub fn request(call: &mut Call, to: Revision, our_info: &str) -> Result<(), Fault> {
    match (call.era, to.era()) {
        (Era::Legacy, Era::Modern) => {
            if !carried(&call.method) {
                return Err(not_bridged(&call.method, call.client.revision, to));
            }
            describe(call, to, our_info);
            Ok(())
        }
        (Era::Modern, Era::Legacy) => {
            let retry = ["inputResponses", "requestState"];
            let params = call.envelope.params().unwrap_or_default();
            if retry.iter().any(|key| json::member(params, key).is_some()) {
                return Err(not_bridged("multi round-trip input", call.client.revision, to));
            }
            if !carried(&call.method) {
                return Err(not_bridged(&call.method, call.client.revision, to));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Fits an answer of a backend to the era of the client that waits for it.
///
/// # Errors
/// A fault that names what cannot be carried.
pub fn answer(
    method: &str,
    client: Revision,
    backend: Revision,
    message: &Envelope,
    edits: &mut Edits,
) -> Result<(), Fault> {
    let Some(span) = message.result_span() else { return Ok(()) };
    match (client.era(), backend.era()) {
        (Era::Modern, Era::Legacy) => {
            complete(method, message, span, edits);
            Ok(())
        }
        (Era::Legacy, Era::Modern) => {
            let result = span.of(message.bytes());
            let kind = json::member(result, "resultType").and_then(|span| json::string(span.of(result)));
            match kind.as_deref() {
                None | Some("complete") => Ok(()),
                Some("input_required") => Err(not_bridged("multi round-trip input", client, backend)),
                Some(other) => Err(not_bridged(&format!("a result of type `{other}`"), client, backend)),
            }
        }
        _ => Ok(()),
    }
}

/// The methods whose params and results both eras share.
fn carried(name: &str) -> bool {
    matches!(name, method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ | method::COMPLETION_COMPLETE)
}

fn not_bridged(feature: &str, from: Revision, to: Revision) -> Fault {
    let text = format!("{feature} cannot be carried between revisions {} and {}", from.as_str(), to.as_str());
    Fault::new(FaultKind::NotBridged, text).with_str("feature", feature)
}

/// Adds what every request of the new era says about itself. No capability is declared: the server must not ask for
/// input that the old client could not be asked for.
fn describe(call: &mut Call, to: Revision, our_info: &str) {
    let base = call.envelope.bytes();
    let version = json::quote(to.as_str());
    let info = call.client.info.as_deref().unwrap_or(our_info.as_bytes());
    let trio =
        [(meta::PROTOCOL_VERSION, version.as_bytes()), (meta::CLIENT_CAPABILITIES, b"{}"), (meta::CLIENT_INFO, info)];
    let Some(params) = call.envelope.params_span() else { return };
    if let Some(own) = json::member(params.of(base), "_meta") {
        for (key, value) in trio {
            call.edits.set_member(base, own.shift(params.start), key, value);
        }
        return;
    }
    let mut own = Vec::with_capacity(256);
    for (key, value) in trio {
        own.push(if own.is_empty() { b'{' } else { b',' });
        json::write_quoted(&mut own, key);
        own.push(b':');
        own.extend_from_slice(value);
    }
    own.push(b'}');
    call.edits.set_member(base, params, "_meta", &own);
}

/// Adds what every result of the new era has.
fn complete(name: &str, message: &Envelope, span: Span, edits: &mut Edits) {
    let result = span.of(message.bytes());
    let caching: &[(&str, &[u8])] = &[("ttlMs", b"0"), ("cacheScope", b"\"private\"")];
    let caching = if name == method::RESOURCES_READ { caching } else { &[] };
    for (key, value) in [("resultType", &b"\"complete\""[..])].iter().chain(caching) {
        if json::member(result, key).is_none() {
            edits.set_member(message.bytes(), span, key, value);
        }
    }
}
