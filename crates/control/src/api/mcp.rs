//! `/api/v1/mcp`: MCP at the control socket. The body contains messages as a client would write them to standard input,
//! one per line. The response streams the gateway's messages line by line until the client disconnects.

use super::{ApiState, bad};
use bytes::Bytes;
use http::StatusCode;
use signalbox_transport::router::{Broken, Chunks, HandlerResult, RouteFault, RoutedAnswer, RoutedRequest};
use signalbox_transport::stdio_front;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWriteExt as _, DuplexStream, ReadBuf};

/// Size of the pipe buffer in each direction, in bytes.
const BUFFER: usize = 256 * 1024;
/// Maximum size of a chunk of the response, in bytes.
const CHUNK: usize = 64 * 1024;
const LINES: &str = "application/x-ndjson";

/// Opens a session for the caller, which ends with the connection.
pub(super) async fn speak(served: Arc<ApiState>, request: RoutedRequest) -> HandlerResult {
    let caller = request.caller.clone();
    let messages = request.body.bytes().await?;
    if messages.is_empty() {
        return Err(bad("the body contains no message"));
    }
    // The session reads the messages from the pipe one by one. The pipe buffers all of them meanwhile, and its input
    // stays open: the end of the input would end the session before it has answered.
    let (mut ours, theirs) = tokio::io::duplex(BUFFER.max(messages.len() + 1));
    let broken = |error| RouteFault::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    ours.write_all(&messages).await.map_err(broken)?;
    ours.write_all(b"\n").await.map_err(broken)?;
    let gateway = Arc::clone(&served.app().gateway);
    tokio::spawn(async move {
        let (input, output) = tokio::io::split(theirs);
        if let Err(error) = stdio_front::serve(input, output, gateway, caller, Duration::ZERO).await {
            tracing::debug!(%error, "a session at the control socket ended");
        }
    });
    Ok(RoutedAnswer::live(LINES, Lines { pipe: ours }))
}

/// Response stream of the gateway's messages. Dropping it ends the session and cancels its pending requests.
struct Lines {
    pipe: DuplexStream,
}

impl Chunks for Lines {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let mut chunk = vec![0; CHUNK];
        let mut buffer = ReadBuf::new(&mut chunk);
        let read = ready!(Pin::new(&mut self.pipe).poll_read(cx, &mut buffer));
        let length = buffer.filled().len();
        Poll::Ready(match read {
            Ok(()) if length == 0 => None,
            Ok(()) => {
                chunk.truncate(length);
                Some(Ok(chunk.into()))
            }
            Err(error) => Some(Err(Broken(error.to_string()))),
        })
    }
}
