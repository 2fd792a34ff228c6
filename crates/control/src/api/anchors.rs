//! `/anchors`: keeps signed heads of other gateways' tapes, so that these can be compared with them later.

use super::{Served, bad, ok};
use http::StatusCode;
use serde_json::json;
use signalbox_assembly::anchor_book::{Kept, NotKept};
use signalbox_tape::seal::SignedHead;
use signalbox_transport::router::{Answered, Problem, RoutedRequest};
use std::sync::Arc;

/// The largest head.
pub(super) const MAX_HEAD: usize = 4 * 1024;

/// Keeps one that a trusted key signed.
pub(super) async fn keep(served: Arc<Served>, request: RoutedRequest) -> Answered {
    let body = request.body.bytes().await?;
    let value = serde_json::from_slice(&body).map_err(|error| bad(format_args!("the body: {error}")))?;
    let head = SignedHead::from_json(value).map_err(bad)?;
    let book = Arc::clone(&served.anchors);
    let kept = tokio::task::spawn_blocking(move || book.keep(&head)).await;
    let kept = kept.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    let kept = kept.map_err(|error| {
        let status = match &error {
            NotKept::Signature | NotKept::Untrusted(_) => StatusCode::FORBIDDEN,
            NotKept::Conflict { .. } => StatusCode::CONFLICT,
            NotKept::Full => StatusCode::INSUFFICIENT_STORAGE,
            NotKept::Keys(_) | NotKept::File(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, error)
    })?;
    Ok(ok(&json!({"kept": kept == Kept::New})))
}
