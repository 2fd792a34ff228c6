//! Client information in observed requests.

use bytes::Bytes;
use signalbox_engine::ClientProfile;
use signalbox_wire::{Envelope, Revision, Span, json, meta};

/// Request that opens a legacy session.
pub(super) const INITIALIZE: &str = "initialize";

/// Returns the client information in a request: in `initialize`, and since 2026-07-28 in every request.
pub(super) fn of_request(message: &Envelope) -> Option<ClientProfile> {
    if message.method() == Some(INITIALIZE) {
        // A server answers an unknown revision with another one.
        let asked = message.param("protocolVersion").and_then(|span| text(message, span));
        let revision = asked.and_then(|text| Revision::parse(&text)).unwrap_or(Revision::LATEST_LEGACY);
        return Some(profile(message, revision, message.param("capabilities"), message.param("clientInfo")));
    }
    let revision = revision_of(message)?;
    let said = |name| message.param_meta(name);
    Some(profile(message, revision, said(meta::CLIENT_CAPABILITIES), said(meta::CLIENT_INFO)))
}

/// Returns the revision named in a request's metadata.
pub(super) fn revision_of(message: &Envelope) -> Option<Revision> {
    let span = message.param_meta(meta::PROTOCOL_VERSION)?;
    Revision::parse(&text(message, span)?)
}

/// Returns the revision in the answer to `initialize`.
pub(super) fn negotiated_revision(answer: &Envelope) -> Option<Revision> {
    let span = answer.result_member("protocolVersion")?;
    Revision::parse(&text(answer, span)?)
}

/// Returns the same client with the negotiated revision.
pub(super) fn at(client: &ClientProfile, revision: Revision) -> ClientProfile {
    ClientProfile::new(revision, client.capabilities.clone(), client.info.clone())
}

/// Returns `true` if both profiles are equal.
pub(super) fn is_same(one: &ClientProfile, other: &ClientProfile) -> bool {
    one.revision == other.revision && one.info == other.info && one.capabilities == other.capabilities
}

/// Creates a profile. The parts are copied, so that they do not keep the message in memory.
fn profile(message: &Envelope, revision: Revision, capabilities: Option<Span>, info: Option<Span>) -> ClientProfile {
    let copied = |span: Span| Bytes::copy_from_slice(span.of(message.bytes()));
    let capabilities = capabilities.map_or_else(|| Bytes::from_static(b"{}"), copied);
    ClientProfile::new(revision, capabilities, info.map(copied))
}

fn text(message: &Envelope, span: Span) -> Option<String> {
    json::string(span.of(message.bytes())).map(|text| text.into_owned())
}
