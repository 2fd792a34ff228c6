//! The gateway's presentation to clients: `initialize` of the old era, `server/discover` of the new.

use super::holding::Continuation;
use super::judging::ClientMessage;
use super::{Context, FrontMachine, supported_versions};
use crate::bridge;
use crate::catalog::{Offer, Selector};
use crate::command::Command;
use crate::fact::Outcome;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use bytes::Bytes;
use signalbox_wire::{Envelope, Era, Revision, builder, json, meta, method};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum number of bytes of instructions taken from one backend.
const MAX_INSTRUCTIONS: usize = 8 * 1024;

impl FrontMachine {
    pub(super) fn initialize(&mut self, id: ExchangeId, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let client = match refuse_itself(message, ctx).and_then(|()| read_client(message)) {
            Ok(client) => client,
            Err(fault) => return self.fail(id, &fault, ctx, out),
        };
        let revision = client.revision;
        self.client = Some(Arc::new(client));
        let eager = ctx.face.is_some_and(|face| face.eager);
        self.state = if eager { Lifecycle::Operational } else { Lifecycle::Initializing };
        let selector = self.selector(id);
        let mut result = format!(
            r#"{{"protocolVersion":"{}","capabilities":{},"serverInfo":{}"#,
            revision.as_str(),
            legacy_capabilities(&ctx.offer(&selector), revision, ctx, &selector),
            ctx.server_info()
        );
        if let Some(text) = instructions(ctx, &selector) {
            let _ = write!(result, r#","instructions":{}"#, json::quote(&text));
        }
        result.push('}');
        self.reply(id, result.as_bytes(), ctx, out);
    }

    pub(super) fn discover(&mut self, id: ExchangeId, message: &Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if let Err(fault) = refuse_itself(message, ctx) {
            return self.fail(id, &fault, ctx, out);
        }
        let selector = self.selector(id);
        let mut result = format!(
            r#"{{"resultType":"complete","supportedVersions":{},"capabilities":{},"ttlMs":0,"cacheScope":"private","_meta":{{"io.modelcontextprotocol/serverInfo":{}}}"#,
            supported_versions(),
            modern_capabilities(&ctx.offer(&selector), ctx, &selector),
            ctx.server_info()
        );
        if let Some(text) = instructions(ctx, &selector) {
            let _ = write!(result, r#","instructions":{}"#, json::quote(&text));
        }
        result.push('}');
        self.reply(id, result.as_bytes(), ctx, out);
    }

    /// Answers an exchange with a result of the gateway, after the interceptors judge it.
    pub(super) fn reply(&mut self, id: ExchangeId, result: &[u8], ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let bytes = builder::response(&exchange.client_id, result);
        // The result of a task comes from a backend, even when the gateway delivers it.
        let own = !exchange.method.starts_with("tasks/") && exchange.method != method::TOOLS_CALL;
        self.judge_answer(id, bytes, Continuation::Answer { status: 200, outcome: Outcome::Ok, own }, ctx, out);
    }

    /// Answers an exchange without asking interceptors: the result contains nothing from a backend.
    pub(super) fn reply_own(&mut self, id: ExchangeId, result: &[u8], ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let bytes = builder::response(&exchange.client_id, result);
        self.finish(id, ClientMessage::own(bytes), 200, Outcome::Ok, ctx, out);
    }
}

/// Refuses a handshake from this gateway itself, which would list its own tools under another name without end.
fn refuse_itself(message: &Envelope, ctx: &Context<'_>) -> Result<(), Fault> {
    let params = message.params().unwrap_or_default();
    let instance = json::path(params, &[meta::META, meta::INSTANCE]).and_then(|span| json::string(span.of(params)));
    match instance.is_some_and(|instance| instance == ctx.instance) {
        true => Err(Fault::new(FaultKind::InvalidRequest, "this is the gateway itself: a backend leads back to it")),
        false => Ok(()),
    }
}

fn read_client(message: &Envelope) -> Result<ClientProfile, Fault> {
    let bad = |text: &str| Fault::new(FaultKind::InvalidParams, text);
    let params = message.params().ok_or_else(|| bad("initialize needs params"))?;
    let raw = |key: &str| json::member(params, key).map(|span| span.of(params));
    let version = raw("protocolVersion")
        .and_then(json::string)
        .ok_or_else(|| bad("initialize needs params.protocolVersion, a string"))?;
    let capabilities = raw("capabilities").unwrap_or(b"{}");
    if !capabilities.starts_with(b"{") {
        return Err(bad("params.capabilities must be an object"));
    }
    let info = raw("clientInfo");
    ClientProfile::check(capabilities, info)?;
    let info = info.map(Bytes::copy_from_slice);
    Ok(ClientProfile::new(negotiate(&version), Bytes::copy_from_slice(capabilities), info))
}

/// Returns the revision with which the gateway answers `initialize`.
fn negotiate(asked: &str) -> Revision {
    Revision::parse(asked).filter(|revision| revision.era() == Era::Legacy).unwrap_or(Revision::LATEST_LEGACY)
}

fn legacy_capabilities(offer: &Offer, revision: Revision, ctx: &Context<'_>, selector: &Selector) -> String {
    let mut parts = common_capabilities(offer, revision.completions_capability());
    if offer.tasks && revision.tasks_core() {
        parts.push(r#""tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#.into());
    }
    // Software that speaks the older of these revisions does not read extensions.
    if revision == Revision::LATEST_LEGACY {
        let mut extensions = extensions(ctx, selector);
        extensions.remove(&json::quote(bridge::TASKS));
        parts.extend(extensions_member(&extensions));
    }
    format!("{{{}}}", parts.join(","))
}

fn modern_capabilities(offer: &Offer, ctx: &Context<'_>, selector: &Selector) -> String {
    let mut parts = common_capabilities(offer, true);
    parts.extend(extensions_member(&extensions(ctx, selector)));
    format!("{{{}}}", parts.join(","))
}

/// Returns the capability members that both eras share.
fn common_capabilities(offer: &Offer, completions: bool) -> Vec<Cow<'static, str>> {
    let resources = match offer.subscribe {
        true => r#""resources":{"subscribe":true,"listChanged":true}"#,
        false => r#""resources":{"listChanged":true}"#,
    };
    let all = [
        (offer.tools, r#""tools":{"listChanged":true}"#),
        (offer.prompts, r#""prompts":{"listChanged":true}"#),
        (offer.resources, resources),
        (offer.completions && completions, r#""completions":{}"#),
        (offer.logging, r#""logging":{}"#),
    ];
    all.into_iter().filter(|(offered, _)| *offered).map(|(_, member)| member.into()).collect()
}

fn extensions_member(extensions: &BTreeMap<String, String>) -> Option<Cow<'static, str>> {
    let members: Vec<String> = extensions.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    (!members.is_empty()).then(|| format!(r#""extensions":{{{}}}"#, members.join(",")).into())
}

/// Returns the extensions of all backends as JSON by quoted name. The first backend that declares one defines it.
fn extensions(ctx: &Context<'_>, selector: &Selector) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    for (_, profile) in ctx.catalog.known_profiles(selector, ctx.sight) {
        if profile.era() == Era::Legacy && profile.hosts_tasks() {
            // Tasks of the old era are offered as those of the new one.
            seen.insert(json::quote(bridge::TASKS), "{}".to_owned());
        }
        let capabilities = &profile.capabilities;
        let Some(span) = json::member(capabilities, "extensions") else { continue };
        let object = span.of(capabilities);
        for member in json::members(object) {
            let whole = String::from_utf8_lossy(member.value.of(object)).into_owned();
            let key = String::from_utf8_lossy(member.key.of(object)).into_owned();
            seen.entry(key).or_insert(whole);
        }
    }
    seen
}

/// Returns the gateway's instructions followed by those of the backends, each under its backend's name if there are
/// several. Backends that await the caller's sign-in are listed with the address.
fn instructions(ctx: &Context<'_>, selector: &Selector) -> Option<String> {
    let texts: Vec<(&Arc<str>, &str)> = ctx
        .catalog
        .profiles(selector, ctx.sight)
        .filter_map(|(name, profile)| Some((name, clip(profile.instructions.as_deref()?))))
        .collect();
    let own = if ctx.face.is_some() { "" } else { ctx.instructions };
    let sign_ins = if ctx.face.is_some() { Vec::new() } else { ctx.behind_sign_ins() };
    match (own, &texts[..], &sign_ins[..]) {
        ("", [], []) => None,
        ("", [(_, only)], []) => Some((*only).to_owned()),
        (own, many, sign_ins) => {
            let own = Some(own.to_owned()).filter(|own| !own.is_empty());
            let named = many.iter().map(|(name, text)| format!("## {name}\n\n{text}"));
            let behind = sign_ins.iter().map(|(name, fault)| format!("## {name}\n\n{}", fault.message));
            Some(own.into_iter().chain(named).chain(behind).collect::<Vec<_>>().join("\n\n"))
        }
    }
}

fn clip(text: &str) -> &str {
    let mut end = text.len().min(MAX_INSTRUCTIONS);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Lifecycle state of a session of the old era.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Lifecycle {
    /// `initialize` has not arrived yet.
    Created,
    /// `initialize` is answered, `notifications/initialized` has not arrived yet.
    Initializing,
    /// All requests are served.
    Operational,
    /// The session has ended.
    Closed,
}

impl Lifecycle {
    /// Decides whether a request of this method is admitted (N-8 to N-10): `ping` until the session is closed,
    /// `initialize` once, the rest when operational.
    ///
    /// # Errors
    /// Returns the fault to answer with.
    pub fn admit(self, name: &str) -> Result<(), Fault> {
        match self {
            Self::Closed => Err(Fault::new(FaultKind::SessionClosed, "the session has ended")),
            _ if name == method::PING => Ok(()),
            Self::Created if name == method::INITIALIZE => Ok(()),
            Self::Created | Self::Initializing if name != method::INITIALIZE => {
                Err(Fault::new(FaultKind::NotInitialized, "Server not initialized").with_str("method", name))
            }
            Self::Initializing | Self::Operational if name == method::INITIALIZE => {
                Err(Fault::new(FaultKind::InvalidRequest, "the session is already initialized"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the state as a word for users.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Initializing => "initializing",
            Self::Operational => "operational",
            Self::Closed => "closed",
        }
    }
}
