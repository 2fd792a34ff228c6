//! `/anchors`: stores signed heads of other gateways' tapes, so that these tapes can be compared with them later.

use super::{ApiState, ok};
use http::StatusCode;
use serde_json::json;
use signalbox_assembly::anchor_book::{AnchorError, AnchorOutcome};
use signalbox_engine::Caller;
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_seal::TrustError;
use signalbox_tape::seal::SignedHead;
use signalbox_transport::router::{HandlerResult, RouteFault, RoutedRequest};
use std::sync::Arc;

/// Maximum size of a head in bytes.
pub(super) const MAX_HEAD: usize = 4 * 1024;

/// Stores a head signed by a trusted key. Records refusals, because the sender has no credential but the signature.
pub(super) async fn keep(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let caller = request.caller.clone();
    let body = request.body.bytes().await?;
    let read = serde_json::from_slice(&body).map_err(|error| format!("the body: {error}"));
    let read = read.and_then(|value| SignedHead::from_json(value).map_err(|error| error.to_string()));
    let head =
        read.map_err(|why| refuse(&served, &caller, StatusCode::BAD_REQUEST, FaultKind::InvalidRequest, &why))?;
    let book = Arc::clone(&served.anchors);
    let kept = tokio::task::spawn_blocking(move || book.keep(&head)).await;
    let kept = kept.map_err(|error| RouteFault::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    let kept = kept.map_err(|error| {
        let (status, kind) = match &error {
            AnchorError::Signature => (StatusCode::FORBIDDEN, FaultKind::Signature("tampered")),
            AnchorError::Untrusted(TrustError::Revoked(_)) => {
                (StatusCode::FORBIDDEN, FaultKind::Signature("revoked_key"))
            }
            AnchorError::Untrusted(_) => (StatusCode::FORBIDDEN, FaultKind::Signature("key_not_trusted")),
            AnchorError::Owner(_) => (StatusCode::FORBIDDEN, FaultKind::Signature("anchor_owner")),
            AnchorError::Conflict { .. } => (StatusCode::CONFLICT, FaultKind::Signature("anchor_conflict")),
            AnchorError::Full => (StatusCode::INSUFFICIENT_STORAGE, FaultKind::Overloaded),
            AnchorError::Keys(_) | AnchorError::File(_) => (StatusCode::SERVICE_UNAVAILABLE, FaultKind::Overloaded),
        };
        refuse(&served, &caller, status, kind, &error.to_string())
    })?;
    Ok(ok(&json!({"kept": kept == AnchorOutcome::New})))
}

/// Records a refusal, rate-limited per address, and returns the response.
fn refuse(served: &ApiState, caller: &Caller, status: StatusCode, kind: FaultKind, why: &str) -> RouteFault {
    let fault = Fault::new(kind, format!("/anchors: {why}"));
    served.app().gateway.refused(caller, Some(status.as_u16()), &fault, None);
    RouteFault::new(status, why)
}
