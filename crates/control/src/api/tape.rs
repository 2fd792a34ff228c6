//! `/api/v1/tape/keep`: the tape that is being written.

use super::{Served, ok};
use http::StatusCode;
use serde_json::json;
use signalbox_assembly::recording::KeepError;
use signalbox_transport::router::{Answered, Problem, Request};
use std::sync::Arc;

/// Writes down what the ring holds.
pub(super) async fn keep(served: Arc<Served>, request: Request) -> Answered {
    let app = served.app();
    let none = || Problem::new(StatusCode::CONFLICT, "nothing is recorded: `record.enabled` is false");
    let recording = app.recording.as_ref().ok_or_else(none)?;
    // What has happened until now belongs to it.
    app.gateway.settle();
    let entries = recording.keep().await.map_err(|error| {
        let status = match error {
            KeepError::NoRing(_) => StatusCode::CONFLICT,
            KeepError::NotWritten(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, error)
    })?;
    let tape = &recording.tape().id;
    tracing::info!(entries, %tape, by = %request.caller, "a person had the ring written to the tape");
    Ok(ok(&json!({"tape": tape, "entries": entries})))
}
