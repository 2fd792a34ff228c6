//! `/api/v1/grants`: permissions with an expiry.

use super::administration::AuditedAction;
use super::routes::ADMIN;
use super::{ApiState, bad, json as read, ok, who};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use signalbox_assembly::grants::{GrantFile, GrantFileFault, LONGEST, SetGrant};
use signalbox_audit::{AdminOrigin, AdminOutcome};
use signalbox_config::duration;
use signalbox_engine::audit::IntentWrite;
use signalbox_engine::{Caller, Proof};
use signalbox_runtime::HeldMessage;
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedRequest};
use signalbox_wire::hex::hex;
use std::sync::Arc;
use std::time::Duration;

/// Maximum length of a name, pattern or reason, in bytes.
const MAX_TEXT: usize = 1024;
/// Maximum number of patterns in one grant.
const MAX_PATTERNS: usize = 100;

/// Body of a request for a grant.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GrantRequest {
    /// Id chosen by the client, so that several processes know the grant by the same one.
    id: Option<String>,
    to: String,
    tools: Vec<String>,
    #[serde(rename = "for")]
    lasting: String,
    because: String,
    by: Option<String>,
    break_glass: bool,
}

pub(super) async fn list(served: Arc<ApiState>, _: RoutedRequest) -> HandlerResult {
    let all: Vec<Value> = served.app().govern.grants.counting().0.iter().map(|grant| json!(grant)).collect();
    Ok(ok(&all.into()))
}

pub(super) async fn add(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let caller = request.caller.identity().clone();
    let wanted: GrantRequest = read(request.body).await?;
    let rules = served.reloader.current();
    let is_local = caller.proof == Proof::LocalUser;
    if !is_local && caller.principal.as_str() == wanted.to && !rules.permissions.approve_own {
        let why = "callers cannot grant something to themselves; `permissions.approve_own` allows that";
        return Err(RouteFault::new(StatusCode::FORBIDDEN, why));
    }
    if wanted.break_glass {
        let glass = &rules.permissions.break_glass;
        if !is_local && !caller.has_role(ADMIN) {
            return Err(RouteFault::Role(ADMIN));
        }
        if !glass.allowed {
            let why = "breaking the glass is off; `permissions.break_glass.allowed` allows it";
            return Err(RouteFault::new(StatusCode::FORBIDDEN, why));
        }
    }
    let longest = if wanted.break_glass { rules.permissions.break_glass.longest } else { LONGEST };
    let lasts = lasting(&wanted.lasting, longest)?;
    check(&wanted)?;
    let now = unix_millis();
    let grant = SetGrant {
        id: match wanted.id {
            Some(id) => id,
            None => new_id()?,
        },
        to: wanted.to,
        tools: wanted.tools,
        until: now.saturating_add(lasts),
        because: wanted.because,
        by: who(caller.principal.as_str(), wanted.by),
        since: now,
        break_glass: wanted.break_glass,
    };
    put(&served, grant.clone())?;
    Ok(ok(&json!(grant)))
}

pub(super) async fn revoke(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let id = request.segment("id").to_owned();
    let rules = served.reloader.current();
    let mut revoked = None;
    let changed = GrantFile::of(&rules.data_dir).change(|all| {
        revoked = all.revoke(&id, unix_millis());
        Ok(())
    });
    changed.map_err(|fault| failed(&fault))?;
    served.app().govern.follow_written(&rules, &served.app().gateway);
    if let Some(grant) = &revoked {
        tracing::warn!(to = grant.to, by = request.caller.principal().as_str(), id, "a grant was revoked");
    }
    Ok(ok(&json!({"id": id, "revoked": revoked.is_some()})))
}

/// Returns a grant that lets the caller of a held call use the same entry for a while.
pub(super) fn of_hold(held: &HeldMessage, lasts: &str, by: &str) -> Result<SetGrant, RouteFault> {
    let (Some(backend), Some(name)) = (&held.held.backend, &held.held.own_name) else {
        return Err(bad("only the use of a tool, prompt or resource can be allowed for a while"));
    };
    if held.consent.is_none() {
        return Err(bad("this message does not wait for consent, so that there is nothing to allow for a while"));
    }
    let pattern = format!("{backend}/{name}");
    if pattern.contains(['*', '?']) {
        return Err(bad("its name has `*` or `?` in it, which would allow more than this"));
    }
    let now = unix_millis();
    Ok(SetGrant {
        id: new_id()?,
        to: held.held.caller.principal().as_str().to_owned(),
        tools: vec![pattern],
        until: now.saturating_add(lasting(lasts, LONGEST)?),
        because: format!("consent to hold {}", held.id),
        by: by.to_owned(),
        since: now,
        break_glass: false,
    })
}

/// Writes a grant to its file and enforces it.
pub(super) fn put(served: &ApiState, grant: SetGrant) -> Result<(), RouteFault> {
    let rules = served.reloader.current();
    if !grant.break_glass {
        let tools = grant.tools.join(", ");
        tracing::warn!(to = grant.to, tools, by = grant.by, because = grant.because, "granted for a while");
    }
    let changed = GrantFile::of(&rules.data_dir).change(|all| all.set(grant, unix_millis()));
    changed.map_err(|fault| failed(&fault))?;
    served.app().govern.follow_written(&rules, &served.app().gateway);
    Ok(())
}

/// Does the same for a grant that comes with a decision about a held call, and audits it. `who` replaces the caller's
/// name, if given. The answer must wait for the returned write.
pub(super) fn put_of_hold(
    served: &ApiState,
    grant: SetGrant,
    who: Option<&str>,
    caller: &Caller,
) -> Result<Option<IntentWrite>, RouteFault> {
    put(served, grant.clone())?;
    // The control socket knows its callers by their user id alone.
    let is_local = caller.identity().proof == Proof::LocalUser;
    let origin = if is_local { AdminOrigin::Cli } else { AdminOrigin::Api };
    let action = AuditedAction { name: "grant.add", target: &grant.id };
    Ok(served.administer_as(who, caller, origin, action, Some(&json!(grant)), AdminOutcome::Done))
}

fn check(wanted: &GrantRequest) -> Result<(), RouteFault> {
    let fits = |text: &str| !text.is_empty() && text.len() <= MAX_TEXT;
    if !fits(&wanted.to) || !fits(&wanted.because) {
        return Err(bad("`to` and `because` need 1 to 1024 characters"));
    }
    if wanted.id.as_ref().is_some_and(|id| id.len() != 16 || !id.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Err(bad("`id` must be 16 hexadecimal digits"));
    }
    let is_pattern = |text: &String| fits(text) && !text.starts_with('/') && !text.ends_with('/');
    match (wanted.break_glass, wanted.tools.is_empty()) {
        (true, false) => Err(bad("breaking the glass allows everything; leave `tools` out")),
        (false, true) => Err(bad("`tools` must name what is granted, as patterns BACKEND or BACKEND/NAME")),
        _ if wanted.tools.len() > MAX_PATTERNS || !wanted.tools.iter().all(is_pattern) => {
            Err(bad("`tools` must be at most 100 patterns BACKEND or BACKEND/NAME"))
        }
        _ => Ok(()),
    }
}

/// Parses a duration in the format of configurations. Returns milliseconds.
fn lasting(text: &str, longest: Duration) -> Result<u64, RouteFault> {
    let lasts = duration::read(text).map_err(|error| bad(format_args!("`for`: {error}")))?;
    if lasts.is_zero() || lasts > longest {
        return Err(bad(format_args!("`for` must be more than nothing and at most {} s", longest.as_secs())));
    }
    Ok(u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX))
}

fn new_id() -> Result<String, RouteFault> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| RouteFault::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    Ok(hex(&bytes))
}

fn failed(fault: &GrantFileFault) -> RouteFault {
    let status = match fault {
        GrantFileFault::TooMany => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    RouteFault::new(status, fault)
}
