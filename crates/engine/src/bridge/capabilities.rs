//! Translation of client capabilities between the eras, and the check that a client may be asked a question.

use super::digest::write_canonical;
use super::object::{Object, declared, is_object};
use super::questions::uses_tools;
use crate::capset::MAX_CAPABILITIES;
use crate::profile::ClientProfile;
use signalbox_wire::{Revision, json, method};
use std::collections::BTreeMap;

/// Extension that carries tasks since 2026-07-28.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Returns the `clientCapabilities` of 2026-07-28 for an old client, plus the extensions that the gateway implements,
/// as (name, raw settings). The gateway's entry overrides the client's. Keys are sorted, so equal clients give equal
/// text.
#[must_use]
pub fn to_modern(client: &ClientProfile, extensions: &[(&str, &str)]) -> String {
    let own = within_limit(&client.capabilities);
    let elicitation = declared(own, "elicitation").filter(|_| client.revision.elicitation());
    let mut merged = extensions_of(own);
    for (name, settings) in extensions {
        merged.insert((*name).to_owned(), settings.as_bytes().to_vec());
    }
    Object::new()
        .maybe("elicitation", elicitation.map(|value| modes(value, client.revision)))
        .maybe("experimental", canonical_object(own, "experimental"))
        .maybe("extensions", (!merged.is_empty()).then(|| write_extensions(merged)))
        .maybe("roots", declared(own, "roots").map(|_| "{}"))
        .maybe("sampling", declared(own, "sampling").map(|value| sampling(value, client.revision)))
        .text()
}

/// Returns the capabilities that an `initialize` to an old backend declares for a client of 2026-07-28. Keys are
/// sorted, so equal clients give equal text. `roots` has no `listChanged`: such a client cannot report changes.
#[must_use]
pub fn to_legacy(capabilities: &[u8], to: Revision) -> String {
    let own = within_limit(capabilities);
    let elicitation = declared(own, "elicitation")
        .filter(|value| if to.url_elicitation() { true } else { to.elicitation() && takes_forms(value) });
    let mut extensions = extensions_of(own);
    extensions.remove(TASKS_EXTENSION);
    // Software that speaks the older of these revisions does not read extensions.
    let extensions = (to >= Revision::LATEST_LEGACY && !extensions.is_empty()).then(|| write_extensions(extensions));
    Object::new()
        .maybe(
            "elicitation",
            elicitation.map(|value| if to.url_elicitation() { modes(value, to) } else { b"{}".into() }),
        )
        .maybe("experimental", canonical_object(own, "experimental"))
        .maybe("extensions", extensions)
        .maybe("roots", declared(own, "roots").map(|_| "{}"))
        .maybe("sampling", declared(own, "sampling").map(|value| sampling(value, to)))
        .text()
}

/// Returns true if a client with these capabilities of 2026-07-28 may be asked this.
#[must_use]
pub fn allows(capabilities: &[u8], method: &str, params: &[u8]) -> bool {
    match method {
        method::SAMPLING_CREATE_MESSAGE => declared(capabilities, "sampling")
            .is_some_and(|sampling| !uses_tools(params) || declared(sampling, "tools").is_some()),
        method::ELICITATION_CREATE => declared(capabilities, "elicitation").is_some_and(|elicitation| {
            if by_url(params) { declared(elicitation, "url").is_some() } else { takes_forms(elicitation) }
        }),
        method::ROOTS_LIST => declared(capabilities, "roots").is_some(),
        _ => false,
    }
}

/// Returns the `requiredCapabilities` of error -32021 for a client that may not be asked this.
#[must_use]
pub fn required(method: &str, params: &[u8]) -> String {
    let needed = match method {
        method::SAMPLING_CREATE_MESSAGE if uses_tools(params) => r#"{"sampling":{"tools":{}}}"#,
        method::SAMPLING_CREATE_MESSAGE => r#"{"sampling":{}}"#,
        method::ELICITATION_CREATE if by_url(params) => r#"{"elicitation":{"url":{}}}"#,
        method::ELICITATION_CREATE => r#"{"elicitation":{"form":{}}}"#,
        method::ROOTS_LIST => r#"{"roots":{}}"#,
        _ => "{}",
    };
    needed.to_owned()
}

/// Returns true if an elicitation sends the user to a URL rather than showing a form.
pub(crate) fn by_url(params: &[u8]) -> bool {
    super::object::says(params, "mode", "url")
}

/// Returns true if the client accepts forms. An elicitation capability that names no mode means forms.
fn takes_forms(elicitation: &[u8]) -> bool {
    declared(elicitation, "form").is_some() || declared(elicitation, "url").is_none()
}

/// Returns the capabilities, or none if they are too large to be a key, as for connections.
fn within_limit(capabilities: &[u8]) -> &[u8] {
    if capabilities.len() > MAX_CAPABILITIES { b"{}" } else { capabilities }
}

/// Returns the elicitation capability with its modes written out.
fn modes(elicitation: &[u8], revision: Revision) -> Vec<u8> {
    let form = takes_forms(elicitation).then(|| canonical_object(elicitation, "form").unwrap_or_else(|| b"{}".into()));
    let url = declared(elicitation, "url").filter(|_| revision.url_elicitation());
    Object::new().maybe("form", form).maybe("url", url.map(settings)).finish()
}

fn sampling(value: &[u8], revision: Revision) -> Vec<u8> {
    if !revision.sampling_tools() {
        return b"{}".into();
    }
    Object::new()
        .maybe("context", declared(value, "context").map(settings))
        .maybe("tools", declared(value, "tools").map(settings))
        .finish()
}

/// Returns settings as an object; `{}` for any other value that declares something.
fn settings(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    if is_object(value) {
        write_canonical(value, &mut out);
    } else {
        out.extend_from_slice(b"{}");
    }
    out
}

fn canonical_object(object: &[u8], key: &str) -> Option<Vec<u8>> {
    let value = json::member(object, key)?.of(object);
    is_object(value).then(|| settings(value))
}

fn extensions_of(capabilities: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let Some(span) = json::member(capabilities, "extensions") else { return BTreeMap::new() };
    let own = span.of(capabilities);
    json::members(own)
        .filter(|member| is_object(member.value.of(own)))
        .filter_map(|member| Some((json::string(member.key.of(own))?.into_owned(), settings(member.value.of(own)))))
        .collect()
}

fn write_extensions(extensions: BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    extensions.iter().fold(Object::new(), |object, (name, value)| object.raw(name, value)).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05 as R1, V2025_03_26 as R2, V2025_06_18 as R3, V2025_11_25 as R4};
    use bytes::Bytes;

    fn modern(revision: Revision, capabilities: &str, extensions: &[(&str, &str)]) -> String {
        let capabilities = Bytes::copy_from_slice(capabilities.as_bytes());
        to_modern(&ClientProfile::new(revision, capabilities, None), extensions)
    }

    #[test]
    fn an_old_client_is_declared_in_the_terms_of_the_new_era() {
        let all = r#"{"tasks":{"list":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true},
            "elicitation":{"url":{},"form":{"z":1,"a":2}},"experimental":{"x":{"b":1,"a":2}}}"#;
        assert_eq!(
            modern(R4, all, &[]),
            r#"{"elicitation":{"form":{"a":2,"z":1},"url":{}},"experimental":{"x":{"a":2,"b":1}},"roots":{},"sampling":{"context":{},"tools":{}}}"#
        );
        assert_eq!(
            modern(R3, all, &[]),
            r#"{"elicitation":{"form":{"a":2,"z":1}},"experimental":{"x":{"a":2,"b":1}},"roots":{},"sampling":{}}"#
        );
        for revision in [R1, R2] {
            assert_eq!(modern(revision, all, &[]), r#"{"experimental":{"x":{"a":2,"b":1}},"roots":{},"sampling":{}}"#);
        }
        assert_eq!(modern(R4, "{}", &[]), "{}");
        assert_eq!(modern(R4, "", &[]), "{}");
    }

    #[test]
    fn an_empty_elicitation_means_forms() {
        for revision in [R3, R4] {
            assert_eq!(modern(revision, r#"{"elicitation":{}}"#, &[]), r#"{"elicitation":{"form":{}}}"#);
        }
        assert_eq!(modern(R4, r#"{"elicitation":{"url":{}}}"#, &[]), r#"{"elicitation":{"url":{}}}"#);
        assert_eq!(modern(R4, r#"{"elicitation":null,"sampling":false}"#, &[]), "{}");
    }

    #[test]
    fn extensions_of_both_are_declared_and_ours_count() {
        let own = r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]},"x/y":{"old":1},"broken":7}}"#;
        assert_eq!(
            modern(R4, own, &[("x/y", r#"{"new":1}"#), (TASKS_EXTENSION, "{}")]),
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"mimeTypes":["a"]},"x/y":{"new":1}}}"#
        );
    }

    #[test]
    fn a_new_client_is_declared_to_an_old_backend() {
        let all = br#"{"sampling":{"tools":{}},"roots":{},"elicitation":{"url":{},"form":{}},
            "extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{}},"experimental":{"x":{}}}"#;
        assert_eq!(
            to_legacy(all, R4),
            r#"{"elicitation":{"form":{},"url":{}},"experimental":{"x":{}},"extensions":{"a/b":{}},"roots":{},"sampling":{"tools":{}}}"#
        );
        assert_eq!(to_legacy(all, R3), r#"{"elicitation":{},"experimental":{"x":{}},"roots":{},"sampling":{}}"#);
        assert_eq!(to_legacy(all, R2), r#"{"experimental":{"x":{}},"roots":{},"sampling":{}}"#);
        assert_eq!(to_legacy(br#"{"elicitation":{}}"#, R3), r#"{"elicitation":{}}"#);
        assert_eq!(to_legacy(br#"{"elicitation":{"url":{}}}"#, R3), "{}");
        assert_eq!(to_legacy(br#"{"elicitation":{"url":{}}}"#, R4), r#"{"elicitation":{"url":{}}}"#);
        assert_eq!(to_legacy(br#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#, R4), "{}");
    }

    #[test]
    fn nobody_is_asked_what_they_did_not_declare() {
        let may =
            |capabilities: &str, method: &str, params: &str| allows(capabilities.as_bytes(), method, params.as_bytes());
        let (form, url) = (r#"{"mode":"form"}"#, r#"{"mode":"url"}"#);
        let rows = [
            (r#"{"elicitation":{}}"#, "elicitation/create", form, true),
            (r#"{"elicitation":{}}"#, "elicitation/create", "{}", true),
            (r#"{"elicitation":{}}"#, "elicitation/create", url, false),
            (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", form, false),
            (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", url, true),
            ("{}", "elicitation/create", form, false),
            (r#"{"sampling":{}}"#, "sampling/createMessage", r#"{"messages":[]}"#, true),
            (r#"{"sampling":{}}"#, "sampling/createMessage", r#"{"messages":[],"tools":[]}"#, false),
            (r#"{"sampling":{"tools":{}}}"#, "sampling/createMessage", r#"{"tools":[]}"#, true),
            (r#"{"roots":{}}"#, "roots/list", "", true),
            (r#"{"sampling":{}}"#, "roots/list", "", false),
            (r#"{"roots":{}}"#, "ping", "{}", false),
        ];
        for (capabilities, method, params, expected) in rows {
            assert_eq!(may(capabilities, method, params), expected, "{method} {params} of {capabilities}");
            let needed = required(method, params.as_bytes());
            assert!(method == "ping" || may(&needed, method, params), "{needed} must be enough for {method} {params}");
        }
        assert_eq!(required("roots/list", b""), r#"{"roots":{}}"#);
        assert_eq!(required("sampling/createMessage", br#"{"toolChoice":{}}"#), r#"{"sampling":{"tools":{}}}"#);
    }

    #[test]
    fn what_is_larger_than_a_key_may_be_declares_nothing() {
        let huge = format!(r#"{{"sampling":{{}},"experimental":{{"x":{{"a":"{}"}}}}}}"#, "a".repeat(MAX_CAPABILITIES));
        assert_eq!(modern(R4, &huge, &[]), "{}");
        assert_eq!(to_legacy(huge.as_bytes(), R4), "{}");
    }
}
