//! Translation of results between the eras: content that the client's revision lacks is converted, and members that
//! only one era has are added or removed.

use super::digest::write_canonical;
use super::object::{Object, is_object, says, string_of};
use signalbox_wire::{Edits, Envelope, Era, Revision, Span, json, meta, method};
use std::borrow::Cow;

/// Name under which converted content is reported.
const AUDIO: &str = "audio";
const RESOURCE_LINK: &str = "resource_link";
const STRUCTURED: &str = "structuredContent";

/// Members of a result that the bridge reads, as positions in the whole message.
#[derive(Default)]
pub(super) struct ResultMembers {
    /// The whole member, because it is removed most often.
    kind: Option<Span>,
    result_type: Option<Span>,
    ttl: Option<Span>,
    scope: Option<Span>,
    meta: Option<Span>,
    content: Option<Span>,
    messages: Option<Span>,
    structured: Option<Span>,
    task: Option<Span>,
}

impl ResultMembers {
    /// Finds the members in one walk over the result.
    pub(super) fn read(message: &Envelope) -> Self {
        let mut found = Self::default();
        for member in message.result_members() {
            let slot = match &*member.name {
                b"resultType" => {
                    found.kind = Some(member.whole());
                    &mut found.result_type
                }
                b"ttlMs" => &mut found.ttl,
                b"cacheScope" => &mut found.scope,
                b"_meta" => &mut found.meta,
                b"content" => &mut found.content,
                b"messages" => &mut found.messages,
                b"structuredContent" => &mut found.structured,
                b"task" => &mut found.task,
                _ => continue,
            };
            *slot = Some(member.value);
        }
        found
    }

    /// Returns the declared type of the result.
    pub(super) fn result_type<'a>(&self, message: &'a Envelope) -> Option<Cow<'a, str>> {
        self.result_type.and_then(|span| json::string(span.of(message.bytes())))
    }
}

/// Translates a result for an older client, and returns the names of the features that were converted or removed. A
/// result that already fits costs one walk over its members.
pub fn downgrade(method: &str, to: Revision, message: &Envelope, edits: &mut Edits) -> Vec<&'static str> {
    fit(method, to, message, &ResultMembers::read(message), edits)
}

/// Translates a result like `downgrade`, but with its members already found.
pub(super) fn fit(
    method: &str,
    to: Revision,
    message: &Envelope,
    found: &ResultMembers,
    edits: &mut Edits,
) -> Vec<&'static str> {
    let mut changed = Vec::new();
    let Some(result) = message.result_span() else { return changed };
    if to.era() == Era::Modern {
        return changed;
    }
    let base = message.bytes();
    strip(method, base, result, found, edits);
    match method {
        method::TOOLS_CALL => {
            if !to.resource_links()
                && let Some(content) = found.content
            {
                let mut made = 0;
                for span in json::elements(content.of(base)) {
                    older_block(base, span.shift(content.start), to, &mut made, edits, &mut changed);
                }
            }
            fit_structured(to, base, result, found, edits, &mut changed);
        }
        method::PROMPTS_GET if !to.resource_links() => {
            let Some(messages) = found.messages else { return changed };
            let mut made = 0;
            for span in json::elements(messages.of(base)) {
                let own = span.shift(messages.start);
                let Some(content) = json::member(own.of(base), "content") else { continue };
                older_block(base, content.shift(own.start), to, &mut made, edits, &mut changed);
            }
        }
        _ => {}
    }
    changed
}

/// Adds the members that every result of 2026-07-28 has. In a result of an old server these names have no meaning, so
/// their values are overwritten: otherwise such a server could ask for input, or have a session's result cached for
/// other clients.
pub fn upgrade(method: &str, message: &Envelope, edits: &mut Edits) {
    let Some(result) = message.result_span() else { return };
    let base = message.bytes();
    let found = ResultMembers::read(message);
    let mut set = |there: Option<Span>, key, value: &[u8]| {
        if there.is_none_or(|span| span.of(base) != value) {
            edits.set_member(base, result, key, value);
        }
    };
    if method == method::TOOLS_CALL && found.content.or(found.task).is_none() {
        set(None, "content", b"[]");
    }
    set(found.result_type, "resultType", b"\"complete\"");
    if method == method::RESOURCES_READ {
        set(found.ttl, "ttlMs", b"0");
        set(found.scope, "cacheScope", b"\"private\"");
    }
}

/// Extends the span of a member by the comma that separates it from its neighbour.
fn with_comma(base: &[u8], whole: Span) -> Span {
    let after = json::skip_whitespace(base, whole.end as usize);
    if base.get(after) == Some(&b',') {
        let next = json::skip_whitespace(base, after + 1);
        return Span::new(whole.start as usize, next);
    }
    let before = base[..whole.start as usize].trim_ascii_end();
    let start = if before.last() == Some(&b',') { before.len() - 1 } else { whole.start as usize };
    Span::new(start, whole.end as usize)
}

/// Returns true if complete results of this method carry cache terms.
pub(super) fn has_cache_terms(name: &str) -> bool {
    matches!(
        name,
        method::RESOURCES_READ
            | method::TOOLS_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_LIST
            | method::RESOURCES_TEMPLATES_LIST
            | method::SERVER_DISCOVER
    )
}

/// Removes the members that only results of 2026-07-28 have.
fn strip(method: &str, base: &[u8], result: Span, found: &ResultMembers, edits: &mut Edits) {
    let complete = found.result_type.is_some_and(|span| json::key_eq(span.of(base), "complete"));
    let alone = found.meta.or(found.structured).is_none() && !has_cache_terms(method);
    match found.kind.filter(|_| complete) {
        // If nothing else is removed, the comma is adjacent and the result need not be walked again.
        Some(whole) if alone => edits.remove(with_comma(base, whole)),
        Some(_) => edits.remove_member(base, result, "resultType"),
        None => {}
    }
    if has_cache_terms(method) {
        for (there, key) in [(found.ttl, "ttlMs"), (found.scope, "cacheScope")] {
            if there.is_some() {
                edits.remove_member(base, result, key);
            }
        }
    }
    let Some(own) = found.meta else { return };
    let bytes = own.of(base);
    let (mut named, mut others) = (false, false);
    for member in json::members(bytes) {
        let is_ours = json::key_eq(member.key.of(bytes), meta::SERVER_INFO);
        named |= is_ours;
        others |= !is_ours;
    }
    match (named, others) {
        (true, false) => edits.remove_member(base, result, meta::META),
        (true, true) => edits.remove_member(base, own, meta::SERVER_INFO),
        (false, _) => {}
    }
}

/// Converts a content block to a form that revisions before 2025-06-18 have. `made` counts the generated URIs.
fn older_block(
    base: &[u8],
    span: Span,
    to: Revision,
    made: &mut u32,
    edits: &mut Edits,
    changed: &mut Vec<&'static str>,
) {
    let block = span.of(base);
    let feature = if says(block, "type", RESOURCE_LINK) {
        edits.replace(span, link_as_text(block));
        RESOURCE_LINK
    } else if !to.audio() && says(block, "type", AUDIO) {
        *made += 1;
        edits.replace(span, audio_as_resource(block, *made));
        AUDIO
    } else {
        return;
    };
    if !changed.contains(&feature) {
        changed.push(feature);
    }
}

/// Converts a resource link to a text of its title, address and description.
fn link_as_text(block: &[u8]) -> Vec<u8> {
    let uri = string_of(block, "uri").unwrap_or_default();
    let mut text = string_of(block, "title").or(string_of(block, "name")).unwrap_or_default().into_owned();
    if !text.is_empty() {
        text.push_str(": ");
    }
    text.push_str(&uri);
    if let Some(description) = string_of(block, "description") {
        text.push('\n');
        text.push_str(&description);
    }
    Object::new().string("type", "text").string("text", &text).maybe("annotations", annotations(block)).finish()
}

/// Converts audio to an embedded resource with the same data. The first revision has no other form for such bytes.
fn audio_as_resource(block: &[u8], number: u32) -> Vec<u8> {
    let raw = |key: &str| json::member(block, key).map(|span| span.of(block));
    let resource = Object::new()
        .string("uri", &format!("signalbox:audio/{number}"))
        .maybe("mimeType", raw("mimeType"))
        .raw("blob", raw("data").unwrap_or(b"\"\""));
    Object::new()
        .string("type", "resource")
        .raw("resource", resource.finish())
        .maybe("annotations", annotations(block))
        .finish()
}

fn annotations(block: &[u8]) -> Option<&[u8]> {
    json::member(block, "annotations").map(|span| span.of(block)).filter(|value| is_object(value))
}

/// Converts structured content to text, if the client's revision does not know it, or knows it only as an object.
fn fit_structured(
    to: Revision,
    base: &[u8],
    result: Span,
    found: &ResultMembers,
    edits: &mut Edits,
    changed: &mut Vec<&'static str>,
) {
    let Some(span) = found.structured else { return };
    let value = span.of(base);
    if is_object(value) && to.structured_content() {
        return;
    }
    if !is_object(value) {
        edits.remove_member(base, result, STRUCTURED);
        changed.push(STRUCTURED);
        // `null` says nothing that a text should repeat.
        if value == b"null" || found.content.is_some_and(|content| tells(content.of(base), value)) {
            return;
        }
    } else if found.content.is_some_and(|content| json::elements(content.of(base)).next().is_some()) {
        return;
    } else {
        changed.push(STRUCTURED);
    }
    let text = Object::new().string("type", "text").string("text", &String::from_utf8_lossy(value)).finish();
    match found.content {
        Some(content) => append(base, content, &text, edits),
        None => edits.set_member(base, result, "content", &[b"[", &text[..], b"]"].concat()),
    }
}

/// Returns true if one of the texts is this value as JSON.
fn tells(content: &[u8], value: &[u8]) -> bool {
    let canonical = |json: &[u8]| {
        let mut out = Vec::with_capacity(json.len());
        write_canonical(json, &mut out);
        out
    };
    let wanted = canonical(value);
    json::elements(content).any(|span| {
        let block = span.of(content);
        says(block, "type", "text")
            && string_of(block, "text").is_some_and(|text| canonical(text.trim().as_bytes()) == wanted)
    })
}

/// Adds an element at the end of an array.
fn append(base: &[u8], array: Span, element: &[u8], edits: &mut Edits) {
    let mut walk = json::elements(array.of(base));
    let comma: &[u8] = if walk.by_ref().count() > 0 { b"," } else { b"" };
    if let Some(bracket) = walk.end().and_then(|end| end.checked_sub(1)) {
        edits.insert(Span::new(bracket, bracket).shift(array.start).start, [comma, element].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05 as R1, V2025_03_26 as R2, V2025_06_18 as R3, V2025_11_25 as R4, V2026_07_28 as R5};
    use bytes::Bytes;

    fn message(result: &str) -> Envelope {
        Envelope::parse(Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#))).unwrap()
    }

    fn result(message: &Envelope, edits: &Edits) -> String {
        let out = Envelope::parse(edits.apply(message.bytes())).unwrap();
        signalbox_wire::scan(out.bytes(), &signalbox_wire::Limits::default()).unwrap();
        String::from_utf8(out.result().unwrap().to_vec()).unwrap()
    }

    fn down(method: &str, to: Revision, text: &str) -> (String, Vec<&'static str>) {
        let message = message(text);
        let mut edits = Edits::new();
        let changed = downgrade(method, to, &message, &mut edits);
        (result(&message, &edits), changed)
    }

    fn up(method: &str, text: &str) -> String {
        let message = message(text);
        let mut edits = Edits::new();
        upgrade(method, &message, &mut edits);
        result(&message, &edits)
    }

    #[test]
    fn what_the_new_era_adds_to_results_is_taken_away() {
        let read = r#"{"resultType":"complete","contents":[],"ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#;
        assert_eq!(down("resources/read", R4, read), (r#"{"contents":[]}"#.into(), vec![]));
        assert_eq!(down("resources/read", R5, read), (read.into(), vec![]));
        let call =
            r#"{"content":[],"_meta":{"a/b":1,"io.modelcontextprotocol/serverInfo":{}},"resultType":"complete"}"#;
        assert_eq!(down("tools/call", R4, call).0, r#"{"content":[],"_meta":{"a/b":1}}"#);
        let task = r#"{"resultType":"task","taskId":"t","ttlMs":5}"#;
        assert_eq!(down("tools/call", R4, task).0, task);
        assert_eq!(down("completion/complete", R1, r#"{"resultType":"complete"}"#).0, "{}");
        assert_eq!(down("completion/complete", R1, r#"{"result\u0054ype":"complete"}"#).0, "{}");
    }

    #[test]
    fn a_result_that_fits_is_not_touched() {
        let plain = message(r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{},"_meta":{}}"#);
        for to in [R1, R2, R3, R4] {
            let mut edits = Edits::new();
            let changed = downgrade("tools/call", to, &plain, &mut edits);
            assert!(edits.is_empty() && changed.capacity() == 0, "{to}");
        }
    }

    #[test]
    fn the_first_revision_gets_audio_as_a_resource() {
        let call = r#"{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav","annotations":{"priority":1}},{"type":"text","text":"t"},{"type":"audio","data":"BBBB","mimeType":"audio/ogg"}]}"#;
        assert_eq!(
            down("tools/call", R1, call),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"signalbox:audio/1","mimeType":"audio/wav","blob":"AAAA"},"annotations":{"priority":1}},{"type":"text","text":"t"},{"type":"resource","resource":{"uri":"signalbox:audio/2","mimeType":"audio/ogg","blob":"BBBB"}}]}"#.into(),
                vec!["audio"]
            )
        );
        assert_eq!(down("tools/call", R2, call), (call.into(), vec![]));
        let prompt =
            r#"{"messages":[{"role":"user","content":{"type":"audio","data":"AA==","mimeType":"audio/wav"}}]}"#;
        assert_eq!(
            down("prompts/get", R1, prompt).0,
            r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"signalbox:audio/1","mimeType":"audio/wav","blob":"AA=="}}}]}"#
        );
    }

    #[test]
    fn links_become_text_before_2025_06_18() {
        let call = r#"{"content":[{"type":"resource_link","name":"n","uri":"file:///a","description":"about \"a\""},{"type":"resource_link","uri":"b:"}]}"#;
        for to in [R1, R2] {
            assert_eq!(
                down("tools/call", to, call),
                (
                    r#"{"content":[{"type":"text","text":"n: file:///a\nabout \"a\""},{"type":"text","text":"b:"}]}"#
                        .into(),
                    vec!["resource_link"]
                )
            );
        }
        assert_eq!(down("tools/call", R3, call).0, call);
        let prompt =
            r#"{"messages":[{"role":"user","content":{"type":"resource_link","title":"T","name":"n","uri":"b:"}}]}"#;
        assert_eq!(
            down("prompts/get", R2, prompt).0,
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"T: b:"}}]}"#
        );
    }

    #[test]
    fn structured_content_that_is_no_object_is_told_as_text() {
        for to in [R1, R3, R4] {
            assert_eq!(
                down(
                    "tools/call",
                    to,
                    r#"{"resultType":"complete","content":[{"type":"image"}],"structuredContent":[1,"a"]}"#
                ),
                (
                    r#"{"content":[{"type":"image"},{"type":"text","text":"[1,\"a\"]"}]}"#.into(),
                    vec!["structuredContent"]
                )
            );
        }
        let told =
            r#"{"structuredContent":[1,{"b":1,"a":2}],"content":[{"type":"text","text":" [1, {\"a\":2,\"b\":1}]\n"}]}"#;
        assert_eq!(
            down("tools/call", R4, told).0,
            r#"{"content":[{"type":"text","text":" [1, {\"a\":2,\"b\":1}]\n"}]}"#
        );
        assert_eq!(
            down("tools/call", R4, r#"{"structuredContent":7,"content":[]}"#).0,
            r#"{"content":[{"type":"text","text":"7"}]}"#
        );
        assert_eq!(down("tools/call", R4, r#"{"structuredContent":null,"content":[]}"#).0, r#"{"content":[]}"#);
        let object = r#"{"structuredContent":{"a":1},"content":[]}"#;
        assert_eq!(down("tools/call", R4, object), (object.into(), vec![]));
    }

    #[test]
    fn revisions_without_structured_content_get_a_text_when_there_is_none() {
        for to in [R1, R2] {
            assert_eq!(
                down("tools/call", to, r#"{"structuredContent":{"a":1},"content":[ ]}"#).0,
                r#"{"structuredContent":{"a":1},"content":[ {"type":"text","text":"{\"a\":1}"}]}"#
            );
            assert_eq!(
                down("tools/call", to, r#"{"structuredContent":{"a":1}}"#).0,
                r#"{"structuredContent":{"a":1},"content":[{"type":"text","text":"{\"a\":1}"}]}"#
            );
        }
    }

    #[test]
    fn results_of_old_servers_get_what_the_new_era_requires() {
        assert_eq!(up("tools/call", r#"{"content":[]}"#), r#"{"content":[],"resultType":"complete"}"#);
        assert_eq!(up("tools/call", "{}"), r#"{"content":[],"resultType":"complete"}"#);
        assert_eq!(
            up("resources/read", r#"{"contents":[]}"#),
            r#"{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#
        );
        assert_eq!(
            up("resources/read", r#"{"contents":[],"ttlMs":9,"cacheScope":"public","resultType":"input_required"}"#),
            r#"{"contents":[],"ttlMs":0,"cacheScope":"private","resultType":"complete"}"#,
            "words of the new era mean nothing in a result of the old one"
        );
        let full = r#"{"content":[],"resultType":"complete"}"#;
        assert_eq!(up("tools/call", full), full);
    }
}
