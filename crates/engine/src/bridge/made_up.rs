//! Completes results that rules, webhooks and people made up, who need not know what 2026-07-28 requires of a result.

use super::content::cached;
use bytes::Bytes;
use signalbox_wire::{Edits, Span, json};

/// Adds the members that 2026-07-28 requires and this result lacks. Members that are present are kept.
#[must_use]
pub fn complete(method: &str, result: &Bytes) -> Bytes {
    let start = json::skip_whitespace(result, 0);
    let kind = json::member(result, "resultType");
    let other = kind.is_some_and(|span| !json::key_eq(span.of(result), "complete"));
    if other || result.get(start) != Some(&b'{') {
        return result.clone();
    }
    let whole = Span::new(start, result.trim_ascii_end().len());
    let mut edits = Edits::new();
    let mut add = |key: &str, value: &[u8]| {
        if json::member(result, key).is_none() {
            edits.set_member(result, whole, key, value);
        }
    };
    add("resultType", b"\"complete\"");
    if cached(method) {
        add("ttlMs", b"0");
        add("cacheScope", b"\"private\"");
    }
    edits.apply(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_result_says_what_it_is_and_how_long_it_may_be_kept_unless_it_does_already() {
        for (method, result, expected) in [
            ("tools/call", "{}", r#"{"resultType":"complete"}"#),
            ("tools/call", " {\"content\":[]} ", " {\"content\":[],\"resultType\":\"complete\"} "),
            ("tools/call", r#"{"resultType":"complete"}"#, r#"{"resultType":"complete"}"#),
            (
                "resources/read",
                r#"{"contents":[],"ttlMs":5}"#,
                r#"{"contents":[],"ttlMs":5,"resultType":"complete","cacheScope":"private"}"#,
            ),
            ("resources/read", r#"{"resultType":"input_required"}"#, r#"{"resultType":"input_required"}"#),
            (
                "tools/list",
                r#"{"tools":[]}"#,
                r#"{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#,
            ),
            ("tools/call", "[]", "[]"),
        ] {
            assert_eq!(complete(method, &Bytes::from_static(result.as_bytes())), expected, "{method} {result}");
        }
    }
}
