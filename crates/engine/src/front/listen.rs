//! Notifications of changed lists, resources and tasks: on the session's general stream in the old era, through
//! `subscriptions/listen` in the new one.

use super::exchanges::Stage;
use super::inward::in_params;
use super::judging::{AuthorizedFollow, ClientMessage};
use super::sending::Delivery;
use super::subjects::control_in_uri;
use super::{Context, FrontMachine, Lifecycle};
use crate::catalog::ListChanges;
use crate::catalog::{ListKind, Route};
use crate::command::{Command, Listen};
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::limit::Limit;
use crate::profile::ClientProfile;
use bytes::Bytes;
use signalbox_wire::uri_readings::has_control;
use signalbox_wire::{Edits, Envelope, Era, builder, json, meta, method};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Maximum number of resources, and of tasks, that one listen request may follow.
pub const MAX_FOLLOWED: usize = 1024;
/// Maximum number of bytes of task notifications buffered until a listen request is acknowledged.
const MAX_MISSED_BYTES: usize = 1 << 20;

/// State of one `subscriptions/listen` request.
#[derive(Clone, Debug, Default)]
pub struct ListenState {
    tools: bool,
    prompts: bool,
    resources: bool,
    followed: HashMap<(Arc<str>, Box<str>), Box<str>>,
    /// Tasks by (backend, the backend's id), with the id that the client knows.
    tasks: HashMap<(Arc<str>, Box<str>), Box<str>>,
    acknowledged: bool,
    /// Lists that changed before the acknowledgement, which must come first.
    missed: ListChanges,
    /// Followed resources, by exposed URI, that changed before the acknowledgement.
    missed_resources: BTreeSet<Box<str>>,
    /// Last notification of each task before the acknowledgement.
    missed_tasks: BTreeMap<Box<str>, (Arc<str>, Envelope)>,
}

/// Lists that a waiting request needs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NeededLists {
    /// The list that the request asks for.
    List(ListKind),
    /// All lists, for a listen request.
    Listen,
    /// Lists that may have the entry, because no known list has it.
    Entry,
}

impl ListenState {
    /// Returns true if the client asked for changes of this list.
    pub(super) fn subscribes_to(&self, kind: ListKind) -> bool {
        match kind {
            ListKind::Tools => self.tools,
            ListKind::Prompts => self.prompts,
            ListKind::Resources | ListKind::Templates => self.resources,
        }
    }
}

impl FrontMachine {
    /// Returns the lists that a waiting request needs.
    #[must_use]
    pub fn awaited(&self, id: ExchangeId) -> Option<NeededLists> {
        match self.exchanges.stage(id)? {
            Stage::AwaitingLists(waiting) => awaited_by(&waiting.message),
            _ => None,
        }
    }

    /// Returns true if a session of the old era is notified of changes on its general stream.
    #[must_use]
    pub fn hears_changes(&self) -> bool {
        self.general.is_some() && self.state == Lifecycle::Operational
    }

    /// Returns true if a listen request of this client, open or waiting for lists, asks for changes of this list.
    #[must_use]
    pub fn listens_for(&self, kind: ListKind, client: &ClientProfile) -> bool {
        self.exchanges.stages().any(|(exchange, stage)| {
            let same = exchange.client.as_ref().is_some_and(|own| own.info == client.info);
            let hears = match stage {
                Stage::Listening(listener) => listener.subscribes_to(kind),
                Stage::AwaitingLists(waiting) => subscribes_to(&waiting.message, kind),
                _ => false,
            };
            hears && same && exchange.era == Era::Modern
        })
    }

    /// Opens a listen request, or parks it until the lists it depends on are known.
    pub(super) fn listen(&mut self, id: ExchangeId, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if (ctx.lists_ready)(&self.selector(id)) {
            self.open_listener(id, message, ctx, out);
        } else {
            self.await_lists(id, message.clone(), None, out);
        }
    }

    /// Opens a listen request for the notifications that the client asks for and the backends offer.
    pub(super) fn open_listener(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(span) = in_params(message, &["notifications"]) else {
            let fault = Fault::new(FaultKind::InvalidParams, "params.notifications is required, an object");
            return self.fail(id, &fault, ctx, out);
        };
        let filter = span.of(message.bytes());
        let wants = |kind| json::member(filter, list_member(kind)).is_some_and(|span| span.of(filter) == b"true");
        let offer = ctx.catalog.offer(&self.selector(id), ctx.sight);
        let mut listener = ListenState {
            tools: wants(ListKind::Tools) && offer.tools,
            prompts: wants(ListKind::Prompts) && offer.prompts,
            resources: wants(ListKind::Resources) && offer.resources,
            ..ListenState::default()
        };
        let mut follow = AuthorizedFollow::default();
        let uris = strings_in(filter, "resourceSubscriptions", out);
        if uris.iter().any(|uri| has_control(uri)) {
            return self.fail(id, &control_in_uri("notifications.resourceSubscriptions"), ctx, out);
        }
        for uri in uris {
            let fits = |route: &Route| subscribable(ctx, &route.backend) && ctx.sees(ListKind::Resources, route);
            match ctx.catalog.resource(&uri).filter(fits) {
                Some(route) if self.judge_resource(id, &uri, &route, &mut follow, ctx, out) => {
                    listener.followed.insert((route.backend, route.name), uri);
                }
                Some(_) => {}
                None if self.wants_sign_in(id, ctx, out) => return,
                None => self.not_followed(id, method::RESOURCES_SUBSCRIBE, &uri, None, ctx, out),
            }
        }
        for task in strings_in(filter, "taskIds", out) {
            match self.judge_task(id, &task, &mut follow, ctx) {
                Some(route) => {
                    listener.tasks.insert((route.backend, route.name), task);
                }
                None => self.not_followed(id, method::TASKS_GET, &task, None, ctx, out),
            }
        }
        self.exchanges.enter(id, Stage::Listening(Box::new(listener)));
        if follow.is_empty() {
            self.listening(id, ctx, out);
        }
        out.push(Command::Listen(Listen::Open { exchange: id, follow }));
    }

    /// Removes resources and tasks that a backend does not follow, so that they are not acknowledged.
    pub(super) fn unfollowed(&mut self, id: ExchangeId, backend: &Arc<str>, uris: Vec<String>, tasks: Vec<String>) {
        if let Some((_, listener)) = self.exchanges.listener_mut(id).filter(|(_, listener)| !listener.acknowledged) {
            for uri in uris {
                listener.followed.remove(&(Arc::clone(backend), uri.into()));
            }
            for task in tasks {
                listener.tasks.remove(&(Arc::clone(backend), task.into()));
            }
        }
    }

    /// Acknowledges a listen request once all its targets are followed, then sends the notifications it missed
    /// meanwhile.
    pub(super) fn listening(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some((exchange, listener)) = self.exchanges.listener_mut(id) else { return };
        let (stream, token) = (exchange.stream, exchange.client_id.clone());
        if std::mem::replace(&mut listener.acknowledged, true) {
            return;
        }
        let acknowledged = acknowledgement(token.token(), listener);
        let (missed, resources) =
            (std::mem::take(&mut listener.missed), std::mem::take(&mut listener.missed_resources));
        let tasks = std::mem::take(&mut listener.missed_tasks);
        self.send(Some(id), Delivery::midway(stream), ClientMessage::own(acknowledged), ctx, out);
        for uri in resources {
            let bytes = builder::Notification::new(method::RESOURCES_UPDATED)
                .meta_raw(meta::SUBSCRIPTION_ID, token.token())
                .param_str("uri", &uri)
                .build();
            self.send(Some(id), Delivery::droppable(stream), ClientMessage::own(bytes), ctx, out);
        }
        for (backend, message) in tasks.into_values() {
            self.notify_listener(id, &backend, &message, Edits::new(), ctx, out);
        }
        self.tell_listener(id, missed, ctx, out);
    }

    /// Notifies the client of changed lists, in the form of its era.
    pub(super) fn lists_changed(&mut self, changed: ListChanges, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if let Some(stream) = self.general.filter(|_| self.state == Lifecycle::Operational) {
            for name in change_methods(changed) {
                let bytes = builder::Notification::new(name).build();
                self.send(None, Delivery::midway(stream), ClientMessage::own(bytes), ctx, out);
            }
        }
        let listening = self.exchanges.stages().filter(|(_, stage)| stage.is_listening());
        let mut listeners: Vec<ExchangeId> = listening.map(|(exchange, _)| exchange.id).collect();
        listeners.sort_unstable();
        for id in listeners {
            self.tell_listener(id, changed, ctx, out);
        }
    }

    fn tell_listener(&mut self, id: ExchangeId, changed: ListChanges, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some((exchange, listener)) = self.exchanges.listener_mut(id) else { return };
        let (stream, token) = (exchange.stream, exchange.client_id.clone());
        let wanted = ListChanges {
            tools: changed.tools && listener.tools,
            prompts: changed.prompts && listener.prompts,
            resources: changed.resources && listener.resources,
        };
        if !listener.acknowledged {
            listener.missed.tools |= wanted.tools;
            listener.missed.prompts |= wanted.prompts;
            listener.missed.resources |= wanted.resources;
            return;
        }
        for name in change_methods(wanted) {
            let bytes = builder::Notification::new(name).meta_raw(meta::SUBSCRIPTION_ID, token.token()).build();
            self.send(Some(id), Delivery::midway(stream), ClientMessage::own(bytes), ctx, out);
        }
    }

    /// Passes a backend's notification to a listen request, under the exposed URI or task id and with the client's
    /// subscription id.
    pub(super) fn notify_listener(
        &mut self,
        id: ExchangeId,
        backend: &Arc<str>,
        message: &Envelope,
        mut edits: Edits,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some((exchange, listener)) = self.exchanges.listener_mut(id) else { return };
        let (subject, of_task) = match message.method() {
            Some(method::RESOURCES_UPDATED) => ("uri", false),
            Some(method::TASKS_CHANGED) => ("taskId", true),
            _ => return,
        };
        let span = in_params(message, &[subject]);
        let theirs = span.and_then(|span| json::string(span.of(message.bytes())));
        let (Some(span), Some(theirs)) = (span, theirs) else { return };
        let followed = if of_task { &listener.tasks } else { &listener.followed };
        let Some(ours) = followed.get(&(Arc::clone(backend), theirs.as_ref().into())).cloned() else { return };
        if !listener.acknowledged {
            match of_task {
                true => listener.buffer_task(ours, backend, message, out),
                false => drop(listener.missed_resources.insert(ours)),
            }
            return;
        }
        if *ours != *theirs {
            edits.replace(span, json::quote(&ours));
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
        let way = Delivery::droppable(exchange.stream);
        self.send(Some(id), way, Self::passed(message).edited(&edits), ctx, out);
    }
}

impl ListenState {
    /// Buffers the last notification of a task, while there is room.
    fn buffer_task(&mut self, task: Box<str>, backend: &Arc<str>, message: &Envelope, out: &mut Vec<Command>) {
        self.missed_tasks.remove(&task);
        let kept: usize = self.missed_tasks.values().map(|(_, message)| message.bytes().len()).sum();
        if kept + message.bytes().len() > MAX_MISSED_BYTES {
            return out.push(Command::Dropped("task_notification"));
        }
        self.missed_tasks.insert(task, (Arc::clone(backend), message.clone()));
    }
}

fn awaited_by(message: &Envelope) -> Option<NeededLists> {
    let method = message.method()?;
    Some(match ListKind::of_method(method) {
        Some(kind) => NeededLists::List(kind),
        None if method == method::SUBSCRIPTIONS_LISTEN => NeededLists::Listen,
        None => NeededLists::Entry,
    })
}

/// Returns true for a listen request that asks for changes of this list.
fn subscribes_to(message: &Envelope, kind: ListKind) -> bool {
    let filter = in_params(message, &["notifications"]).filter(|_| awaited_by(message) == Some(NeededLists::Listen));
    let Some(filter) = filter.map(|span| span.of(message.bytes())) else { return false };
    json::member(filter, list_member(kind)).is_some_and(|span| span.of(filter) == b"true")
}

/// Returns the member of a listen request that asks for changes of this list.
fn list_member(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "toolsListChanged",
        ListKind::Prompts => "promptsListChanged",
        ListKind::Resources | ListKind::Templates => "resourcesListChanged",
    }
}

/// Returns the strings in a list of the filter, up to the maximum.
fn strings_in(filter: &[u8], list: &str, out: &mut Vec<Command>) -> Vec<Box<str>> {
    let Some(array) = json::member(filter, list).map(|span| span.of(filter)) else { return Vec::new() };
    if json::elements(array).nth(MAX_FOLLOWED).is_some() {
        out.push(Command::Refused(Limit::Subscriptions));
    }
    let texts = json::elements(array).filter_map(|span| json::string(span.of(array)));
    texts.take(MAX_FOLLOWED).map(|text| text.as_ref().into()).collect()
}

/// Returns the methods of the notifications for these changes.
fn change_methods(changed: ListChanges) -> impl Iterator<Item = &'static str> {
    let kinds = [
        (changed.tools, method::TOOLS_LIST_CHANGED),
        (changed.prompts, method::PROMPTS_LIST_CHANGED),
        (changed.resources, method::RESOURCES_LIST_CHANGED),
    ];
    kinds.into_iter().filter(|(yes, _)| *yes).map(|(_, name)| name)
}

/// Returns true if the backend is known to support resource subscriptions.
fn subscribable(ctx: &Context<'_>, backend: &str) -> bool {
    let entry = ctx.catalog.backends().iter().find(|entry| &*entry.name == backend);
    let mut views = entry.into_iter().flat_map(|entry| entry.views.values());
    views.any(|view| view.profile.has(&["resources", "subscribe"]))
}

fn acknowledgement(id: &[u8], listener: &ListenState) -> Bytes {
    let mut parts = Vec::new();
    for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
        if listener.subscribes_to(kind) {
            parts.push(format!("\"{}\":true", list_member(kind)));
        }
    }
    for (followed, key) in [(&listener.followed, "resourceSubscriptions"), (&listener.tasks, "taskIds")] {
        let mut names: Vec<String> = followed.values().map(|name| json::quote(name)).collect();
        names.sort();
        if !names.is_empty() {
            parts.push(format!("\"{key}\":[{}]", names.join(",")));
        }
    }
    builder::Notification::new(method::SUBSCRIPTIONS_ACKNOWLEDGED)
        .meta_raw(meta::SUBSCRIPTION_ID, id)
        .param_raw("notifications", format!("{{{}}}", parts.join(",")).as_bytes())
        .build()
}
