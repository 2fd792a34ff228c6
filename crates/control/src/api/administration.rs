//! Tells the audit log who used the API for what, and who was refused.

use super::{Served, audit};
use http::StatusCode;
use serde_json::{Value, json};
use signalbox_audit::{AdminAction, AdminOrigin, AdminOutcome};
use signalbox_engine::Caller;
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_transport::router::{Door, Problem, RouteObserver, RouteUse};
use std::sync::Arc;

/// Paths of the API.
const API: &str = "/api/";

/// Hears of every use of a route that is audited.
pub(super) struct Administration(pub(super) Arc<Served>);

impl RouteObserver for Administration {
    fn used(&self, used: &RouteUse<'_>) {
        let app = self.0.app();
        if used.status == StatusCode::UNAUTHORIZED {
            // Anybody can cause these: they are recorded like those of MCP, so many a second.
            let fault = Fault::new(FaultKind::Unauthenticated, format!("{}: {}", used.action, used.target));
            return app.gateway.refused(used.caller, Some(used.status.as_u16()), &fault, None);
        }
        let after = match used.action {
            audit::READ => used.status.is_success().then(|| json!({"payloads": audit::reads_payloads(used.caller)})),
            // Who read something is written down, and not what it was.
            action if action.ends_with(".read") => None,
            _ => used.body.and_then(|body| serde_json::from_slice::<Value>(body).ok()),
        };
        // A route that was used may tell of an act that failed, or that changed nothing.
        let failed = after.as_ref().filter(|after| after["ok"] == false).map(|after| after["error"].as_str());
        let failed = failed.or_else(|| after.as_ref().and_then(nothing_done).map(Some));
        let why = used.problem.or(failed.flatten()).unwrap_or(used.status.as_str());
        let outcome = match used.status {
            StatusCode::FORBIDDEN => AdminOutcome::Denied(why),
            status if status.is_success() && failed.is_none() => AdminOutcome::Done,
            _ => AdminOutcome::Failed(why),
        };
        let origin = match used.door {
            Door::Control => AdminOrigin::Cli,
            Door::Listener => AdminOrigin::Api,
        };
        self.0.administer_as(None, used.caller, origin, (used.action, used.target), after.as_ref(), outcome);
    }

    fn missed(&self, caller: &Caller, target: &str, problem: &Problem) {
        // Guesses at routes: a caller can make any number of them.
        if target.split(' ').nth(1).is_some_and(|path| path.starts_with(API)) {
            let fault = Fault::new(FaultKind::InvalidRequest, format!("{target}: {problem}"));
            self.0.app().gateway.refused(caller, Some(problem.status().as_u16()), &fault, None);
        }
    }
}

/// Why an act changed nothing, if its answer says so.
fn nothing_done(answer: &Value) -> Option<&'static str> {
    match answer {
        _ if answer["lifted"] == false => Some("nothing of this name is switched off"),
        _ if answer["revoked"] == false => Some("there is no such grant"),
        _ => None,
    }
}

impl Served {
    /// Writes down an act of administration, where an audit log is kept. `who` is named instead of the caller, if given.
    pub(super) fn administer_as(
        &self,
        who: Option<&str>,
        caller: &Caller,
        origin: AdminOrigin,
        (action, target): (&str, &str),
        after: Option<&Value>,
        outcome: AdminOutcome<'_>,
    ) {
        let Some(audit) = &self.app().audit else { return };
        let identity = caller.identity();
        let address = identity.address.map(|address| address.to_string());
        let who = who.unwrap_or(identity.principal.as_str());
        audit.administer(&AdminAction { who, address, origin, action, target, before: None, after, outcome });
    }
}
