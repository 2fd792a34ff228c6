//! One message on its way: the POST that carries it. What the backend makes of it arrives on the stream of events.

use super::link::Shared;
use super::stream::refusal;
use crate::http_back::backend::Backend;
use crate::http_back::headers;
use crate::http_back::in_flight::Running;
use crate::http_back::post::{in_time, refusal_kind, undelivered};
use crate::http1::Request;
use http::header;
use http::{Method, Uri};
use signalbox_engine::Fault;
use signalbox_engine::back::ToBackend;

/// Sends the message. A request that is refused has failed; a notification that is refused is only logged.
pub(super) async fn run(mut running: Running<Shared>, message: ToBackend) {
    running.begin().await;
    let shared = &*running.shared;
    let posting = post(&shared.backend, &shared.post_to, &message);
    let Some(key) = message.key() else {
        if let Err(fault) = in_time(&shared.backend, posting).await {
            undelivered(&fault);
        }
        return;
    };
    if let Err(fault) = posting.await {
        shared.events.failed(key, fault);
    }
}

async fn post(backend: &Backend, to: &Uri, message: &ToBackend) -> Result<(), Fault> {
    let kept = backend.pool.take();
    let (conn, head) = backend.exchange(kept, request(backend, to, message)).await?;
    if head.status.is_success() {
        backend.finish(conn).await;
        return Ok(());
    }
    let kind = refusal_kind(head.status.as_u16());
    Err(Fault { kind, ..refusal(backend, conn, &head, "a message").await })
}

fn request(backend: &Backend, to: &Uri, message: &ToBackend) -> Request {
    let mut draft = headers::bare(backend, &Method::POST, to);
    draft.add(&header::CONTENT_TYPE, &headers::JSON);
    headers::add_session(&mut draft, None, message.revision());
    draft.with_body(message.bytes().clone())
}
