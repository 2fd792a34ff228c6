//! Attributes that only some entries have: the number of a message, its delivery, its transport, and the seal of an
//! entry. Most entries have few or none of them.

use crate::pack::{DecodeError, Unpack, put_bytes, put_number, put_optional, put_pairs, put_text};
use signalbox_engine::fact::{HttpHead, TransportData};
use signalbox_engine::record::{Content, Entry, MessageEntry};
use std::num::NonZeroU64;
use std::sync::Arc;

const OWN: u64 = 1;
const REDACTED: u64 = 2;
const NUMBER: u64 = 4;
const AGAIN: u64 = 8;
const LOST: u64 = 16;
const EVENT: u64 = 32;
const HTTP: u64 = 64;
const SEAL: u64 = 128;

/// Packs the attributes into `raw`, whose allocation is reused; `None` if there are none.
pub fn pack<'a>(entry: &Entry, raw: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    raw.clear();
    let message = match &entry.content {
        Content::Message(message) => Some(message),
        _ => None,
    };
    let seal = if entry.seal.is_some() { SEAL } else { 0 };
    let flags = message.map_or(0, flags) | seal;
    if flags == 0 {
        return None;
    }
    put_number(raw, flags);
    if let Some(message) = message {
        pack_message(raw, message);
    }
    if let Some(seal) = &entry.seal {
        put_bytes(raw, seal);
    }
    Some(raw)
}

fn flags(message: &MessageEntry) -> u64 {
    let carried = message.carried.as_deref();
    let all = [
        (OWN, message.own),
        (REDACTED, message.redacted),
        (NUMBER, message.number > 0),
        (AGAIN, message.again.is_some()),
        (LOST, message.lost.is_some()),
        (EVENT, carried.is_some_and(|carried| carried.event_id.is_some())),
        (HTTP, carried.is_some_and(|carried| carried.http.is_some())),
    ];
    all.into_iter().filter(|(_, there)| *there).fold(0, |flags, (flag, _)| flags | flag)
}

fn pack_message(raw: &mut Vec<u8>, message: &MessageEntry) {
    if message.number > 0 {
        put_number(raw, message.number);
    }
    if let Some(again) = message.again {
        put_number(raw, again.get());
    }
    if let Some(lost) = &message.lost {
        put_text(raw, lost);
    }
    let Some(carried) = &message.carried else { return };
    if let Some(id) = &carried.event_id {
        put_text(raw, id);
    }
    if let Some(http) = &carried.http {
        put_optional(raw, http.method.as_deref());
        put_optional(raw, http.url.as_deref());
        put_number(raw, http.status.map_or(0, u64::from));
        put_pairs(raw, &http.headers);
        raw.push(u8::from(http.redacted));
    }
}

/// Unpacks the attributes into `entry`.
pub fn unpack(packed: &[u8], entry: &mut Entry) -> Result<(), DecodeError> {
    let mut raw = Unpack(packed);
    let flags = raw.number()?;
    if let Content::Message(message) = &mut entry.content {
        unpack_message(&mut raw, flags, message)?;
    }
    if flags & SEAL != 0 {
        entry.seal = Some(raw.bytes()?.into());
    }
    Ok(())
}

fn unpack_message(raw: &mut Unpack<'_>, flags: u64, message: &mut MessageEntry) -> Result<(), DecodeError> {
    let has = |flag: u64| flags & flag != 0;
    (message.own, message.redacted) = (has(OWN), has(REDACTED));
    if has(NUMBER) {
        message.number = raw.number()?;
    }
    if has(AGAIN) {
        message.again = NonZeroU64::new(raw.number()?);
    }
    if has(LOST) {
        message.lost = Some(raw.text()?.into());
    }
    if has(EVENT) || has(HTTP) {
        let event_id = if has(EVENT) { Some(raw.text()?.into()) } else { None };
        let http = if has(HTTP) { Some(unpack_http(raw)?) } else { None };
        message.carried = Some(Arc::new(TransportData { event_id, http }));
    }
    Ok(())
}

fn unpack_http(raw: &mut Unpack<'_>) -> Result<HttpHead, DecodeError> {
    let (method, url) = (raw.optional()?, raw.optional()?);
    let status = u16::try_from(raw.number()?).map_err(|_| DecodeError("a status is out of range"))?;
    let status = Some(status).filter(|status| *status > 0);
    Ok(HttpHead { method, url, status, headers: raw.pairs()?, redacted: raw.byte()? != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::fact::Point;
    use signalbox_engine::record::{Body, MessageKind};

    #[test]
    fn what_is_torn_is_an_error_and_no_panic() {
        let head =
            HttpHead { url: Some("/mcp".into()), headers: vec![("a".into(), "b".into())], ..HttpHead::default() };
        let message = MessageEntry {
            number: 300,
            again: NonZeroU64::new(7),
            lost: Some("closed".into()),
            carried: Some(Arc::new(TransportData { event_id: Some("e".into()), http: Some(head) })),
            ..MessageEntry::new(Point::ClientOut, MessageKind::Result, 0, Body::Left)
        };
        let plain = MessageEntry::new(Point::ClientOut, MessageKind::Result, 0, Body::Left);
        let entry = |message| Entry::new(1, 1, Arc::default(), Content::Message(message));
        let whole = Entry { seal: Some([1, 2].into()), ..entry(message) };
        let mut raw = Vec::new();
        let packed = pack(&whole, &mut raw).unwrap().to_vec();
        let mut read = entry(plain.clone());
        unpack(&packed, &mut read).unwrap();
        assert_eq!(read, whole);
        for cut in 0..packed.len() {
            assert!(unpack(&packed[..cut], &mut entry(plain.clone())).is_err(), "{cut}");
        }
        assert_eq!(pack(&entry(plain), &mut raw), None);
    }
}
