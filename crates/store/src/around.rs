//! Packed forms of all contents other than messages. Fields of later versions come last, so that older rows, which end
//! before them, stay readable.

use crate::content::POINTS;
use crate::pack::{DecodeError, Unpack, put_bytes, put_number, put_optional, put_pairs, put_text};
use bytes::Bytes;
use signalbox_engine::record::{BackendOffer, ClientEntry, LostEntry, RefusedEntry, RulesEntry, SessionInfo};
use std::sync::Arc;

/// Packs the description of a session.
pub fn pack_session(raw: &mut Vec<u8>, session: &SessionInfo) {
    put_optional(raw, session.external.as_deref());
    put_optional(raw, session.client.as_deref());
    put_optional(raw, session.client_version.as_deref());
    put_optional(raw, session.revision.as_deref());
    put_text(raw, &session.transport);
    if session.proof.is_some() || session.address.is_some() || !session.claims.is_empty() {
        put_optional(raw, session.proof.as_deref());
        put_optional(raw, session.address.as_deref());
        put_pairs(raw, &session.claims);
    }
}

/// Unpacks the form that [`pack_session`] writes.
pub fn unpack_session(raw: &mut Unpack<'_>) -> Result<SessionInfo, DecodeError> {
    let mut session = SessionInfo {
        external: raw.optional()?,
        client: raw.optional()?,
        client_version: raw.optional()?,
        revision: raw.optional()?,
        transport: raw.text()?,
        ..SessionInfo::default()
    };
    if !raw.0.is_empty() {
        (session.proof, session.address) = (raw.optional()?, raw.optional()?);
        session.claims = raw.pairs()?;
    }
    Ok(session)
}

/// Packs claims for a column of their own; `None` if there are none.
pub fn pack_claims(claims: &[(String, String)]) -> Option<Vec<u8>> {
    (!claims.is_empty()).then(|| {
        let mut packed = Vec::new();
        put_pairs(&mut packed, claims);
        packed
    })
}

/// Unpacks the form that [`pack_claims`] writes.
pub fn unpack_claims(packed: Option<&[u8]>) -> Result<Vec<(String, String)>, DecodeError> {
    packed.map_or(Ok(Vec::new()), |packed| Unpack(packed).pairs())
}

/// Packs a caller without a session.
pub fn pack_client(raw: &mut Vec<u8>, client: &ClientEntry) {
    put_number(raw, client.number);
    pack_session(raw, &client.info);
}

/// Unpacks the form that [`pack_client`] writes.
pub fn unpack_client(raw: &mut Unpack<'_>) -> Result<ClientEntry, DecodeError> {
    Ok(ClientEntry { number: raw.number()?, info: unpack_session(raw)? })
}

/// Packs the catalog of a backend. Its name has a column.
pub fn pack_backend(raw: &mut Vec<u8>, seen: &BackendOffer) {
    put_text(raw, &seen.view);
    put_optional(raw, seen.revision.as_deref());
    put_text(raw, &seen.hash);
    put_number(raw, seen.parts.len() as u64);
    for (name, part) in &seen.parts {
        put_text(raw, name);
        put_bytes(raw, part);
    }
    put_number(raw, seen.left.len() as u64);
    seen.left.iter().for_each(|name| put_text(raw, name));
    raw.push(u8::from(seen.redacted));
}

/// Unpacks the form that [`pack_backend`] writes.
pub fn unpack_backend(backend: Option<Arc<str>>, raw: &mut Unpack<'_>) -> Result<BackendOffer, DecodeError> {
    let (view, revision, hash) = (raw.text()?, raw.optional()?, raw.text()?);
    let mut parts = Vec::new();
    for _ in 0..raw.count()? {
        parts.push((raw.text()?.into(), Bytes::copy_from_slice(raw.bytes()?)));
    }
    let count = raw.count()?;
    let left = (0..count).map(|_| raw.text()).collect::<Result<_, _>>()?;
    let redacted = raw.byte()? != 0;
    Ok(BackendOffer { backend: backend.unwrap_or_default(), view, revision, hash, parts, left, redacted })
}

/// Packs the rules in force.
pub fn pack_rules(raw: &mut Vec<u8>, rules: &RulesEntry) {
    put_text(raw, &rules.hash);
    put_text(raw, &rules.text);
    raw.push(u8::from(rules.redacted));
}

/// Unpacks the form that [`pack_rules`] writes.
pub fn unpack_rules(raw: &mut Unpack<'_>) -> Result<RulesEntry, DecodeError> {
    Ok(RulesEntry { hash: raw.text()?, text: raw.text()?, redacted: raw.byte()? != 0 })
}

/// Packs the loss of a message.
pub fn pack_lost(raw: &mut Vec<u8>, lost: &LostEntry) {
    put_number(raw, lost.number);
    raw.push(POINTS.iter().position(|point| *point == lost.point).unwrap_or(0) as u8);
    put_text(raw, &lost.reason);
}

/// Unpacks the form that [`pack_lost`] writes.
pub fn unpack_lost(raw: &mut Unpack<'_>) -> Result<LostEntry, DecodeError> {
    let number = raw.number()?;
    let point = POINTS.get(usize::from(raw.byte()?)).ok_or(DecodeError("a message was lost at an unknown point"))?;
    Ok(LostEntry { number, point: *point, reason: raw.text()?.into() })
}

/// Packs the rejection of a message.
pub fn pack_refused(raw: &mut Vec<u8>, refused: &RefusedEntry) {
    put_number(raw, refused.status.map_or(0, u64::from));
    put_text(raw, &refused.reason);
    put_text(raw, &refused.detail);
    put_number(raw, refused.client.unwrap_or(0));
}

/// Unpacks the form that [`pack_refused`] writes.
pub fn unpack_refused(raw: &mut Unpack<'_>) -> Result<RefusedEntry, DecodeError> {
    let status = u16::try_from(raw.number()?).map_err(|_| DecodeError("a status is out of range"))?;
    Ok(RefusedEntry {
        status: Some(status).filter(|status| *status > 0),
        reason: raw.text()?.into(),
        detail: raw.text()?,
        client: Some(raw.number()?).filter(|number| *number > 0),
    })
}
