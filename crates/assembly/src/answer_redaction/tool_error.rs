//! Reduces a tool's error to the detail that its caller is trusted with (G-24). [`signalbox_engine::Fault::told`] does
//! the same for the gateway's own errors.

use bytes::Bytes;
use signalbox_engine::fault::without_places;
use signalbox_engine::standing::TrustLevel;
use signalbox_wire::{Edits, Envelope, Span, json};
use std::borrow::Cow;

const FAILED: &str = "The tool failed";

/// Returns the answer with the detail for this trust level, or `None` if it is no error or needs no change.
pub(super) fn told(answer: &Bytes, trust: TrustLevel) -> Option<Bytes> {
    let answer = Envelope::parse(answer.clone()).ok()?;
    let mut edits = Edits::new();
    match (answer.result_span(), answer.error_span()) {
        _ if trust == TrustLevel::System => return None,
        (Some(result), _) if is_error(result.of(answer.bytes())) => {
            let inside = result.of(answer.bytes());
            if trust == TrustLevel::Verified {
                for text in texts(inside) {
                    filter(&answer, within(result, text), &mut edits);
                }
            } else {
                let content = format!(r#"[{{"type":"text","text":{}}}]"#, json::quote(FAILED));
                edits.set_member(answer.bytes(), result, "content", content.as_bytes());
                edits.remove_member(answer.bytes(), result, "structuredContent");
            }
        }
        (None, Some(error)) => {
            let message = json::member(error.of(answer.bytes()), "message").map(|span| within(error, span));
            match (trust, message) {
                (TrustLevel::Verified, Some(message)) => filter(&answer, message, &mut edits),
                (_, Some(message)) => edits.replace(message, json::quote(FAILED)),
                (_, None) => {}
            }
            if trust != TrustLevel::Verified {
                edits.remove_member(answer.bytes(), error, "data");
            }
        }
        _ => return None,
    }
    (!edits.is_empty()).then(|| edits.apply(answer.bytes()))
}

fn is_error(result: &[u8]) -> bool {
    json::member(result, "isError").is_some_and(|span| span.of(result) == b"true")
}

/// Returns the spans of the texts in a result's content.
fn texts(result: &[u8]) -> Vec<Span> {
    let Some(content) = json::member(result, "content") else { return Vec::new() };
    let items = json::elements(content.of(result)).map(|item| within(content, item));
    items.filter_map(|item| Some(within(item, json::member(item.of(result), "text")?))).collect()
}

/// Converts a span relative to `outer` into one relative to the whole message.
fn within(outer: Span, inner: Span) -> Span {
    Span { start: outer.start + inner.start, end: outer.start + inner.end }
}

/// Removes paths and addresses from a text.
fn filter(answer: &Envelope, text: Span, edits: &mut Edits) {
    let Some(read) = json::string(text.of(answer.bytes())) else { return };
    if let Cow::Owned(filtered) = without_places(&read) {
        edits.replace(text, json::quote(&filtered));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, trust: TrustLevel) -> Option<String> {
        told(&Bytes::copy_from_slice(text.as_bytes()), trust).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Proves G-24.
    #[test]
    fn errors_of_tools_tell_as_much_as_the_caller_is_trusted() {
        let failed = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no file /srv/x here"}],"isError":true,"structuredContent":{"at":"/srv"}}}"#;
        assert_eq!(of(failed, TrustLevel::System), None);
        let filtered = of(failed, TrustLevel::Verified).unwrap();
        assert!(filtered.contains("no file [path] here") && filtered.contains(r#""isError":true"#), "{filtered}");
        for trust in [TrustLevel::Community, TrustLevel::Untrusted] {
            let least = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"The tool failed"}],"isError":true}}"#;
            assert_eq!(of(failed, trust).as_deref(), Some(least));
        }
        let error =
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"at http://10.0.0.1:99/x","data":{"a":1}}}"#;
        assert!(of(error, TrustLevel::Verified).unwrap().contains("at [address]"));
        let least = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"The tool failed"}}"#;
        assert_eq!(of(error, TrustLevel::Untrusted).as_deref(), Some(least));
        let good = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"/srv/x"}]}}"#;
        assert_eq!(of(good, TrustLevel::Untrusted), None);
    }
}
