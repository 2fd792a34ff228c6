//! Requests of the governed dialect. They are translated on arrival and their answers on departure. In between they are
//! ordinary requests of the new era.

use super::exchanges::Exchanges;
use super::holding::Continuation;
use super::judging::ClientMessage;
use super::modern::describes_itself;
use super::requests::Search;
use super::{Context, FrontMachine, Lifecycle, Mode};
use crate::catalog::{ListKind, Route};
use crate::command::Command;
use crate::dialect::answer::{self, About};
use crate::dialect::error::{DialectError, Stamp};
use crate::dialect::request::{self, Inner};
use crate::dialect::security_context::CallerContext;
use crate::dialect::validation::{self, AuditContext, ToolUse};
use crate::dialect::{DialectPorts, DialectRequest, is_spoken};
use crate::exchange::Exchange;
use crate::fault::{Fault, FaultKind};
use crate::keys::{ExchangeId, StreamId};
use crate::limit::Limit;
use crate::tool_label::ToolLabel;
use bytes::Bytes;
use signalbox_wire::{Envelope, Era, RawId};
use std::borrow::Cow;
use std::sync::Arc;

impl FrontMachine {
    /// Treats every request from now on as one of the governed dialect.
    pub fn speak_dialect(&mut self) {
        self.governed = true;
    }

    /// Returns true if a request is of the dialect: the connection speaks it, or this first request is recognisable as
    /// such. A client that has introduced itself as an MCP client never speaks it.
    pub(super) fn speaks_dialect(&self, message: &Envelope, ctx: &Context<'_>) -> bool {
        let first = || self.mode == Mode::Pipe && self.state == Lifecycle::Created && is_spoken(message);
        ctx.dialect.is_some() && (self.governed && !describes_itself(message) || first())
    }

    pub(super) fn dialect_request(
        &mut self,
        stream: StreamId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        self.governed = true;
        let id = message.id().unwrap_or_else(RawId::null);
        let name = message.method().unwrap_or_default();
        if let Err(fault) = self.admit(Era::Modern, name, &id, ctx) {
            if fault.kind == FaultKind::Overloaded {
                out.push(Command::Refused(Limit::InFlight));
            }
            self.record_client_message(None, message.bytes(), Some(fault.reason()), ctx, out);
            self.record_refusal_without_exchange(message, fault.reason(), &fault.message, ctx, out);
            return self.send_fault(stream, Some(&id), Era::Modern, &fault, ctx, out);
        }
        let exchange = self.open(stream, id, Era::Modern, name, message, ctx, out);
        let (asked, inner) = match ctx.dialect {
            Some(ports) => self.read_dialect(exchange, message, ports),
            None => (DialectRequest::Other, Err(Fault::no_method(name))),
        };
        self.exchanges.set_dialect(exchange, asked);
        if let Some(fault) = ctx.refusal {
            self.note_refused_subject(exchange, message);
            return self.fail(exchange, fault, ctx, out);
        }
        match inner {
            Ok(Inner::Mcp(inner)) => {
                if let (Some(exchange), Some(method)) = (self.exchanges.get_mut(&exchange), inner.known_method()) {
                    exchange.method = Cow::Borrowed(method);
                }
                self.modern_request(exchange, inner, ctx, out);
            }
            Ok(Inner::Here) => self.judge_request(exchange, message.clone(), Continuation::Here, None, ctx, out),
            Err(fault) => {
                self.note_refused_subject(exchange, message);
                self.fail(exchange, &fault, ctx, out);
            }
        }
    }

    fn read_dialect(
        &self,
        exchange: ExchangeId,
        message: &Envelope,
        ports: &DialectPorts<'_>,
    ) -> (DialectRequest, Result<Inner, Fault>) {
        let caller = self.caller_of(Some(exchange));
        let has = |permission: &str| ports.permissions.has(caller, permission);
        let known = CallerContext { user: caller.principal().as_str(), session: ports.session, has: &has };
        request::read(message, &known)
    }

    /// Refuses a call that asks for a version of the tool other than the current one.
    pub(super) fn check_tool_version(&self, id: ExchangeId, route: &Route, ctx: &Context<'_>) -> Result<(), Fault> {
        match (self.asked_in_dialect(id), ctx.dialect) {
            (Some(DialectRequest::Invoke { version: Some(wanted), tool_id }), Some(ports)) => {
                same_version(tool_id, wanted, &ports.labels.label(&route.backend, &route.name))
            }
            _ => Ok(()),
        }
    }

    /// Validates a call, or parks the request until the lists it depends on are known.
    pub(super) fn validate_call(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if (ctx.lists_ready)(&self.selector(id)) {
            self.answer_validation(id, message, ctx, out);
        } else {
            self.await_lists(id, message.clone(), None, out);
        }
    }

    /// Answers whether a call would be allowed, and under which constraints (G-13).
    pub(super) fn answer_validation(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        match self.validation(id, message, ctx) {
            Ok(result) => self.reply_own(id, &result, ctx, out),
            Err(fault) if fault.kind == FaultKind::UnknownTool => self.fail_unroutable(id, message, &fault, ctx, out),
            Err(fault) => self.fail(id, &fault, ctx, out),
        }
    }

    fn validation(&mut self, id: ExchangeId, message: &Envelope, ctx: &Context<'_>) -> Result<Vec<u8>, Fault> {
        let ports = ctx.dialect.ok_or_else(|| Fault::no_method(crate::dialect::VALIDATE))?;
        let call = request::described_call(message)?;
        let unknown = || Fault::unknown(ListKind::Tools, &call.tool_id);
        let route = Search::Listed.route(ListKind::Tools, &call.tool_id, ctx).ok_or_else(unknown)?;
        let label = ports.labels.label(&route.backend, &route.name);
        if let Some(version) = &call.version {
            same_version(&call.tool_id, version, &label)?;
        }
        let caller = self.caller_of(Some(id)).clone();
        let usage = ToolUse {
            caller: &caller,
            entry: ctx.catalog.entry_of(ListKind::Tools, &route, ctx.user),
            tool_id: &call.tool_id,
            parameters: call.parameters,
            unix_ms: (ctx.unix_ms)(),
        };
        let judged = ports.permissions.validate(&usage);
        if let Some(exchange) = self.exchanges.get_mut(&id).filter(|_| !is_unknown(&judged)) {
            exchange.backend = Some(Arc::clone(&route.backend));
            exchange.own_name = Some(route.name.clone());
            exchange.subject = Some(call.tool_id.as_str().into());
        }
        let audit = AuditContext {
            audit_id: &ports.audit_run.id(id),
            user: caller.principal().as_str(),
            session: ports.session,
            permissions: &label.permissions,
        };
        let (detail, trust) = (ctx.error_detail, caller.identity().trust());
        let constraints: Vec<_> = judged?.into_iter().map(|one| one.told(detail, trust)).collect();
        Ok(validation::granted(&call.tool_id, &constraints, &audit))
    }

    /// Returns the dialect request of an exchange, if it is one.
    fn asked_in_dialect(&self, id: ExchangeId) -> Option<&DialectRequest> {
        if self.governed { self.exchanges.dialect(id) } else { None }
    }

    /// Translates an answer for its client and returns it with the HTTP status. In the dialect the status is 200,
    /// because errors are described in the body.
    pub(super) fn translate_answer(
        &self,
        exchange: &Exchange,
        passed: ClientMessage,
        status: u16,
        ctx: &Context<'_>,
    ) -> (ClientMessage, u16) {
        let (Some(asked), Some(ports)) = (self.asked_in_dialect(exchange.id), ctx.dialect) else {
            return (passed, status);
        };
        let (execution_id, audit_id) = (ports.audit_run.execution(exchange.id), ports.audit_run.id(exchange.id));
        let label = |name: &str| listed_label(name, ports, ctx);
        let used = match asked {
            DialectRequest::Invoke { .. } => {
                let mut used = called_label(exchange, ports, ctx).permissions;
                used.retain(|permission| ports.permissions.has(&exchange.caller, permission));
                used
            }
            _ => Vec::new(),
        };
        let about = About {
            asked,
            id: &exchange.client_id,
            execution_id: &execution_id,
            audit_id: &audit_id,
            used: &used,
            label: &label,
            session: ports.session,
            unix_ms: (ctx.unix_ms)(),
        };
        let bytes = answer::translate(passed.bytes(), &about);
        (passed.translated(bytes), 200)
    }

    /// Formats a fault for its client and returns it with the HTTP status.
    pub(super) fn refusal(
        &self,
        exchange: Option<&Exchange>,
        client_id: Option<&RawId>,
        era: Era,
        fault: &Fault,
        ctx: &Context<'_>,
    ) -> (Bytes, u16) {
        let caller = exchange.map_or(ctx.caller.unwrap_or(&self.caller), |exchange| &exchange.caller);
        let told = fault.told(ctx.error_detail, caller.identity().trust());
        let plain = || {
            let revision = exchange.and_then(|exchange| Some(exchange.client.as_ref()?.revision));
            let result =
                client_id.zip(revision).and_then(|(id, revision)| told.tool_result(id, revision, ctx.server_info()));
            result.map_or_else(|| (told.reply(client_id, era), fault.http_status(era)), |result| (result, 200))
        };
        let asked = match (self.governed, exchange) {
            (false, _) => return plain(),
            (true, None) => &DialectRequest::Other,
            (true, Some(exchange)) => match self.exchanges.dialect(exchange.id) {
                Some(asked) => asked,
                None => return plain(),
            },
        };
        let audit_id = exchange.zip(ctx.dialect).map(|(exchange, ports)| ports.audit_run.id(exchange.id));
        let stamp = Stamp { audit_id: audit_id.as_deref(), unix_ms: (ctx.unix_ms)() };
        // The dialect describes faults in the body, so its statuses do not follow the new era. HTTP's own statuses,
        // such as 401, stay.
        (DialectError::of(&told, asked).reply(client_id, stamp), fault.http_status(Era::Legacy))
    }
}

/// Returns true if the caller is told that there is no such tool. Its record must not say otherwise.
fn is_unknown<T>(judged: &Result<T, Fault>) -> bool {
    matches!(judged, Err(fault) if fault.kind == FaultKind::UnknownTool)
}

/// Refuses a tool version other than the one in its label.
fn same_version(tool_id: &str, wanted: &str, label: &ToolLabel) -> Result<(), Fault> {
    match &label.version {
        Some(version) if **version != *wanted => {
            let shown: String = wanted.chars().take(64).collect();
            let text = format!("tool `{tool_id}` has the version `{version}`, not `{shown}`");
            let fault = Fault::new(FaultKind::WrongToolVersion, text);
            Err(fault.with_str("requested_version", &shown).with_str("version", version))
        }
        _ => Ok(()),
    }
}

/// Returns the label of a tool by its listed name.
fn listed_label(name: &str, ports: &DialectPorts<'_>, ctx: &Context<'_>) -> ToolLabel {
    let route = ctx.tool(name);
    route.map_or_else(ToolLabel::default, |route| ports.labels.label(&route.backend, &route.name))
}

/// Returns the label of the tool that an exchange called.
fn called_label(exchange: &Exchange, ports: &DialectPorts<'_>, ctx: &Context<'_>) -> ToolLabel {
    match (exchange.backend.as_deref(), exchange.own_name.as_deref(), exchange.subject.as_deref()) {
        (Some(backend), Some(own), _) => ports.labels.label(backend, own),
        (_, _, Some(listed)) => listed_label(listed, ports, ctx),
        _ => ToolLabel::default(),
    }
}

impl Exchanges {
    /// Stores the dialect request of an exchange.
    fn set_dialect(&mut self, id: ExchangeId, asked: DialectRequest) {
        if let Some(one) = self.open_mut(id) {
            one.dialect = Some(Box::new(asked));
        }
    }

    /// Returns the dialect request of an exchange, if it is one.
    fn dialect(&self, id: ExchangeId) -> Option<&DialectRequest> {
        self.open(id)?.dialect.as_deref()
    }
}
