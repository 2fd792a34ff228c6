//! Conversion of the entries that are not messages to records and back.

use super::proto;
use bytes::Bytes;
use signalbox_engine::record::{BackendOffer, ClientEntry, RefusedEntry, RulesEntry, SessionInfo};
use std::borrow::Cow;

pub(super) fn of_pairs(pairs: &[(String, String)]) -> Vec<proto::Pair> {
    pairs.iter().map(|(name, value)| proto::Pair { name: name.clone(), value: value.clone() }).collect()
}

pub(super) fn to_pairs(pairs: Vec<proto::Pair>) -> Vec<(String, String)> {
    pairs.into_iter().map(|pair| (pair.name, pair.value)).collect()
}

pub(super) fn of_session(info: &SessionInfo) -> proto::SessionInfo {
    proto::SessionInfo {
        external: info.external.clone(),
        client: info.client.clone(),
        client_version: info.client_version.clone(),
        revision: info.revision.clone(),
        transport: info.transport.clone(),
        proof: info.proof.clone(),
        claims: of_pairs(&info.claims),
        address: info.address.clone(),
    }
}

pub(super) fn to_session(info: proto::SessionInfo) -> SessionInfo {
    SessionInfo {
        external: info.external,
        client: info.client,
        client_version: info.client_version,
        revision: info.revision,
        transport: info.transport,
        proof: info.proof,
        claims: to_pairs(info.claims),
        address: info.address,
    }
}

pub(super) fn of_client(client: &ClientEntry) -> proto::Client {
    proto::Client { number: client.number, info: Some(of_session(&client.info)) }
}

pub(super) fn to_client(client: proto::Client) -> ClientEntry {
    ClientEntry { number: client.number, info: to_session(client.info.unwrap_or_default()) }
}

pub(super) fn of_backend(seen: &BackendOffer) -> proto::Backend {
    let part =
        |(name, bytes): &(Cow<'static, str>, Bytes)| proto::Part { name: name.to_string(), content: bytes.to_vec() };
    proto::Backend {
        backend: seen.backend.to_string(),
        view: seen.view.clone(),
        revision: seen.revision.clone(),
        hash: seen.hash.clone(),
        parts: seen.parts.iter().map(part).collect(),
        left: seen.left.clone(),
        redacted: seen.redacted,
    }
}

pub(super) fn to_backend(seen: proto::Backend) -> BackendOffer {
    BackendOffer {
        backend: seen.backend.into(),
        view: seen.view,
        revision: seen.revision,
        hash: seen.hash,
        parts: seen.parts.into_iter().map(|part| (part.name.into(), part.content.into())).collect(),
        left: seen.left,
        redacted: seen.redacted,
    }
}

pub(super) fn of_rules(rules: &RulesEntry) -> proto::Rules {
    proto::Rules { hash: rules.hash.clone(), text: rules.text.clone(), redacted: rules.redacted }
}

pub(super) fn to_rules(rules: proto::Rules) -> RulesEntry {
    RulesEntry { hash: rules.hash, text: rules.text, redacted: rules.redacted }
}

pub(super) fn of_refused(refused: &RefusedEntry) -> proto::Refused {
    proto::Refused {
        status: refused.status.map(u32::from),
        reason: refused.reason.to_string(),
        detail: refused.detail.clone(),
        client: refused.client,
    }
}

pub(super) fn to_refused(refused: proto::Refused) -> RefusedEntry {
    RefusedEntry {
        status: refused.status.and_then(|status| u16::try_from(status).ok()),
        reason: refused.reason.into(),
        detail: refused.detail,
        client: refused.client,
    }
}
