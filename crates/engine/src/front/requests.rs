//! Requests of clients: answered in the gateway or routed to a backend.

use super::exchanges::{AwaitingLists, Stage};
use super::holding::Continuation;
use super::judging::{ClearedRequest, IdleChain, JudgedContext};
use super::params::Params;
use super::sign_in;
use super::subjects::{self, check_arguments, find_reference, text, uri_text};
use super::{CompletedTemplate, Context, FrontMachine, resource_uris};
use crate::bridge;
use crate::bridge::tasks::{self, TaskSupport, TaskWish};
use crate::catalog::{ListKind, NameStyle, Route, Selector, list_result};
use crate::chain::{Ruling, Rulings, Verdict};
use crate::command::{Command, Watch};
use crate::dialect::{self, registration};
use crate::exchange::Call;
use crate::fact::Outcome;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::log_level::LogLevel;
use crate::profile::ClientProfile;
use crate::subject_names::style_of;
use signalbox_wire::{Edits, Envelope, Era, RawId, Span, builder, json, method};
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum number of alternative tool names in an error.
const MAX_OTHERS: usize = 10;

/// Route of a request, and the span of its subject's name.
pub(super) struct FoundRoute {
    pub route: Route,
    pub subject: Option<Span>,
}

/// Places to look for the subject of a request.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Search {
    /// The lists that are known.
    Listed,
    /// Also backends that list nothing before the caller has signed in. Only for callers whose lists are ready.
    BehindSignIn,
}

impl Search {
    /// Returns the route of an entry that the caller sees, or will see after a sign-in.
    pub(super) fn route(self, kind: ListKind, exposed: &str, ctx: &Context<'_>) -> Option<Route> {
        let listed = match kind {
            ListKind::Tools => ctx.tool(exposed),
            ListKind::Prompts => ctx.catalog.prompt(exposed),
            ListKind::Resources | ListKind::Templates => ctx.catalog.resource(exposed),
        };
        let behind = || ctx.behind_sign_in(kind.style(), exposed).filter(|_| self == Self::BehindSignIn);
        listed.filter(|route| ctx.sees(kind, route)).or_else(behind)
    }
}

impl FrontMachine {
    pub(super) fn legacy_request(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let name = message.method().unwrap_or_default();
        match name {
            method::PING => return self.reply_own(id, b"{}", ctx, out),
            method::INITIALIZE | method::LOGGING_SET_LEVEL => {
                return self.judge_request(id, message, Continuation::Here, None, ctx, out);
            }
            _ if ListKind::of_method(name).is_some() => return self.list_request(id, message, ctx, out),
            _ => {}
        }
        match self.client.clone() {
            Some(client) => {
                if name.starts_with("tasks/") && self.task_request(id, &message, &client, ctx, out) {
                    return;
                }
                let params = Params::read(&message);
                self.route(id, message, &params, client, ctx, out);
            }
            None => {
                let fault = Fault::new(FaultKind::NotInitialized, "Server not initialized");
                self.note_refused_subject(id, &message);
                self.fail(id, &fault, ctx, out);
            }
        }
    }

    /// Answers a request that goes to no backend.
    pub(super) fn answer_here(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        match message.method().unwrap_or_default() {
            method::INITIALIZE => self.initialize(id, message, ctx, out),
            method::LOGGING_SET_LEVEL => self.set_level(id, message, ctx, out),
            method::SERVER_DISCOVER => self.discover(id, message, ctx, out),
            method::SUBSCRIPTIONS_LISTEN => self.listen(id, message, ctx, out),
            dialect::VALIDATE => self.validate_call(id, message, ctx, out),
            dialect::REGISTER => self.fail(id, &registration::not_served(), ctx, out),
            name => {
                let fault = Fault::no_method(name);
                self.fail(id, &fault, ctx, out);
            }
        }
    }

    /// Judges a list request and answers it.
    pub(super) fn list_request(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if ctx.chain.is_idle() {
            return self.list(id, &message, ctx, out);
        }
        self.judge_request(id, message, Continuation::List, None, ctx, out);
    }

    /// Answers a list from the catalog, or parks the request until the lists it needs are known.
    pub(super) fn list(&mut self, id: ExchangeId, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if (ctx.lists_ready)(&self.selector(id)) {
            self.list_page(id, message, ctx, out);
        } else {
            self.await_lists(id, message.clone(), None, out);
        }
    }

    /// Parks a request until the lists it needs are known.
    pub(super) fn await_lists(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        routed_for: Option<Arc<ClientProfile>>,
        out: &mut Vec<Command>,
    ) {
        self.exchanges.enter(id, Stage::AwaitingLists(Box::new(AwaitingLists { message, routed_for })));
        out.push(Command::AwaitLists { exchange: id });
    }

    /// Resumes a request that waited for lists.
    pub(super) fn resume(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(AwaitingLists { message, routed_for }) = self.exchanges.take_awaiting_lists(id) else { return };
        match routed_for {
            None if message.method() == Some(method::SUBSCRIPTIONS_LISTEN) => {
                self.open_listener(id, &message, ctx, out);
            }
            None if message.method() == Some(dialect::VALIDATE) => self.answer_validation(id, &message, ctx, out),
            None => self.list_page(id, &message, ctx, out),
            Some(client) => {
                let params = Params::read(&message);
                match self.find(id, &message, &params, Search::BehindSignIn, ctx) {
                    Ok(found) => match IdleChain::now(ctx.chain) {
                        Some(idle) => self.forward(id, idle.clear(message), &params, found, client, ctx, out),
                        None => self.judge_route(id, message, &params, &found, client, ctx, out),
                    },
                    Err(fault) => self.fail_unroutable(id, &message, &fault, ctx, out),
                }
            }
        }
    }

    fn list_page(&mut self, id: ExchangeId, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(era) = self.exchanges.get(&id).map(|exchange| exchange.era) else { return };
        let Some(kind) = message.method().and_then(ListKind::of_method) else { return };
        let token = Params::read(message).cursor.map(|span| span.of(message.bytes()));
        let cursor = token.map(|token| json::string(token).unwrap_or(Cow::Borrowed("")));
        let Some(page) = ctx.catalog.page(kind, &self.selector(id), ctx.sight, cursor.as_deref()) else {
            let fault = Fault::new(FaultKind::InvalidParams, "params.cursor is not a cursor of this list");
            return self.fail(id, &fault, ctx, out);
        };
        if page.is_empty() && self.wants_sign_in(id, ctx, out) {
            return;
        }
        let sign_ins = self.warn_of_sign_ins(id, ctx, out);
        let result = match era {
            Era::Legacy => {
                let tail = sign_ins.map(|all| format!(r#","_meta":{{"{}":{all}}}"#, sign_in::META));
                list_result(kind, &page, tail.unwrap_or_default().as_bytes())
            }
            Era::Modern => {
                let mut terms = ctx.catalog.terms(kind, &self.selector(id), ctx.sight, ctx.now);
                // The interceptors' changes to a list may depend on the caller too, and sign-in addresses always do.
                terms.public &= ctx.chain.is_idle() && sign_ins.is_none();
                let tail = format!(
                    r#","resultType":"complete","ttlMs":{},"cacheScope":"{}","_meta":{{"io.modelcontextprotocol/serverInfo":{}{}}}"#,
                    terms.ttl.as_millis(),
                    terms.scope(),
                    ctx.server_info,
                    sign_ins.map(|all| format!(r#","{}":{all}"#, sign_in::META)).unwrap_or_default()
                );
                list_result(kind, &page, tail.as_bytes())
            }
        };
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let bytes = builder::response(&exchange.client_id, &result);
        let then = Continuation::Answer { status: 200, outcome: Outcome::Ok, own: false };
        self.judge_answer(id, bytes, then, ctx, out);
    }

    fn set_level(&mut self, id: ExchangeId, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if !ctx.catalog.offer(&self.selector(id), ctx.sight).logging {
            return self.fail(id, &Fault::no_method(method::LOGGING_SET_LEVEL), ctx, out);
        }
        let token = Params::read(message).level.map(|span| span.of(message.bytes()));
        let level = token.and_then(json::string).and_then(|name| LogLevel::parse(&name));
        let Some(level) = level else {
            let fault = Fault::new(FaultKind::InvalidParams, "params.level must be one of the eight log levels");
            return self.fail(id, &fault, ctx, out);
        };
        self.log_level = Some(level);
        out.push(Command::LogLevel { exchange: id, message: message.bytes().clone(), except: ctx.hidden_backends() });
        self.reply(id, b"{}", ctx, out);
    }

    /// Routes a request. If its subject is unknown while lists are still being read, the request waits for them first.
    pub(super) fn route(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        params: &Params,
        client: Arc<ClientProfile>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let listed = self.find(id, &message, params, Search::Listed, ctx);
        if listed.is_err() && !(ctx.lists_ready)(&self.selector(id)) {
            return self.await_lists(id, message, Some(client), out);
        }
        match listed.or_else(|_| self.find(id, &message, params, Search::BehindSignIn, ctx)) {
            Ok(found) => match IdleChain::now(ctx.chain) {
                Some(idle) => self.forward(id, idle.clear(message), params, found, client, ctx, out),
                None => self.judge_route(id, message, params, &found, client, ctx, out),
            },
            Err(fault) => self.fail_unroutable(id, &message, &fault, ctx, out),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a routed request, each needed once")]
    fn judge_route(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        params: &Params,
        found: &FoundRoute,
        client: Arc<ClientProfile>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        self.set_route(id, &message, params, found);
        self.judge_request(id, message, Continuation::Route(client), None, ctx, out);
    }

    /// Fails a request without a route with this fault, unless an interceptor refuses it for a reason of its own.
    pub(super) fn fail_unroutable(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        fault: &Fault,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        self.note_unreached(id, message, fault, ctx);
        if ctx.chain.is_idle() {
            return self.fail(id, fault, ctx, out);
        }
        match self.consult(JudgedContext::unknown(id), message, None, ctx, out).verdict {
            Verdict::Refuse(refusal) => self.fail(id, &refusal, ctx, out),
            _ => self.fail(id, fault, ctx, out),
        }
    }

    /// Updates the route of a request that interceptors turned into one for another entry. Returns false if the route
    /// is the same.
    pub(super) fn update_route(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        params: &Params,
        found: &FoundRoute,
    ) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return false };
        let FoundRoute { route, subject: token } = found;
        let own_name = match token {
            Some(_) => Some(&*route.name),
            None => exchange.is_foreign().then_some(&*exchange.method),
        };
        let stays = exchange.backend.as_ref() == Some(&route.backend) && exchange.own_name.as_deref() == own_name;
        if !stays {
            if let Some(exchange) = self.exchanges.get_mut(&id).filter(|exchange| exchange.asked_name.is_none()) {
                exchange.asked_name = exchange.subject.take();
            }
            self.set_route(id, message, params, found);
        }
        !stays
    }

    /// Stores the subject and the backend of a request, for the interceptors.
    fn set_route(&mut self, id: ExchangeId, message: &Envelope, params: &Params, found: &FoundRoute) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let FoundRoute { route, subject: token } = found;
        let subject = token.and_then(|span| json::string(span.of(message.bytes())));
        exchange.subject = subject.map(|text| text.into_owned().into());
        exchange.own_name = match token {
            Some(_) => Some(route.name.clone()),
            None => exchange.is_foreign().then(|| Box::from(&*exchange.method)),
        };
        exchange.completes_resource = subjects::completes_resource(message, params);
        let completion = message.params().filter(|_| exchange.completes_resource);
        exchange.completed_template =
            completion.and_then(|params| CompletedTemplate::read(params, &route.name)).map(Box::new);
        exchange.backend = Some(Arc::clone(&route.backend));
        exchange.progress_token =
            params.progress_token().map(|span| RawId::from_token(message.bytes().slice(span.range())));
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a routed request, each needed once")]
    pub(super) fn forward(
        &mut self,
        id: ExchangeId,
        cleared: ClearedRequest,
        params: &Params,
        found: FoundRoute,
        client: Arc<ClientProfile>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let FoundRoute { route, subject: token } = found;
        let message = cleared.message();
        let subject = token.and_then(|span| json::string(span.of(message.bytes())));
        if ctx.message_facts {
            let known = ctx.catalog.routed(&route).map(|ruling| Rulings::One(Arc::clone(ruling)));
            let rulings = known.unwrap_or_else(|| routing(&route, subject.as_deref()).into());
            self.decided(Some(id), "request", [("route", rulings)], ctx, out);
        }
        if params.task_id.is_some() && message.method().is_some_and(|name| name.starts_with("tasks/")) {
            self.asks_about_task(id, &route.backend, &route.name, ctx);
        }
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.backend = Some(Arc::clone(&route.backend));
        let plain = exchange.method == method::RESOURCES_READ && params.round().is_none();
        exchange.read = plain.then(|| (route.name.clone(), (ctx.changes)(&route.backend, &route.name)));
        exchange.wants_task = params.task.is_some();
        exchange.progress_token =
            params.progress_token().map(|span| RawId::from_token(message.bytes().slice(span.range())));
        let mut edits = Edits::new();
        if route.renamed
            && let Some(span) = token
        {
            edits.replace(span, json::quote(&route.name));
            // The answer to a tool call that merely has a `uri` member names no renamed resource.
            if style_of(&exchange.method) == NameStyle::Uri {
                exchange.renamed_uri = subject.as_deref().map(|ours| (route.name.clone(), ours.into()));
            }
        }
        resource_uris::restore_uris(exchange, &route, message, &mut edits, ctx);
        let round = match sign_in::round_of(exchange, message, params, &mut edits) {
            Ok(round) => round,
            Err(fault) => return self.fail(id, &fault, ctx, out),
        };
        if exchange.era == Era::Modern && exchange.method == method::TOOLS_CALL && needs_task(&route, &client, ctx) {
            tasks::add_wish(message, TaskWish { ttl: None }, &mut edits);
        }
        let awaits_sign_in = sign_in::is_return(message, params);
        let tool = subject.as_deref().filter(|_| exchange.method == method::TOOLS_CALL);
        let param_headers = tool.and_then(|tool| ctx.catalog.param_headers(tool)).cloned();
        exchange.subject = subject.map(|text| text.into_owned().into());
        let call = cleared.authorize(|envelope| Call {
            edits,
            client,
            method: exchange.method.clone(),
            name: Some(route.name),
            progress: params.progress_token(),
            param_headers,
            era: exchange.era,
            log_level: exchange.log_level.or(self.log_level.filter(|_| exchange.era == Era::Legacy)),
            round,
            trace: exchange.trace.as_ref().map(|trace| Arc::clone(&trace.told)),
            tries: 0,
            awaits_sign_in,
            envelope,
        });
        if let Some((theirs, ours)) =
            exchange.renamed_uri.clone().filter(|_| call.method == method::RESOURCES_SUBSCRIBE)
        {
            let key = (Arc::clone(&route.backend), theirs);
            if self.followed.len() >= super::MAX_FOLLOWED && !self.followed.contains_key(&key) {
                // Its changes would be reported under a name that the client does not know.
                let text = format!("this session follows {} resources, which is the limit", super::MAX_FOLLOWED);
                return self.fail(id, &Fault::new(FaultKind::Overloaded, text), ctx, out);
            }
            self.followed.insert(key, ours);
        }
        let on = call.method == method::RESOURCES_SUBSCRIBE;
        let watches = on || call.method == method::RESOURCES_UNSUBSCRIBE;
        out.push(match call.name.clone().filter(|_| watches) {
            Some(uri) => Command::Watch(Watch { exchange: id, backend: route.backend, uri, on, call }),
            None => Command::Forward { exchange: id, backend: route.backend, call },
        });
    }

    fn is_of_old_era(&self, id: ExchangeId) -> bool {
        self.exchanges.get(&id).is_some_and(|exchange| exchange.era == Era::Legacy)
    }

    /// Returns the route of a request and the span of its subject's name.
    pub(super) fn find(
        &self,
        id: ExchangeId,
        message: &Envelope,
        params: &Params,
        search: Search,
        ctx: &Context<'_>,
    ) -> Result<FoundRoute, Fault> {
        let name = message.method().unwrap_or_default();
        match name {
            method::TOOLS_CALL => {
                let (span, tool) = text(message, params.name, "name")?;
                let route = search.route(ListKind::Tools, &tool, ctx).ok_or_else(|| unknown_tool(&tool, ctx))?;
                self.check_tool_version(id, &route, ctx)?;
                check_arguments(message, params)?;
                Ok(FoundRoute { route, subject: Some(span) })
            }
            method::PROMPTS_GET => {
                let (span, prompt) = text(message, params.name, "name")?;
                let route = search.route(ListKind::Prompts, &prompt, ctx);
                let route = route.ok_or_else(|| Fault::unknown(ListKind::Prompts, &prompt))?;
                check_arguments(message, params)?;
                Ok(FoundRoute { route, subject: Some(span) })
            }
            method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
                let (span, uri) = uri_text(message, params.uri, "uri")?;
                let route = search.route(ListKind::Resources, &uri, ctx);
                let route = route.ok_or_else(|| Fault::unknown(ListKind::Resources, &uri))?;
                Ok(FoundRoute { route, subject: Some(span) })
            }
            method::COMPLETION_COMPLETE => find_reference(message, params, search, ctx),
            method::TASKS_UPDATE if self.is_of_old_era(id) => Err(Fault::no_method(name)),
            method::TASKS_GET
            | method::TASKS_CANCEL
            | method::TASKS_RESULT
            | method::TASKS_LIST
            | method::TASKS_UPDATE => self.find_task(id, message, params, ctx),
            // The client's revision does not define this method, and nothing else would judge it.
            _ if method::direction(name).is_some() => Err(Fault::no_method(name)),
            _ => {
                let only =
                    ctx.catalog.only().filter(|only| ctx.sees_backend(only)).ok_or_else(|| Fault::no_method(name))?;
                let route = Route { backend: Arc::clone(only), name: "".into(), renamed: false };
                Ok(FoundRoute { route, subject: None })
            }
        }
    }
}

/// Builds the ruling that describes a route in words.
fn routing(route: &Route, subject: Option<&str>) -> Ruling {
    let detail = match subject.filter(|_| route.renamed) {
        Some(ours) => format!("`{ours}` is `{}` of backend `{}`", route.name, route.backend),
        None => format!("backend `{}`", route.backend),
    };
    Ruling::of("routed", detail)
}

/// Returns the fault for an unknown tool, listing the qualified tools with this unqualified name.
fn unknown_tool(tool: &str, ctx: &Context<'_>) -> Fault {
    let fault = Fault::unknown(ListKind::Tools, tool);
    let mut others = ctx.catalog.qualified_tools(tool);
    others.retain(|name| ctx.tool(name).is_some_and(|route| ctx.sees(ListKind::Tools, &route)));
    if others.is_empty() {
        return fault;
    }
    let others = others.iter().take(MAX_OTHERS).map(|name| short(name)).collect::<Vec<_>>().join(", ");
    Fault::new(FaultKind::UnknownTool, format!("{}; call it as {others}", fault.message))
}

/// Truncates a client's text for error messages.
pub(super) fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Returns true if an old server must run the call as a task, because the client or the tool requires it. A server of
/// the new era decides for itself.
fn needs_task(route: &Route, client: &ClientProfile, ctx: &Context<'_>) -> bool {
    let selector = || Selector { era: Era::Modern, caps: client.caps().clone(), whose: Some(ctx.user.clone()) };
    match ctx.catalog.task_support(route, selector) {
        TaskSupport::Required => true,
        TaskSupport::Forbidden => false,
        _ => bridge::knows_tasks(&client.capabilities),
    }
}
