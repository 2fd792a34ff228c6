//! The one request that tells Streamable HTTP from HTTP+SSE: a POST that either era of the former answers in its own way.

use crate::http_back::backend::Backend;
use crate::http_back::headers;
use crate::http1::{Content, body};
use signalbox_engine::Fault;
use signalbox_engine::back;
use signalbox_runtime::LinkEvents;
use signalbox_wire::Envelope;

/// Most bytes of the answer that are read.
const MAX_ANSWER: usize = 64 * 1024;

/// How the gateway calls itself.
const INFO: &str = concat!(r#"{"name":"signalbox","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

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
pub(super) async fn ask(backend: &Backend, events: &dyn LinkEvents) -> Result<Verdict, Fault> {
    let probe = events.asks(back::probe(INFO));
    let request = headers::post(backend, &probe, None, Vec::new())?;
    let kept = backend.pool.take();
    let (mut conn, head) = backend.exchange(kept, request).await?;
    let (status, content) = (head.status.as_u16(), head.content);
    if !matches!(status, 400 | 404 | 405) {
        // Nobody wants a stream, which may take long to end; a whole answer is recorded.
        if content != Content::Events
            && let Ok(bytes) = body::whole(&mut conn, MAX_ANSWER, || None).await
        {
            events.told(&bytes);
            backend.pool.put(conn);
        }
        return Ok(Verdict::Other);
    }
    let read = body::whole(&mut conn, MAX_ANSWER, || None).await;
    let speaks = read.is_ok_and(|bytes| {
        backend.pool.put(conn);
        events.told(&bytes);
        Envelope::parse(bytes).is_ok()
    });
    Ok(if speaks { Verdict::Other } else { Verdict::PerhapsSse })
}
