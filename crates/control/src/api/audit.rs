//! `/api/v1/audit`: records of the audit log, for callers that may read them.

use super::{ApiState, bad, ok};
use crate::status::AuditStatus;
use http::StatusCode;
use serde_json::json;
use signalbox_assembly::auditing::{AuditPlace, AuditReadError};
use signalbox_audit::search::AuditQuery;
use signalbox_audit::{EventType, RiskLevel};
use signalbox_engine::{Caller, Proof};
use signalbox_runtime::clock::unix_millis;
use signalbox_tape::moment;
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedAnswer, RoutedRequest};
use std::collections::VecDeque;
use std::sync::Arc;

/// Role that may read records without arguments. Administrators may too.
const AUDITOR: &str = "auditor";
/// Role that may read arguments as well. Administrators may not without it.
const READS_PAYLOADS: &str = "auditor_payloads";
/// Maximum number of records in one answer, and the default below it.
const MAX_RECORDS: usize = 1_000;
const DEFAULT_RECORDS: usize = 100;

/// Action under which the audit log records a search.
pub(super) const READ: &str = "audit.read";

/// Returns true if this caller may see arguments. The owner of the process owns its files as well.
pub(super) fn reads_payloads(caller: &Caller) -> bool {
    let identity = caller.identity();
    identity.proof == Proof::LocalUser || identity.has_role(READS_PAYLOADS)
}

/// Extent to which a caller may read the audit log.
struct ReadScope {
    payloads: bool,
}

impl ReadScope {
    /// Returns the parts of records that this caller may read.
    fn of(request: &RoutedRequest) -> Result<Self, RouteFault> {
        let identity = request.caller.identity();
        if identity.proof == Proof::Unproved {
            return Err(RouteFault::Unauthenticated);
        }
        let payloads = reads_payloads(&request.caller);
        if payloads || identity.has_role(AUDITOR) || identity.has_role(super::routes::ADMIN) {
            return Ok(Self { payloads });
        }
        let why = format!("reading the audit log needs the role `{AUDITOR}` or `{READS_PAYLOADS}`");
        Err(RouteFault::new(StatusCode::FORBIDDEN, why))
    }
}

/// Returns the latest records that match the query.
pub(super) async fn search(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let scope = ReadScope::of(&request)?;
    let query = query(&request)?;
    let limit = match request.query.get("limit") {
        Some(text) => text.parse().map_err(|_| bad(format_args!("limit: `{text}` is not a number")))?,
        None => DEFAULT_RECORDS,
    };
    let limit = usize::clamp(limit, 1, MAX_RECORDS);
    let config = served.reloader.current();
    if config.audit.is_none() {
        return Ok(ok(&json!([])));
    }
    let place =
        AuditPlace::of(&config).ok_or_else(|| RouteFault::new(StatusCode::NOT_FOUND, AuditReadError::Nowhere))?;
    let found = tokio::task::spawn_blocking(move || {
        let mut found = VecDeque::new();
        place.search(&query, &mut |record, line| {
            if found.len() >= limit {
                found.pop_front();
            }
            found.push_back(record.shown(line, scope.payloads));
            true
        })?;
        Ok::<_, AuditReadError>(found)
    });
    let failed = |why: &dyn std::fmt::Display| RouteFault::new(StatusCode::INTERNAL_SERVER_ERROR, why);
    let found = found.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    Ok(RoutedAnswer::json(StatusCode::OK, format!("[{}]", Vec::from(found).join(","))))
}

/// Returns the state of the log and its sinks.
pub(super) async fn status(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    ReadScope::of(&request)?;
    let Some(audit) = &served.app().audit else {
        return Ok(ok(&json!({"enabled": false, "sinks": []})));
    };
    let status = AuditStatus::of(audit.stats());
    let mut told =
        serde_json::to_value(&status).map_err(|error| RouteFault::new(StatusCode::INTERNAL_SERVER_ERROR, &error))?;
    told["enabled"] = true.into();
    Ok(ok(&told))
}

fn query(request: &RoutedRequest) -> Result<AuditQuery, RouteFault> {
    let text = |name: &str| request.query.get(name).map(str::to_owned);
    let now = unix_millis().saturating_mul(1_000_000);
    let time = |name: &str| {
        let read = |text: &str| moment::read(text, now).map(|nanos| nanos / 1_000_000);
        request.query.get(name).map(read).transpose().map_err(|error| bad(format_args!("{name}: {error}")))
    };
    let known = |name: &str, word: Option<&str>, is_known: bool| match word {
        Some(word) if !is_known => Err(bad(format_args!("{name}: `{word}` is not known"))),
        _ => Ok(()),
    };
    let (risk, kind) = (request.query.get("risk"), request.query.get("type"));
    let (level, event_type) = (risk.and_then(RiskLevel::of), kind.and_then(EventType::of));
    known("risk", risk, level.is_some())?;
    known("type", kind, event_type.is_some())?;
    Ok(AuditQuery {
        since: time("since")?,
        until: time("until")?,
        principal: text("principal"),
        tool: text("tool"),
        backend: text("backend"),
        status: text("status"),
        risk: level,
        event_type,
        correlation_id: text("id"),
    })
}
