//! Subjects of refused requests, for the audit log. It has a record of every refusal, and most refusals happen before a
//! route is known. Nothing here is shown to the caller or recorded on its tape: only the operator may learn whether an
//! entry is hidden or unknown.

use super::params::Params;
use super::{Context, FrontMachine};
use crate::catalog::{CallerView, EntryRef, ListKind};
use crate::command::Command;
use crate::dialect;
use crate::exchange::{Absence, RefusedSubject, is_foreign};
use crate::fact::{Fact, RefusedFact, RefusedNotification};
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use signalbox_wire::completion_ref::{self, ReferenceKind};
use signalbox_wire::{Envelope, json, method};
use std::sync::Arc;

impl FrontMachine {
    /// Stores the subject of a request that is refused before its route is looked up.
    pub(super) fn note_refused_subject(&mut self, id: ExchangeId, message: &Envelope) {
        let Some(name) = subject(message) else { return };
        if let Some(exchange) = self.exchanges.get_mut(&id).filter(|exchange| exchange.subject.is_none()) {
            exchange.unreached = Some(Box::new(RefusedSubject { name, absence: Absence::NotSought }));
        }
    }

    /// Stores the subject of a request for which no route was found.
    pub(super) fn note_unreached(&mut self, id: ExchangeId, message: &Envelope, fault: &Fault, ctx: &Context<'_>) {
        let Some(name) = subject(message) else { return };
        let method = message.method().unwrap_or_default();
        let sought = match fault.kind {
            FaultKind::UnknownTool | FaultKind::UnknownPrompt | FaultKind::ResourceNotFound => true,
            // An unknown task or template is an invalid parameter to the caller.
            FaultKind::InvalidParams => method == method::COMPLETION_COMPLETE || method.starts_with("tasks/"),
            _ => false,
        };
        let kinds = if sought { kinds(message) } else { None };
        let absence = kinds.map_or(Absence::NotSought, |kinds| absence(kinds, &name, ctx));
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.unreached = Some(Box::new(RefusedSubject { name, absence }));
        }
    }

    /// Records the refusal of a request that has no exchange of its own.
    pub(super) fn record_refusal_without_exchange(
        &self,
        message: &Envelope,
        reason: &'static str,
        detail: &str,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if ctx.message_facts {
            let method: String = message.method().unwrap_or_default().chars().take(RefusedSubject::MAX_NAME).collect();
            let unreached = subject(message).map(|name| RefusedSubject { name, absence: Absence::NotSought });
            self.refused_fact(None, reason, format!("{method}: {detail}"), unreached, ctx, out);
        }
    }

    /// Records that a listen request does not follow a resource or a task that it names.
    pub(super) fn not_followed(
        &self,
        id: ExchangeId,
        method: &str,
        name: &str,
        fault: Option<&Fault>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if !ctx.message_facts {
            return;
        }
        let name = beginning(name);
        let (reason, absence) = match fault {
            Some(fault) => (fault.reason(), Absence::NotSought),
            None if method.starts_with("tasks/") => ("resource_not_found", absence(&[], &name, ctx)),
            None => ("resource_not_found", absence(&[ListKind::Resources], &name, ctx)),
        };
        let detail = format!("{}: `{name}` is not followed", method::SUBSCRIPTIONS_LISTEN);
        self.refused_fact(Some(id), reason, detail, Some(RefusedSubject { name, absence }), ctx, out);
    }

    pub(super) fn refused_fact(
        &self,
        exchange: Option<ExchangeId>,
        reason: &'static str,
        detail: String,
        unreached: Option<RefusedSubject>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        out.push(Command::Fact(Fact::Refused(Arc::new(RefusedFact {
            at: ctx.now,
            caller: ctx.caller.unwrap_or(&self.caller).clone(),
            session: self.session,
            exchange,
            status: None,
            reason,
            detail,
            unreached: unreached.map(Box::new),
            notification: None,
        }))));
    }

    /// Drops a notification of the client and, if it carries content, records its refusal with the
    /// decisions that `out` has about it.
    pub(super) fn refuse_notification(
        &self,
        message: &Envelope,
        refusal: NotificationRefusal<'_>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let NotificationRefusal { counted, reason, detail, absence } = refusal;
        let method = message.method().unwrap_or_default();
        if ctx.message_facts && carries_content(method) {
            let about = |command: &Command| match command {
                Command::Fact(Fact::Decision(decision)) if decision.exchange.is_none() => Some(Arc::clone(decision)),
                _ => None,
            };
            // A method that MCP does not define is judged like a tool of that name.
            let subject = if is_foreign(method) { Some(beginning(method)) } else { subject(message) };
            let method = beginning(method);
            let notification = RefusedNotification {
                method: String::from(method.clone()).into(),
                backend: ctx.catalog.only().map_or_else(|| "*".into(), Arc::clone),
                decisions: out.iter().filter_map(about).collect(),
            };
            out.push(Command::Fact(Fact::Refused(Arc::new(RefusedFact {
                at: ctx.now,
                caller: ctx.caller.unwrap_or(&self.caller).clone(),
                session: self.session,
                exchange: None,
                status: None,
                reason,
                detail: format!("{method}: {detail}"),
                unreached: subject.map(|name| Box::new(RefusedSubject { name, absence })),
                notification: Some(Box::new(notification)),
            }))));
        }
        out.push(Command::Dropped(counted));
    }
}

/// Refusal of a client's notification.
pub(super) struct NotificationRefusal<'a> {
    /// Word that the metrics count it under.
    pub counted: &'static str,
    /// Reason, a word of the closed list of faults.
    pub reason: &'static str,
    pub detail: &'a str,
    /// Reason why the caller may not send it, if permissions or switches are it.
    pub absence: Absence,
}

impl<'a> NotificationRefusal<'a> {
    /// Refuses a notification because of a fault.
    pub fn by(fault: &'a Fault, counted: &'static str) -> Self {
        Self { counted, reason: fault.reason(), detail: &fault.message, absence: Absence::NotSought }
    }

    /// Refuses a notification that permissions or switches keep from every backend of the session.
    pub fn unseen(method: &str, ctx: &Context<'_>, counted: &'static str) -> Self {
        let is_off = |backend: &str| {
            let entry = EntryRef { kind: ListKind::Tools, backend, name: method, definition: None };
            ctx.sight.is_some_and(|sight| sight.is_off(&entry))
        };
        let switched_off = ctx.catalog.backends().iter().any(|backend| is_off(&backend.name));
        let absence = if switched_off { Absence::SwitchedOff } else { Absence::Hidden };
        Self { counted, reason: "unknown_tool", detail: "no backend of the caller takes it", absence }
    }
}

/// Returns true for a client's notification that carries content of its own. MCP's `roots/list_changed` carries none,
/// and the gateway handles the others without content itself.
#[must_use]
pub fn carries_content(method: &str) -> bool {
    !matches!(method, method::ROOTS_LIST_CHANGED | method::INITIALIZED | method::CANCELLED | method::PROGRESS)
}

/// Returns the kinds of entries that a request may be about; `None` if its reference cannot be read.
fn kinds(message: &Envelope) -> Option<&'static [ListKind]> {
    Some(match message.method().unwrap_or_default() {
        method::TOOLS_CALL | dialect::VALIDATE => &[ListKind::Tools],
        method::PROMPTS_GET => &[ListKind::Prompts],
        method::COMPLETION_COMPLETE => {
            let reference = Params::read(message).reference?.of(message.bytes());
            match completion_ref::read(reference).ok()?.0 {
                ReferenceKind::Prompt => &[ListKind::Prompts],
                ReferenceKind::Resource => &[ListKind::Resources],
            }
        }
        method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => &[ListKind::Resources],
        _ => &[],
    })
}

/// Returns the reason why an entry has no route open to its caller.
fn absence(kinds: &[ListKind], name: &str, ctx: &Context<'_>) -> Absence {
    let route = |kind: &ListKind| match kind {
        ListKind::Tools => ctx.catalog.tool(name).or_else(|| ctx.tool(name)),
        ListKind::Prompts => ctx.catalog.prompt(name),
        ListKind::Resources | ListKind::Templates => ctx.catalog.resource(name),
    };
    match kinds.iter().find_map(|kind| Some((*kind, route(kind)?))) {
        // A disabled entry counts as switched off, even if permissions hide it too.
        Some((kind, route)) => match ctx.sight {
            Some(sight) if sight.is_off(&ctx.catalog.entry_of(kind, &route, ctx.user)) => Absence::SwitchedOff,
            _ => Absence::Hidden,
        },
        None => match ctx.sight {
            Some(sight) if kinds.iter().all(|kind| *kind == ListKind::Tools) => unlisted_absence(name, sight),
            Some(_) => Absence::UnknownToLimited,
            None => Absence::Unknown,
        },
    }
}

/// Returns the absence of a name that no list has. If the caller is limited to one backend and sees nothing of it, all
/// of that backend's tools are hidden, listed or not.
fn unlisted_absence(name: &str, sight: &CallerView<'_>) -> Absence {
    let Some(backend) = sight.sole().filter(|sole| !sight.backend(sole)) else { return Absence::UnknownToLimited };
    match sight.is_off(&EntryRef { kind: ListKind::Tools, backend, name, definition: None }) {
        true => Absence::SwitchedOff,
        false => Absence::Hidden,
    }
}

/// Returns the name, URI or task that a request is about.
fn subject(message: &Envelope) -> Option<Box<str>> {
    let params = Params::read(message);
    let bytes = message.bytes();
    let reference = params.reference.map(|span| span.of(bytes));
    let member = |name: &str| reference.and_then(|reference| Some(json::member(reference, name)?.of(reference)));
    let found = match message.method()? {
        dialect::INVOKE | dialect::VALIDATE => message.param("tool_id").map(|span| span.of(bytes)),
        method::COMPLETION_COMPLETE => member("name").or_else(|| member("uri")),
        name if name.starts_with("tasks/") => params.task_id.map(|span| span.of(bytes)),
        _ => params.name.or(params.uri).map(|span| span.of(bytes)),
    };
    found.and_then(json::string).map(|name| beginning(&name))
}

fn beginning(name: &str) -> Box<str> {
    name.chars().take(RefusedSubject::MAX_NAME).collect::<String>().into()
}
