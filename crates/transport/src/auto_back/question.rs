//! The one request that tells Streamable HTTP from HTTP+SSE: a POST that either era of the former answers in its own way.

use crate::http_back::backend::Backend;
use crate::http_back::body;
use crate::http_back::headers;
use crate::http_back::post::Content;
use signalbox_engine::Fault;
use signalbox_engine::back::Outbound;
use signalbox_wire::{Envelope, RawId, Revision, builder, meta, method};

/// Most bytes of the answer that are read.
const MAX_ANSWER: usize = 64 * 1024;

/// What the answer means.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It may come from a server that knows no POST at this address.
    PerhapsSse,
    /// It comes from Streamable HTTP, or from something that asking for a stream would not explain either.
    Other,
}

/// Asks.
///
/// # Errors
/// If there is no answer.
pub(super) async fn ask(backend: &Backend) -> Result<Verdict, Fault> {
    let request = headers::post(backend, &probe(), None, Vec::new())?;
    let kept = backend.pool.take();
    let (mut conn, head) = backend.exchange(kept, request).await?;
    let (status, content) = (head.status.as_u16(), head.content);
    if !matches!(status, 400 | 404 | 405) {
        // Read no further than for the connection's sake: a stream may be long in coming, and nobody wants it.
        if content != Content::Events {
            backend.finish(conn).await;
        }
        return Ok(Verdict::Other);
    }
    let read = body::whole(&mut conn, MAX_ANSWER).await;
    let speaks = read.is_ok_and(|bytes| {
        backend.pool.put(conn);
        Envelope::parse(bytes).is_ok()
    });
    Ok(if speaks { Verdict::Other } else { Verdict::PerhapsSse })
}

/// The question which revisions a server of the new era speaks. It changes nothing anywhere, and opens no session.
fn probe() -> Outbound {
    let params = format!(
        r#"{{"_meta":{{"{}":"{}","{}":{{}},"{}":{{"name":"signalbox","version":"{}"}}}}}}"#,
        meta::PROTOCOL_VERSION,
        Revision::LATEST.as_str(),
        meta::CLIENT_CAPABILITIES,
        meta::CLIENT_INFO,
        env!("CARGO_PKG_VERSION"),
    );
    let bytes =
        builder::Request::new(method::SERVER_DISCOVER).id(RawId::number(0)).params_raw(params.as_bytes()).build();
    Outbound {
        bytes,
        key: Some(0),
        revision: Some(Revision::LATEST),
        method: method::SERVER_DISCOVER.into(),
        name: None,
        params: Vec::new(),
        epoch: 0,
    }
}
