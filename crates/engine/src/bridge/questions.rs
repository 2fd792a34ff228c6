//! Translation of a server's questions to a client: a request of its own in the old era, an entry of `inputRequests`
//! since 2026-07-28.

use super::capabilities::by_url;
use super::object::{Object, says};
use bytes::Bytes;
use signalbox_wire::{Edits, RawId, Revision, Span, builder, codes, json, meta, method};

/// A question or an answer that the other side's revision cannot express.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{feature} does not exist in the revision of the other side")]
pub struct Untranslatable {
    /// Short description of the unsupported feature.
    pub feature: &'static str,
}

const ELICITATION: Untranslatable = Untranslatable { feature: "elicitation" };
const URL: Untranslatable = Untranslatable { feature: "elicitation by URL" };
const MULTI_SELECT: Untranslatable = Untranslatable { feature: "elicitation of several choices at once" };
const CHOICES: Untranslatable = Untranslatable { feature: "elicitation of choices that are not strings" };
const TOOLS: Untranslatable = Untranslatable { feature: "sampling with tools" };
const AUDIO: Untranslatable = Untranslatable { feature: "audio in sampling" };
const PARTS: Untranslatable = Untranslatable { feature: "a sampling answer of several parts" };

/// Translates an entry of `inputRequests` to the params of a request to an old client. `mint` is the `elicitationId`
/// that an elicitation by URL gets, since 2025-11-25 requires one and 2026-07-28 has none.
///
/// # Errors
/// Returns the feature that the client's revision lacks.
pub fn to_legacy(method: &str, params: &[u8], to: Revision, mint: &str) -> Result<Bytes, Untranslatable> {
    let base = object_or_empty(params);
    let whole = Span::new(0, base.len());
    let mut edits = Edits::new();
    match method {
        method::ELICITATION_CREATE if !to.elicitation() => return Err(ELICITATION),
        method::ELICITATION_CREATE if by_url(&base) => {
            if !to.url_elicitation() {
                return Err(URL);
            }
            if json::member(&base, "elicitationId").is_none() {
                edits.set_member(&base, whole, "elicitationId", json::quote(mint).as_bytes());
            }
        }
        method::ELICITATION_CREATE if !to.url_elicitation() => {
            if json::member(&base, "mode").is_some() {
                edits.remove_member(&base, whole, "mode");
            }
            plain_choices(&base, &mut edits)?;
        }
        method::SAMPLING_CREATE_MESSAGE if !to.sampling_tools() => {
            if uses_tools(&base) {
                return Err(TOOLS);
            }
            single_contents(&base, to, &mut edits)?;
        }
        _ => {}
    }
    Ok(edits.apply(&base))
}

/// Translates the params of an old server's request to an entry of `inputRequests`, without the progress token, the
/// task and the id of an elicitation by URL.
#[must_use]
pub fn to_modern(method: &str, params: &[u8]) -> Bytes {
    let base = object_or_empty(params);
    let whole = Span::new(0, base.len());
    let mut edits = Edits::new();
    let mut mode = method != method::ELICITATION_CREATE;
    for member in json::members(&base) {
        let key = member.key.of(&base);
        mode |= json::key_eq(key, "mode");
        if json::key_eq(key, "task") {
            edits.remove_member(&base, whole, "task");
        } else if json::key_eq(key, "elicitationId") && method == method::ELICITATION_CREATE {
            edits.remove_member(&base, whole, "elicitationId");
        } else if json::key_eq(key, meta::META) {
            trim_meta(&base, whole, member.value, &mut edits);
        }
    }
    if !mode {
        edits.set_member(&base, whole, "mode", b"\"form\"");
    }
    edits.apply(&base)
}

/// Translates the result of an old client to an entry of `inputResponses`.
#[must_use]
pub fn answer_to_modern(_method: &str, result: &[u8]) -> Bytes {
    trimmed_answer(result)
}

/// Translates an entry of `inputResponses` to the result for an old server.
///
/// # Errors
/// Returns the feature that the server's revision lacks.
pub fn answer_to_legacy(method: &str, result: &[u8], to: Revision) -> Result<Bytes, Untranslatable> {
    let base = trimmed_answer(result);
    if method != method::SAMPLING_CREATE_MESSAGE || to.sampling_tools() {
        return Ok(base);
    }
    let Some(content) = json::member(&base, "content") else { return Ok(base) };
    let mut edits = Edits::new();
    if base.get(content.range().start) == Some(&b'[') {
        edits.replace(content, join_contents(content.of(&base))?);
    }
    let base = edits.apply(&base);
    let content = json::member(&base, "content").map_or(&b""[..], |span| span.of(&base));
    if is_tool_content(content) {
        return Err(TOOLS);
    }
    if says(content, "type", "audio") && !to.audio() {
        return Err(AUDIO);
    }
    Ok(base)
}

/// Builds the reply to an old backend's question: the client's answer, or an error if the backend's revision cannot
/// express it.
pub(super) fn reply(id: &RawId, method: &str, answer: &[u8], to: Revision) -> Bytes {
    match answer_to_legacy(method, answer, to) {
        Ok(result) => builder::response(id, &result),
        Err(lost) => builder::error(Some(id), codes::INTERNAL_ERROR, &lost.to_string(), None),
    }
}

/// Returns true if a sampling request offers tools to the model or mentions their use.
pub(crate) fn uses_tools(params: &[u8]) -> bool {
    json::members(params).any(|member| {
        let key = member.key.of(params);
        let value = member.value.of(params);
        ((json::key_eq(key, "tools") || json::key_eq(key, "toolChoice")) && value != b"null")
            || (json::key_eq(key, "messages") && json::elements(value).any(|span| has_tool_content(span.of(value))))
    })
}

fn has_tool_content(message: &[u8]) -> bool {
    let Some(content) = json::member(message, "content").map(|span| span.of(message)) else { return false };
    is_tool_content(content) || json::elements(content).any(|span| is_tool_content(span.of(content)))
}

fn is_tool_content(block: &[u8]) -> bool {
    says(block, "type", "tool_use") || says(block, "type", "tool_result")
}

/// Returns the params, or an empty object if they are absent. Every revision allows that.
fn object_or_empty(params: &[u8]) -> Bytes {
    if params.is_empty() { Bytes::from_static(b"{}") } else { Bytes::copy_from_slice(params) }
}

/// Removes the members of `_meta` that belong to a request of the old era, and `_meta` itself if it is then empty.
fn trim_meta(base: &[u8], whole: Span, own: Span, edits: &mut Edits) {
    let of_old = |key: &[u8]| json::key_eq(key, meta::PROGRESS_TOKEN) || json::key_eq(key, meta::RELATED_TASK);
    let bytes = own.of(base);
    let (mut gone, mut kept) = (0, 0);
    for member in json::members(bytes) {
        if of_old(member.key.of(bytes)) { gone += 1 } else { kept += 1 }
    }
    if gone > 0 && kept == 0 {
        edits.remove_member(base, whole, meta::META);
    } else if gone > 0 {
        edits.remove_member(base, own, meta::PROGRESS_TOKEN);
        edits.remove_member(base, own, meta::RELATED_TASK);
    }
}

/// Removes the `resultType` of a result and its reference to a task.
fn trimmed_answer(result: &[u8]) -> Bytes {
    let base = object_or_empty(result);
    let whole = Span::new(0, base.len());
    let mut edits = Edits::new();
    for member in json::members(&base) {
        if json::key_eq(member.key.of(&base), "resultType") {
            edits.remove_member(&base, whole, "resultType");
        } else if json::key_eq(member.key.of(&base), meta::META) {
            trim_meta(&base, whole, member.value, &mut edits);
        }
    }
    edits.apply(&base)
}

/// Rewrites the choices of a form for 2025-06-18: `enum` with `enumNames`.
fn plain_choices(base: &[u8], edits: &mut Edits) -> Result<(), Untranslatable> {
    let Some(properties) = json::path(base, &["requestedSchema", "properties"]) else { return Ok(()) };
    let bytes = properties.of(base);
    for member in json::members(bytes) {
        let schema = member.value.shift(properties.start);
        let field = schema.of(base);
        if says(field, "type", "array") {
            return Err(MULTI_SELECT);
        }
        for key in ["oneOf", "anyOf"] {
            let Some(choices) = json::member(field, key) else { continue };
            let (values, names) = split_titles(choices.of(field)).ok_or(CHOICES)?;
            edits.remove_member(base, schema, key);
            edits.set_member(base, schema, "enum", &values);
            edits.set_member(base, schema, "enumNames", &names);
        }
    }
    Ok(())
}

/// Returns the values and the titles of titled choices, each as a JSON array. `None` if a choice is not a string.
fn split_titles(choices: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut values, mut names) = (vec![b'['], vec![b'[']);
    for span in json::elements(choices) {
        let choice = span.of(choices);
        let value = json::member(choice, "const")?.of(choice);
        let title = json::member(choice, "title").map_or(value, |span| span.of(choice));
        if value.first() != Some(&b'"') || title.first() != Some(&b'"') {
            return None;
        }
        for (list, token) in [(&mut values, value), (&mut names, title)] {
            if list.len() > 1 {
                list.push(b',');
            }
            list.extend_from_slice(token);
        }
    }
    values.push(b']');
    names.push(b']');
    Some((values, names))
}

/// Splits a message with several contents into one message for each. Before 2025-11-25 a message has one content.
fn single_contents(base: &[u8], to: Revision, edits: &mut Edits) -> Result<(), Untranslatable> {
    let Some(messages) = json::member(base, "messages") else { return Ok(()) };
    let bytes = messages.of(base);
    for span in json::elements(bytes) {
        let message = span.of(bytes);
        let Some(content) = json::member(message, "content").map(|span| span.of(message)) else { continue };
        let is_audio = |block: &[u8]| says(block, "type", "audio");
        if !to.audio() && (is_audio(content) || json::elements(content).any(|part| is_audio(part.of(content)))) {
            return Err(AUDIO);
        }
        if content.first() != Some(&b'[') {
            continue;
        }
        let role = json::member(message, "role").map_or(&b"\"user\""[..], |span| span.of(message));
        let mut split = Vec::with_capacity(message.len());
        for part in json::elements(content) {
            if !split.is_empty() {
                split.push(b',');
            }
            split.extend(Object::new().raw("role", role).raw("content", part.of(content)).finish());
        }
        if split.is_empty() {
            split = Object::new().raw("role", role).raw("content", br#"{"type":"text","text":""}"#).finish();
        }
        edits.replace(span.shift(messages.start), split);
    }
    Ok(())
}

/// Reduces a list of contents to one: the only one, or the text of all.
fn join_contents(list: &[u8]) -> Result<Vec<u8>, Untranslatable> {
    let mut parts = json::elements(list);
    if let (Some(only), None) = (parts.next(), parts.next()) {
        return Ok(only.of(list).to_vec());
    }
    let mut text = String::new();
    for span in json::elements(list) {
        let part = span.of(list);
        if is_tool_content(part) {
            return Err(TOOLS);
        }
        let own = json::member(part, "text").and_then(|span| json::string(span.of(part)));
        let own = own.filter(|_| says(part, "type", "text")).ok_or(PARTS)?;
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&own);
    }
    Ok(Object::new().string("type", "text").string("text", &text).finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05 as R1, V2025_03_26 as R2, V2025_06_18 as R3, V2025_11_25 as R4};

    const ELICIT: &str = "elicitation/create";
    const SAMPLE: &str = "sampling/createMessage";

    fn old(method: &str, params: &str, to: Revision) -> Result<String, &'static str> {
        let made = to_legacy(method, params.as_bytes(), to, "minted").map_err(|lost| lost.feature)?;
        Ok(String::from_utf8(made.to_vec()).unwrap())
    }

    fn new(method: &str, params: &str) -> String {
        String::from_utf8(to_modern(method, params.as_bytes()).to_vec()).unwrap()
    }

    #[test]
    fn a_form_is_asked_of_old_clients_in_their_words() {
        let form = r#"{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l"}],"default":"s"},"n":{"type":"integer"}}}}"#;
        assert_eq!(old(ELICIT, form, R4).unwrap(), form);
        assert_eq!(
            old(ELICIT, form, R3).unwrap(),
            r#"{"message":"?","requestedSchema":{"type":"object","properties":{"size":{"type":"string","default":"s","enum":["s","l"],"enumNames":["Small","l"]},"n":{"type":"integer"}}}}"#
        );
        assert_eq!(old(ELICIT, form, R2), Err("elicitation"));
        assert_eq!(old(ELICIT, form, R1), Err("elicitation"));
    }

    #[test]
    fn what_a_form_of_2025_06_18_cannot_say_is_lost_by_name() {
        let several = r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","enum":["x"]}}}}}"#;
        assert_eq!(old(ELICIT, several, R3), Err("elicitation of several choices at once"));
        assert_eq!(old(ELICIT, several, R4).unwrap(), several);
        let odd = r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"oneOf":[{"const":1}]}}}}"#;
        assert_eq!(old(ELICIT, odd, R3), Err("elicitation of choices that are not strings"));
        assert!(MULTI_SELECT.to_string().contains("several choices"));
    }

    #[test]
    fn a_url_gets_an_id_where_one_is_required() {
        let url = r#"{"mode":"url","message":"?","url":"https://a/"}"#;
        assert_eq!(
            old(ELICIT, url, R4).unwrap(),
            r#"{"mode":"url","message":"?","url":"https://a/","elicitationId":"minted"}"#
        );
        assert_eq!(old(ELICIT, url, R3), Err("elicitation by URL"));
    }

    #[test]
    fn sampling_is_asked_with_what_the_client_knows() {
        let plain = r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":1}"#;
        for to in [R1, R2, R3, R4] {
            assert_eq!(old(SAMPLE, plain, to).unwrap(), plain);
        }
        let list =
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"}]}],"maxTokens":1}"#;
        assert_eq!(old(SAMPLE, list, R4).unwrap(), list);
        assert_eq!(
            old(SAMPLE, list, R3).unwrap(),
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"image"}}],"maxTokens":1}"#
        );
        let audio = r#"{"messages":[{"role":"user","content":{"type":"audio"}}],"maxTokens":1}"#;
        assert_eq!((old(SAMPLE, audio, R1), old(SAMPLE, audio, R2).unwrap()), (Err("audio in sampling"), audio.into()));
        for with_tools in [
            r#"{"messages":[],"tools":[]}"#,
            r#"{"messages":[],"toolChoice":{"mode":"auto"}}"#,
            r#"{"messages":[{"role":"user","content":{"type":"tool_result"}}]}"#,
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use"}]}]}"#,
        ] {
            assert_eq!(old(SAMPLE, with_tools, R3), Err("sampling with tools"), "{with_tools}");
            assert_eq!(old(SAMPLE, with_tools, R4).unwrap(), with_tools);
        }
    }

    #[test]
    fn roots_are_asked_with_an_empty_object() {
        assert_eq!(old("roots/list", "", R1).unwrap(), "{}");
        assert_eq!(new("roots/list", ""), "{}");
        assert_eq!(new("roots/list", r#"{"_meta":{"progressToken":1}}"#), "{}");
    }

    #[test]
    fn questions_of_old_servers_lose_the_old_way_of_asking() {
        assert_eq!(
            new(ELICIT, r#"{"message":"?","requestedSchema":{},"task":{"ttl":1},"_meta":{"progressToken":7,"a/b":1}}"#),
            r#"{"message":"?","requestedSchema":{},"_meta":{"a/b":1},"mode":"form"}"#
        );
        assert_eq!(
            new(ELICIT, r#"{"mode":"url","elicitationId":"e","url":"u","message":"?"}"#),
            r#"{"mode":"url","url":"u","message":"?"}"#
        );
        assert_eq!(new(SAMPLE, r#"{"task":{},"messages":[],"maxTokens":1}"#), r#"{"messages":[],"maxTokens":1}"#);
    }

    #[test]
    fn answers_travel_bare() {
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let accept = r#"{"action":"accept","content":{"name":"x"}}"#;
        assert_eq!(text(answer_to_modern(ELICIT, accept.as_bytes())), accept);
        assert_eq!(
            text(answer_to_modern(
                ELICIT,
                br#"{"action":"decline","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#
            )),
            r#"{"action":"decline"}"#
        );
        assert_eq!(
            text(answer_to_legacy(ELICIT, br#"{"resultType":"complete","action":"cancel"}"#, R3).unwrap()),
            r#"{"action":"cancel"}"#
        );
    }

    #[test]
    fn a_sampling_answer_has_one_content_before_2025_11_25() {
        let answer = |content: &str, to| {
            let result = format!(r#"{{"role":"assistant","model":"m","content":{content}}}"#);
            let made = answer_to_legacy(SAMPLE, result.as_bytes(), to).map_err(|lost| lost.feature)?;
            Ok(String::from_utf8(made[json::member(&made, "content").unwrap().range()].to_vec()).unwrap())
        };
        let two = r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
        assert_eq!(answer(two, R4), Ok(two.to_owned()));
        assert_eq!(answer(two, R3), Ok(r#"{"type":"text","text":"a\nb"}"#.to_owned()));
        assert_eq!(answer(r#"[{"type":"image"}]"#, R3), Ok(r#"{"type":"image"}"#.to_owned()));
        assert_eq!(answer(r#"[{"type":"image"},{"type":"text"}]"#, R3), Err("a sampling answer of several parts"));
        assert_eq!(answer(r#"[{"type":"tool_use"}]"#, R3), Err("sampling with tools"));
        assert_eq!(answer(r#"{"type":"audio"}"#, R1), Err("audio in sampling"));
        assert_eq!(answer("[]", R3), Ok(r#"{"type":"text","text":""}"#.to_owned()));
    }
}
