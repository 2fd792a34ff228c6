//! Audits the use of the API: successful calls, failures and refusals.

use super::{ApiState, audit};
use http::StatusCode;
use serde_json::{Value, json};
use signalbox_audit::{AdminAction, AdminOrigin, AdminOutcome};
use signalbox_engine::Caller;
use signalbox_engine::audit::IntentWrite;
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_transport::router::{Listener, RouteFault, RouteGuard, RouteObserver, RouteUse};
use std::sync::Arc;

/// Prefix of the paths of the API.
const API: &str = "/api/";

/// Observer of all routes that are audited.
pub(super) struct Administration(pub(super) Arc<ApiState>);

impl RouteObserver for Administration {
    fn used(&self, used: &RouteUse<'_>) -> Option<IntentWrite> {
        let app = self.0.app();
        if used.status == StatusCode::UNAUTHORIZED {
            // Any client can cause these, so they are rate-limited like refusals of MCP.
            let fault = Fault::new(FaultKind::Unauthenticated, format!("{}: {}", used.action, used.target));
            app.gateway.refused(used.caller, Some(used.status.as_u16()), &fault, None);
            return None;
        }
        let after = match used.action {
            audit::READ => used.status.is_success().then(|| json!({"payloads": audit::reads_payloads(used.caller)})),
            // The audit log records who read, but not what.
            action if action.ends_with(".read") => None,
            _ => used.body.and_then(|body| serde_json::from_slice::<Value>(body).ok()),
        };
        // A successful route may report an action that failed or changed nothing.
        let failed = after.as_ref().filter(|after| after["ok"] == false).map(|after| after["error"].as_str());
        let failed = failed.or_else(|| after.as_ref().and_then(nothing_done).map(Some));
        let why = used.problem.or(failed.flatten()).unwrap_or(used.status.as_str());
        let outcome = match used.status {
            StatusCode::FORBIDDEN => AdminOutcome::Denied(why),
            status if status.is_success() && failed.is_none() => AdminOutcome::Done,
            _ => AdminOutcome::Failed(why),
        };
        let origin = match used.listener {
            Listener::Control => AdminOrigin::Cli,
            Listener::Tcp => AdminOrigin::Api,
        };
        let action = AuditedAction { name: used.action, target: used.target };
        self.0.administer_as(None, used.caller, origin, action, after.as_ref(), outcome)
    }

    fn refused(&self, caller: &Caller, target: &str, problem: &RouteFault) {
        self.0.app().gateway.refused(caller, Some(problem.status().as_u16()), &problem.fault(target), None);
    }

    fn missed(&self, caller: &Caller, target: &str, problem: &RouteFault) {
        // Guesses at routes, of which a caller can make any number.
        if target.split(' ').nth(1).is_some_and(|path| path.starts_with(API)) {
            self.refused(caller, target, problem);
        }
    }
}

/// Keeps callers away from the API that may not call a tool either: those that are switched off, or lack a required
/// scope.
pub(super) struct CallerGuard(pub(super) Arc<ApiState>);

impl RouteGuard for CallerGuard {
    fn refusal(&self, caller: &Caller) -> Option<Fault> {
        self.0.app().govern.refusal_of_caller(caller)
    }
}

/// An administrative action and the object that it concerns, as the audit log names them.
#[derive(Copy, Clone)]
pub(super) struct AuditedAction<'a> {
    pub name: &'a str,
    pub target: &'a str,
}

/// Returns why an action changed nothing, if its answer says so.
fn nothing_done(answer: &Value) -> Option<&'static str> {
    match answer {
        _ if answer["lifted"] == false => Some("nothing of this name is switched off"),
        _ if answer["revoked"] == false => Some("there is no such grant"),
        _ => None,
    }
}

impl ApiState {
    /// Records an administrative action, if there is an audit log. `who` replaces the caller's name, if given. The
    /// answer to an action that was not denied must wait for the returned write.
    #[must_use]
    pub(super) fn administer_as(
        &self,
        who: Option<&str>,
        caller: &Caller,
        origin: AdminOrigin,
        action: AuditedAction<'_>,
        after: Option<&Value>,
        outcome: AdminOutcome<'_>,
    ) -> Option<IntentWrite> {
        let audit = self.app().audit.as_ref()?;
        let identity = caller.identity();
        let address = identity.address.map(|address| address.to_string());
        let who = who.unwrap_or(identity.principal.as_str());
        let AuditedAction { name: action, target } = action;
        let action = AdminAction { who, address, origin, action, target, before: None, after, outcome };
        if matches!(outcome, AdminOutcome::Denied(_)) {
            audit.administer(&action);
            return None;
        }
        Some(audit.administer_confirmed(&action))
    }
}
