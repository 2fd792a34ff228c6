//! URIs of resources in results and arguments of calls, where several backends have resources.
//!
//! A client reads a URI that it finds in a result from the gateway, and another backend may have the same URI. Such a
//! URI is exposed as `BACKEND+URI`, as in lists. In arguments for tools of that backend it is changed back to the
//! backend's form.

use super::Context;
use crate::catalog::{CallerView, NameStyle, Route};
use crate::exchange::Exchange;
use signalbox_wire::{Edits, Envelope, Span, json, method};

/// Maximum number of URIs inspected in one message. Each costs a comparison with every template.
const MAX_URIS: usize = 1024;
/// Maximum depth to which arguments are searched.
const MAX_DEPTH: usize = 16;
/// Member of `_meta` that covers a message with a signature, which a changed URI would break.
const SIGNATURE: &str = "io.signalbox/signature";

/// Replaces the backend's URIs in a result by the exposed ones, if the client would otherwise read them elsewhere.
pub(super) fn rename_uris(exchange: &Exchange, message: &Envelope, edits: &mut Edits, ctx: &Context<'_>) {
    let (Some(backend), Some(whole)) = (&exchange.backend, message.result_span()) else { return };
    let reads = exchange.renamed_uri.is_some();
    if !reads && (!ctx.catalog.shares_uris(backend) || ctx.sight.and_then(CallerView::sole).is_some()) {
        return;
    }
    let result = whole.of(message.bytes());
    let is_result_of_call = exchange.method != method::RESOURCES_READ;
    if is_result_of_call && (!may_hold_uris(result) || is_signed(result)) {
        return;
    }
    let knows_links = exchange.client.as_ref().is_none_or(|client| client.revision.resource_links());
    let mut rename = |object: &[u8], start: u32| {
        // A client of an older revision gets a link as text.
        if is_result_of_call && !knows_links && json::path(object, &["uri"]).is_some() {
            return;
        }
        for path in [&["uri"][..], &["resource", "uri"]] {
            let Some(span) = json::path(object, path) else { continue };
            let Some(uri) = json::string(span.of(object)) else { continue };
            let asked = exchange.renamed_uri.as_ref().filter(|(theirs, _)| **theirs == *uri).map(|(_, ours)| &**ours);
            if let Some(ours) = asked.map(Into::into).or_else(|| ctx.catalog.exposed_uri(backend, &uri)) {
                edits.replace(span.shift(start), json::quote(&ours));
            }
        }
    };
    let (list, inner) = match &*exchange.method {
        method::RESOURCES_READ => ("contents", None),
        method::TOOLS_CALL | method::TASKS_RESULT => ("content", None),
        method::PROMPTS_GET => ("messages", Some("content")),
        _ => return,
    };
    let Some(array) = json::member(result, list) else { return };
    for element in json::elements(array.of(result)).take(MAX_URIS) {
        let (object, start) = (element.of(array.of(result)), whole.start + array.start + element.start);
        match inner {
            None => rename(object, start),
            Some(member) => {
                if let Some(span) = json::member(object, member) {
                    rename(span.of(object), start + span.start);
                }
            }
        }
    }
}

/// Restores the backend's own URIs in the arguments of a call that uses exposed ones.
pub(super) fn restore_uris(
    exchange: &Exchange,
    route: &Route,
    message: &Envelope,
    edits: &mut Edits,
    ctx: &Context<'_>,
) {
    if exchange.method != method::TOOLS_CALL || !ctx.catalog.shares_uris(&route.backend) {
        return;
    }
    let Some(arguments) = message.params_members().find(|member| *member.name == *b"arguments") else { return };
    let arguments = arguments.value;
    let bytes = arguments.of(message.bytes());
    let qualifies = |at: usize| bytes[..at].ends_with(route.backend.as_bytes());
    if !memchr::memchr_iter(b'+', bytes).any(qualifies) || message.params().is_some_and(is_signed) {
        return;
    }
    let mut search = ArgumentSearch { route, ctx, edits, left: MAX_URIS };
    search.restore(bytes, arguments.start, 0);
}

struct ArgumentSearch<'a, 'b> {
    route: &'a Route,
    ctx: &'a Context<'b>,
    edits: &'a mut Edits,
    left: usize,
}

impl ArgumentSearch<'_, '_> {
    fn restore(&mut self, value: &[u8], start: u32, depth: usize) {
        if depth > MAX_DEPTH || self.left == 0 {
            return;
        }
        match value.first() {
            Some(b'{') => {
                for member in json::members(value) {
                    self.restore(member.value.of(value), start + member.value.start, depth + 1);
                }
            }
            Some(b'[') => {
                for element in json::elements(value) {
                    self.restore(element.of(value), start + element.start, depth + 1);
                }
            }
            Some(b'"') => self.restore_string(value, start),
            _ => {}
        }
    }

    fn restore_string(&mut self, value: &[u8], start: u32) {
        let Some(ours) = json::string(value) else { return };
        let Some((_, theirs)) = NameStyle::Uri.divide(&ours).filter(|(backend, _)| **backend == *self.route.backend)
        else {
            return;
        };
        self.left = self.left.saturating_sub(1);
        if self.ctx.catalog.exposed_uri(&self.route.backend, &theirs).is_some_and(|exposed| *exposed == *ours) {
            let end = start + u32::try_from(value.len()).unwrap_or(u32::MAX - start);
            self.edits.replace(Span { start, end }, json::quote(&theirs));
        }
    }
}

fn may_hold_uris(result: &[u8]) -> bool {
    memchr::memmem::find(result, b"\"uri\"").is_some()
}

fn is_signed(object: &[u8]) -> bool {
    json::path(object, &["_meta", SIGNATURE]).is_some()
}
