//! Translation of error answers between the eras: codes that one of them does not know or may not use.

use super::object::{Object, is_object, says, string_of};
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Span, codes, json, method};

/// Member of `data` that keeps an old server's code when 2026-07-28 reserves it.
const LEGACY_CODE: &str = "legacyCode";
/// Maximum number of URLs in an error that is turned into questions.
pub const MAX_URL_ELICITATIONS: usize = 64;

/// Translates an error of an old server for a client of 2026-07-28. A resource that was not found is an invalid
/// parameter there. A missing capability that the server names is the same in both eras. Every other code between
/// -32099 and -32000 is reserved, so it becomes an internal error with the old code in `data.legacyCode`.
pub fn to_modern(method: &str, message: &Envelope, edits: &mut Edits) {
    let Some((error, span, code)) = read(message) else { return };
    if !(-32099..=-32000).contains(&code) {
        return;
    }
    let data = json::member(error.of(message.bytes()), "data").map(|data| data.shift(error.start));
    if code == codes::MISSING_CAPABILITY && data.is_some_and(|data| names_capabilities(data.of(message.bytes()))) {
        return;
    }
    if code == codes::RESOURCE_NOT_FOUND {
        edits.replace(span, codes::INVALID_PARAMS.to_string());
        if method == method::RESOURCES_READ || data.is_some_and(|data| names_uri(data.of(message.bytes()))) {
            return;
        }
    } else {
        edits.replace(span, codes::INTERNAL_ERROR.to_string());
    }
    let code = code.to_string();
    match data {
        Some(data) if is_object(data.of(message.bytes())) => {
            edits.set_member(message.bytes(), data, LEGACY_CODE, code.as_bytes());
        }
        Some(data) if data.of(message.bytes()) != b"null" => {}
        _ => edits.set_member(message.bytes(), error, "data", &Object::new().raw(LEGACY_CODE, code).finish()),
    }
}

/// Translates an error of 2026-07-28 for an old client. A resource that was not found has its own code there, and a
/// capability that was not declared has none.
pub fn to_legacy(method: &str, message: &Envelope, edits: &mut Edits) {
    let Some((error, span, code)) = read(message) else { return };
    if (-32022..=-32020).contains(&code) {
        return edits.replace(span, codes::INVALID_REQUEST.to_string());
    }
    if method != method::RESOURCES_READ || code != codes::INVALID_PARAMS {
        return;
    }
    let error = error.of(message.bytes());
    if json::member(error, "data").is_some_and(|data| names_uri(data.of(error))) {
        edits.replace(span, codes::RESOURCE_NOT_FOUND.to_string());
    }
}

/// URL that the user must visit before the request can succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UrlElicitation {
    /// The old server's id for the elicitation; empty if it gave none.
    pub elicitation_id: String,
    /// Address for the user to visit.
    pub url: String,
    /// Message to the user.
    pub message: String,
}

impl UrlElicitation {
    /// Builds the entry of `inputRequests` that asks for the visit.
    #[must_use]
    pub fn to_input_request(&self) -> Bytes {
        let params = Object::new().string("mode", "url").string("message", &self.message).string("url", &self.url);
        Object::new().string("method", method::ELICITATION_CREATE).raw("params", params.finish()).finish().into()
    }
}

/// Returns the URLs of an error of 2025-11-25 that asks the user to visit them first. `None` for any other error, and
/// for one that cannot be asked: without a usable URL, or with more than [`MAX_URL_ELICITATIONS`].
#[must_use]
pub fn url_elicitations(message: &Envelope) -> Option<Vec<UrlElicitation>> {
    let (error, _, codes::URL_ELICITATION_REQUIRED) = read(message)? else { return None };
    let error = error.of(message.bytes());
    let list = json::path(error, &["data", "elicitations"])?.of(error);
    let mut found = Vec::new();
    for span in json::elements(list) {
        let entry = span.of(list);
        if json::member(entry, "mode").is_some() && !says(entry, "mode", "url") {
            continue;
        }
        let Some(url) = string_of(entry, "url") else { continue };
        if found.len() == MAX_URL_ELICITATIONS {
            return None;
        }
        let text = |key| string_of(entry, key).unwrap_or_default().into_owned();
        let elicitation_id = text("elicitationId");
        found.push(UrlElicitation { elicitation_id, url: url.into_owned(), message: text("message") });
    }
    (!found.is_empty()).then_some(found)
}

/// Returns the spans of the error object and of its code, and the code.
fn read(message: &Envelope) -> Option<(Span, Span, i64)> {
    let error = message.error_span()?;
    let span = json::member(error.of(message.bytes()), "code")?.shift(error.start);
    let code = std::str::from_utf8(span.of(message.bytes())).ok()?.parse().ok()?;
    Some((error, span, code))
}

fn names_uri(data: &[u8]) -> bool {
    json::member(data, "uri").is_some_and(|uri| uri.of(data).first() == Some(&b'"'))
}

fn names_capabilities(data: &[u8]) -> bool {
    json::member(data, "requiredCapabilities").is_some_and(|named| is_object(named.of(data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(error: &str) -> Envelope {
        Envelope::parse(Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#))).unwrap()
    }

    fn fit(with: fn(&str, &Envelope, &mut Edits), method: &str, text: &str) -> String {
        let message = error(text);
        let mut edits = Edits::new();
        with(method, &message, &mut edits);
        let out = Envelope::parse(edits.apply(message.bytes())).unwrap();
        String::from_utf8(out.error().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn a_missing_resource_has_the_code_of_the_era() {
        let old = r#"{"code":-32002,"message":"no","data":{"uri":"a:b"}}"#;
        let new = r#"{"code":-32602,"message":"no","data":{"uri":"a:b"}}"#;
        assert_eq!(fit(to_modern, "resources/read", old), new);
        assert_eq!(fit(to_legacy, "resources/read", new), old);
        assert_eq!(fit(to_legacy, "tools/call", new), new);
        let undeclared = r#"{"code":-32021,"message":"no","data":{"requiredCapabilities":{}}}"#;
        assert_eq!(
            fit(to_legacy, "tools/call", undeclared),
            r#"{"code":-32600,"message":"no","data":{"requiredCapabilities":{}}}"#
        );
        let other = r#"{"code":-32602,"message":"bad","data":{"reason":"x"}}"#;
        assert_eq!(fit(to_legacy, "resources/read", other), other);
        assert_eq!(
            fit(to_modern, "resources/read", r#"{"code":-32002,"message":"no"}"#),
            r#"{"code":-32602,"message":"no"}"#
        );
    }

    #[test]
    fn a_capability_that_an_old_server_names_is_asked_of_a_new_client() {
        let named = r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}"#;
        assert_eq!(fit(to_modern, "tools/call", named), named);
        assert_eq!(
            fit(to_modern, "tools/call", r#"{"code":-32021,"message":"m","data":{"a":1}}"#),
            r#"{"code":-32603,"message":"m","data":{"a":1,"legacyCode":-32021}}"#
        );
    }

    #[test]
    fn codes_that_the_new_revision_reserves_are_told_in_data() {
        let rows = [
            (r#"{"code":-32000,"message":"m"}"#, r#"{"code":-32603,"message":"m","data":{"legacyCode":-32000}}"#),
            (
                r#"{"code":-32001,"data":{"a":1},"message":"m"}"#,
                r#"{"code":-32603,"data":{"a":1,"legacyCode":-32001},"message":"m"}"#,
            ),
            (r#"{"code":-32010,"message":"m","data":"why"}"#, r#"{"code":-32603,"message":"m","data":"why"}"#),
            (
                r#"{"code":-32022,"message":"m","data":null}"#,
                r#"{"code":-32603,"message":"m","data":{"legacyCode":-32022}}"#,
            ),
            (
                r#"{"code":-32002,"message":"early"}"#,
                r#"{"code":-32602,"message":"early","data":{"legacyCode":-32002}}"#,
            ),
        ];
        for (old, new) in rows {
            assert_eq!(fit(to_modern, "tools/call", old), new);
        }
    }

    #[test]
    fn other_errors_are_not_touched_and_cost_nothing() {
        for text in [r#"{"code":-32601,"message":"m"}"#, r#"{"code":7,"message":"m"}"#, r#"{"message":"m"}"#] {
            let message = error(text);
            let mut edits = Edits::new();
            to_modern("tools/call", &message, &mut edits);
            to_legacy("tools/call", &message, &mut edits);
            assert!(edits.is_empty(), "{text}");
        }
    }

    #[test]
    fn urls_to_visit_first_become_questions() {
        let text = r#"{"code":-32042,"message":"m","data":{"elicitations":[
            {"mode":"url","elicitationId":"e","url":"https://a/","message":"sign \"in\""},{"mode":"form"},7]}}"#;
        let found = url_elicitations(&error(text)).unwrap();
        let expected =
            UrlElicitation { elicitation_id: "e".into(), url: "https://a/".into(), message: "sign \"in\"".into() };
        assert_eq!(found, [expected]);
        assert_eq!(
            found[0].to_input_request(),
            r#"{"method":"elicitation/create","params":{"mode":"url","message":"sign \"in\"","url":"https://a/"}}"#
        );
    }

    #[test]
    fn errors_without_a_usable_url_are_no_questions() {
        let many = vec![r#"{"url":"a:b"}"#; MAX_URL_ELICITATIONS + 1].join(",");
        for text in [
            r#"{"code":-32042,"message":"m"}"#.to_owned(),
            r#"{"code":-32042,"message":"m","data":{"elicitations":[]}}"#.to_owned(),
            r#"{"code":-32041,"message":"m","data":{"elicitations":[{"url":"a:b"}]}}"#.to_owned(),
            format!(r#"{{"code":-32042,"message":"m","data":{{"elicitations":[{many}]}}}}"#),
        ] {
            assert_eq!(url_elicitations(&error(&text)), None, "{text}");
        }
    }
}
