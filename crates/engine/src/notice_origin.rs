//! Protection of the gateway's name in notifications: a backend must not pass for the gateway or for another backend.
//!
//! The client sees one server, so the sender shows only in the logger's name and in the members of `_meta` under
//! `io.signalbox/`. The gateway controls both, and adds the backend's name wherever its text could be mistaken.

use crate::bridge::object::{Object, is_object};
use signalbox_wire::{Edits, Envelope, json, meta};

/// Name of the gateway, which no logger of a backend may use.
const GATEWAY: &str = "signalbox";
/// Prefix of the names in `_meta` that only the gateway may use.
pub(crate) const OWN_META: &str = "io.signalbox/";

/// Puts the backend's name before a logger that reads like the gateway or another backend. A logger with other than
/// printable ASCII characters always counts as such; one that is not text becomes the backend's name.
pub(crate) fn rename_logger<'a>(
    backend: &str,
    backends: impl Iterator<Item = &'a str> + Clone,
    message: &Envelope,
    edits: &mut Edits,
) {
    let (Some(whole), Some(params)) = (message.params_span(), message.params()) else { return };
    for member in json::members(params).filter(|one| json::key_eq(one.key.of(params), "logger")) {
        let name = match json::string(member.value.of(params)) {
            Some(logger) if !is_mistakable(&logger, backend, backends.clone()) => continue,
            Some(logger) => format!("{backend}/{logger}"),
            None => backend.to_owned(),
        };
        edits.replace(member.value.shift(whole.start), json::quote(&name));
    }
}

/// Replaces the members of `_meta` under `io.signalbox/` by the backend's name.
pub(crate) fn own_meta(backend: &str, message: &Envelope, edits: &mut Edits) {
    let (Some(whole), Some(params)) = (message.params_span(), message.params()) else { return };
    for member in json::members(params).filter(|one| json::key_eq(one.key.of(params), meta::META)) {
        let object = member.value.of(params);
        let is_own = |key: &[u8]| {
            json::string(key)
                .is_some_and(|key| key.get(..OWN_META.len()).is_some_and(|start| start.eq_ignore_ascii_case(OWN_META)))
        };
        if !is_object(object) || !json::members(object).any(|one| is_own(one.key.of(object))) {
            continue;
        }
        let mut kept = Object::new();
        for one in json::members(object).filter(|one| !is_own(one.key.of(object))) {
            let key = json::string(one.key.of(object)).unwrap_or_default();
            kept = kept.raw(&key, one.value.of(object));
        }
        let kept = kept.raw(meta::BACKEND, json::quote(backend)).finish();
        edits.replace(member.value.shift(whole.start), kept);
    }
}

fn is_mistakable<'a>(logger: &str, backend: &str, mut backends: impl Iterator<Item = &'a str>) -> bool {
    let is_plain = logger.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let first = logger.split(|one: char| !one.is_ascii_alphanumeric() && one != '-' && one != '_').next();
    let first = skeleton(first.unwrap_or_default());
    !is_plain
        || skeleton(logger).contains(&skeleton(GATEWAY))
        || backends.any(|other| other != backend && skeleton(other) == first)
}

/// Reduces a text to its letters and digits, with similar-looking ones made equal.
fn skeleton(text: &str) -> String {
    let alike = |one: char| match one.to_ascii_lowercase() {
        'i' | '1' | '|' | '!' => 'l',
        '0' => 'o',
        '5' | '$' => 's',
        '8' => 'b',
        '9' | 'q' => 'g',
        other => other,
    };
    text.chars().map(alike).filter(char::is_ascii_alphanumeric).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_that_reads_like_the_gateway_or_another_backend_is_mistakable() {
        let mistakable = |logger: &str| is_mistakable(logger, "files", ["files", "web-1", "b"].into_iter());
        for logger in [
            "signalbox",
            "SignalBox.auth",
            "my signalbox",
            "signal-box",
            "signaIbox",
            "s1gna1b0x",
            "s\u{456}gnalbox",
            "signal\u{200b}box",
            "signal\u{ad}box",
            "\u{ff53}ignalbox",
            "tab\there",
            "b",
            "B",
            "b/db",
            "b.auth",
            "8",
            "web-1",
            "WEB-I: x",
        ] {
            assert!(mistakable(logger), "{logger}");
        }
        for logger in ["", "db", "files", "files/db", "backend", "web-12", "my.app.Logger", "a b", "tools/web"] {
            assert!(!mistakable(logger), "{logger}");
        }
    }
}
