//! Changes of lists and resources, as each era hears of them: plain notifications on the session's general stream in the
//! old one, `subscriptions/listen` in the new one.

use super::inward::in_params;
use super::{Context, FrontMachine, Lifecycle};
use crate::catalog::Changed;
use crate::command::{Command, Listen};
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, builder, json, meta, method};
use std::collections::HashMap;
use std::sync::Arc;

/// Most resources one listen request may follow.
pub const MAX_FOLLOWED: usize = 1024;

/// What one `subscriptions/listen` wants to hear.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    tools: bool,
    prompts: bool,
    resources: bool,
    followed: HashMap<(Arc<str>, Box<str>), Box<str>>,
}

impl FrontMachine {
    /// Opens a listen request: acknowledges what can be heard and keeps the exchange open.
    pub(super) fn listen(&mut self, id: ExchangeId, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(span) = in_params(message, &["notifications"]) else {
            let fault = Fault::new(FaultKind::InvalidParams, "params.notifications is required, an object");
            return self.fail(id, &fault, ctx, out);
        };
        let filter = span.of(message.bytes());
        let wants = |key: &str| json::member(filter, key).is_some_and(|span| span.of(filter) == b"true");
        let offer = ctx.catalog.offer(&self.selector(Era::Modern));
        let mut listener = Listener {
            tools: wants("toolsListChanged") && offer.tools,
            prompts: wants("promptsListChanged") && offer.prompts,
            resources: wants("resourcesListChanged") && offer.resources,
            followed: HashMap::new(),
        };
        if let Some(list) = json::member(filter, "resourceSubscriptions") {
            let array = list.of(filter);
            for uri in json::elements(array).filter_map(|span| json::string(span.of(array))).take(MAX_FOLLOWED) {
                if let Some(route) = ctx.catalog.resource(&uri) {
                    listener.followed.insert((route.backend, route.name), uri.as_ref().into());
                }
            }
        }
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let ack = acknowledgement(exchange.client_id.token(), &listener);
        out.push(Command::Send { stream: exchange.stream, bytes: ack, last: false, droppable: false, status: 200 });
        let resources = listener.followed.keys().cloned().collect::<Vec<_>>();
        self.listeners.insert(id, listener);
        out.push(Command::Listen(Listen::Open { exchange: id, resources }));
    }

    /// Tells the client that lists changed, in the way of its era.
    pub(super) fn lists_changed(&mut self, changed: Changed, out: &mut Vec<Command>) {
        let kinds = [
            (changed.tools, method::TOOLS_LIST_CHANGED),
            (changed.prompts, method::PROMPTS_LIST_CHANGED),
            (changed.resources, method::RESOURCES_LIST_CHANGED),
        ];
        for (_, name) in kinds.into_iter().filter(|(yes, _)| *yes) {
            if let Some(stream) = self.general.filter(|_| self.state == Lifecycle::Operational) {
                let bytes = builder::Notification::new(name).build();
                out.push(Command::Send { stream, bytes, last: false, droppable: false, status: 200 });
            }
            for (id, listener) in &self.listeners {
                let wanted = match name {
                    method::TOOLS_LIST_CHANGED => listener.tools,
                    method::PROMPTS_LIST_CHANGED => listener.prompts,
                    _ => listener.resources,
                };
                let Some(exchange) = self.exchanges.get(id).filter(|_| wanted) else { continue };
                let bytes = builder::Notification::new(name)
                    .meta_raw(meta::SUBSCRIPTION_ID, exchange.client_id.token())
                    .build();
                out.push(Command::Send { stream: exchange.stream, bytes, last: false, droppable: false, status: 200 });
            }
        }
    }

    /// A backend told something that a listen request follows: it goes out under our URI and the client's own id.
    pub(super) fn heard(
        &mut self,
        id: ExchangeId,
        backend: &Arc<str>,
        message: &Envelope,
        mut edits: Edits,
        out: &mut Vec<Command>,
    ) {
        let (Some(listener), Some(exchange)) = (self.listeners.get(&id), self.exchanges.get(&id)) else { return };
        if message.method() != Some(method::RESOURCES_UPDATED) {
            return;
        }
        let uri_span = in_params(message, &["uri"]);
        let uri = uri_span.and_then(|span| json::string(span.of(message.bytes())));
        let (Some(span), Some(uri)) = (uri_span, uri) else { return };
        let Some(ours) = listener.followed.get(&(Arc::clone(backend), uri.as_ref().into())) else { return };
        if **ours != *uri {
            edits.replace(span, json::quote(ours));
        }
        let subscription = exchange.client_id.token();
        match in_params(message, &["_meta"]) {
            Some(own) => edits.set_member(message.bytes(), own, meta::SUBSCRIPTION_ID, subscription),
            None => {
                let Some(params) = message.params_span() else { return };
                let mut own = b"{".to_vec();
                json::write_quoted(&mut own, meta::SUBSCRIPTION_ID);
                own.push(b':');
                own.extend_from_slice(subscription);
                own.push(b'}');
                edits.set_member(message.bytes(), params, "_meta", &own);
            }
        }
        let bytes = edits.apply(message.bytes());
        out.push(Command::Send { stream: exchange.stream, bytes, last: false, droppable: true, status: 200 });
    }
}

fn acknowledgement(id: &[u8], listener: &Listener) -> Bytes {
    let mut parts = Vec::new();
    for (on, key) in [
        (listener.tools, "toolsListChanged"),
        (listener.prompts, "promptsListChanged"),
        (listener.resources, "resourcesListChanged"),
    ] {
        if on {
            parts.push(format!("\"{key}\":true"));
        }
    }
    if !listener.followed.is_empty() {
        let mut uris: Vec<String> = listener.followed.values().map(|uri| json::quote(uri)).collect();
        uris.sort();
        parts.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
    }
    builder::Notification::new(method::SUBSCRIPTIONS_ACKNOWLEDGED)
        .meta_raw(meta::SUBSCRIPTION_ID, id)
        .param_raw("notifications", format!("{{{}}}", parts.join(",")).as_bytes())
        .build()
}
