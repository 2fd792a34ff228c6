//! Requests of the new era. Each one describes its client and stands alone.

use super::holding::Continuation;
use super::params::Params;
use super::{Context, FrontMachine};
use crate::catalog::ListKind;
use crate::command::Command;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::log_level::LogLevel;
use crate::profile::ClientProfile;
use signalbox_wire::{Envelope, Era, Revision, Span, json, meta, method};
use std::borrow::Cow;
use std::sync::Arc;

/// Returns the protocol version that a message of the new era names, if any.
pub(super) fn named_revision(message: &Envelope) -> Option<Cow<'_, str>> {
    let span = message.param_meta(meta::PROTOCOL_VERSION)?;
    json::string(span.of(message.bytes()))
}

/// Returns true if the message names a protocol version in `_meta`, even an unsupported one.
pub(super) fn describes_itself(message: &Envelope) -> bool {
    named_revision(message).is_some()
}

/// Returns every revision the gateway serves, as a JSON array, newest first.
#[must_use]
pub fn supported_versions() -> String {
    let names: Vec<String> = Revision::ALL.iter().rev().map(|revision| format!("\"{}\"", revision.as_str())).collect();
    format!("[{}]", names.join(","))
}

impl FrontMachine {
    pub(super) fn modern_request(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let params = Params::read(&message);
        let client = match read_client(&message, &params) {
            Ok(client) => Arc::new(client),
            Err(fault) => {
                self.note_refused_subject(id, &message);
                return self.fail(id, &fault, ctx, out);
            }
        };
        if self.mode == super::Mode::Stateless {
            self.client = Some(Arc::clone(&client));
        }
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.client = Some(Arc::clone(&client));
            let level = params.own.and_then(|own| own.log_level).map(|span| span.of(message.bytes()));
            exchange.log_level = level.and_then(json::string).and_then(|name| LogLevel::parse(&name));
        }
        if params.round().is_some() {
            return self.further_round(id, message, &params, client, ctx, out);
        }
        let name = message.method().unwrap_or_default();
        match name {
            method::TOOLS_CALL => self.route(id, message, &params, client, ctx, out),
            method::SERVER_DISCOVER | method::SUBSCRIPTIONS_LISTEN => {
                self.judge_request(id, message, Continuation::Here, None, ctx, out);
            }
            _ if ListKind::of_method(name).is_some() => self.list_request(id, message, ctx, out),
            _ if is_removed(name) => {
                let text = format!("`{name}` is not part of revision {}", Revision::LATEST.as_str());
                self.fail(id, &Fault::new(FaultKind::MethodNotFound, text), ctx, out);
            }
            _ => self.route(id, message, &params, client, ctx, out),
        }
    }

    /// Handles a request that carries answers or a state: its answers are judged first, then the request.
    fn further_round(
        &mut self,
        id: ExchangeId,
        message: Envelope,
        params: &Params,
        client: Arc<ClientProfile>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if let Err(fault) = self.place_round(id, &message, params, ctx) {
            return self.fail(id, &fault, ctx, out);
        }
        let Some(message) = self.judge_responses(id, message, ctx, out) else { return };
        let params = Params::read(&message);
        self.route(id, message, &params, client, ctx, out);
    }
}

/// Returns true for methods of old revisions that the new one removed.
fn is_removed(name: &str) -> bool {
    Revision::ALL.iter().any(|revision| revision.era() == Era::Legacy && method::exists(name, *revision))
        && !method::exists(name, Revision::LATEST)
        && !name.starts_with("tasks/")
        || matches!(name, method::TASKS_RESULT | method::TASKS_LIST)
}

fn read_client(message: &Envelope, params: &Params) -> Result<ClientProfile, Fault> {
    let bad = |text: String| Fault::new(FaultKind::InvalidParams, text);
    let own = params.own.unwrap_or_default();
    let raw = |span: Option<Span>| span.map(|span| span.of(message.bytes()));
    let version = raw(own.version)
        .and_then(json::string)
        .ok_or_else(|| bad(format!("params._meta[\"{}\"] is required, a string", meta::PROTOCOL_VERSION)))?;
    let revision = Revision::parse(&version)
        .filter(|revision| revision.era() == Era::Modern)
        .ok_or_else(|| unsupported(&version))?;
    let capabilities = raw(own.capabilities)
        .filter(|value| value.starts_with(b"{"))
        .ok_or_else(|| bad(format!("params._meta[\"{}\"] is required, an object", meta::CLIENT_CAPABILITIES)))?;
    if let Some(level) = raw(own.log_level)
        && json::string(level).and_then(|name| LogLevel::parse(&name)).is_none()
    {
        return Err(bad(format!("params._meta[\"{}\"] is not a log level", meta::LOG_LEVEL)));
    }
    ClientProfile::check(capabilities, raw(own.info))?;
    let info = raw(own.info).map(|info| message.bytes().slice_ref(info));
    Ok(ClientProfile::new(revision, message.bytes().slice_ref(capabilities), info))
}

/// Returns the fault for an unsupported version, with the list of supported ones.
#[must_use]
pub fn unsupported(version: &str) -> Fault {
    let shown: String = version.chars().take(64).collect();
    Fault::new(FaultKind::UnsupportedVersion, format!("protocol version `{shown}` is not supported"))
        .with_raw("supported", supported_versions())
        .with_str("requested", &shown)
}
