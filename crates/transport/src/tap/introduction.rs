//! What a client says about itself, read from what it sends.

use bytes::Bytes;
use signalbox_engine::ClientProfile;
use signalbox_wire::{Envelope, Revision, Span, json, meta};

/// The request that opens a session of the old era.
pub(super) const INITIALIZE: &str = "initialize";

/// What a request says of its sender: `initialize` once, and since 2026-07-28 every request.
pub(super) fn of_request(message: &Envelope) -> Option<ClientProfile> {
    if message.method() == Some(INITIALIZE) {
        // A revision that nobody knows is answered with another one.
        let asked = message.param("protocolVersion").and_then(|span| text(message, span));
        let revision = asked.and_then(|text| Revision::parse(&text)).unwrap_or(Revision::LATEST_LEGACY);
        return Some(profile(message, revision, message.param("capabilities"), message.param("clientInfo")));
    }
    let revision = revision_of(message)?;
    let said = |name| message.param_meta(name);
    Some(profile(message, revision, said(meta::CLIENT_CAPABILITIES), said(meta::CLIENT_INFO)))
}

/// The revision that a request names for itself.
pub(super) fn revision_of(message: &Envelope) -> Option<Revision> {
    let span = message.param_meta(meta::PROTOCOL_VERSION)?;
    Revision::parse(&text(message, span)?)
}

/// The revision that the answer to `initialize` settles on.
pub(super) fn agreed(answer: &Envelope) -> Option<Revision> {
    let span = answer.result_member("protocolVersion")?;
    Revision::parse(&text(answer, span)?)
}

/// The same client, at the revision that was agreed with it.
pub(super) fn at(client: &ClientProfile, revision: Revision) -> ClientProfile {
    ClientProfile::new(revision, client.capabilities.clone(), client.info.clone())
}

/// True where both say the same.
pub(super) fn same(one: &ClientProfile, other: &ClientProfile) -> bool {
    one.revision == other.revision && one.info == other.info && one.capabilities == other.capabilities
}

/// Copies what is kept, so that it does not keep the message in memory.
fn profile(message: &Envelope, revision: Revision, capabilities: Option<Span>, info: Option<Span>) -> ClientProfile {
    let copied = |span: Span| Bytes::copy_from_slice(span.of(message.bytes()));
    let capabilities = capabilities.map_or_else(|| Bytes::from_static(b"{}"), copied);
    ClientProfile::new(revision, capabilities, info.map(copied))
}

fn text(message: &Envelope, span: Span) -> Option<String> {
    json::string(span.of(message.bytes())).map(|text| text.into_owned())
}
