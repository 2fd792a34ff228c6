//! Bodies that are forwarded and reported to a feed.

use super::upstream::{Sender, Upstream};
use crate::tap::{Feed, HttpEvent, HttpStep, TapSide};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Limits on reading a body that is not forwarded.
const READ_OUT_BYTES: usize = 16 << 20;
const READ_OUT_TIME: Duration = Duration::from_secs(5);

/// A body that is forwarded frame by frame, or one of our own.
pub(super) struct ForwardedBody {
    content: Content,
    watch: Option<BodyObserver>,
    /// Connection of the answer, to be reused once the answer has ended.
    connection: Option<(Arc<Upstream>, Sender)>,
}

enum Content {
    Stream(Incoming),
    Own(Option<Bytes>),
}

/// Feed to report to, and the side that the body comes from.
pub(super) struct BodyObserver {
    pub(super) feed: Feed<HttpEvent>,
    pub(super) call: u64,
    pub(super) side: TapSide,
}

impl BodyObserver {
    fn tell(&self, step: HttpStep) {
        self.feed.push(Instant::now(), HttpEvent { call: self.call, step });
    }
}

impl ForwardedBody {
    /// Creates a forwarded body.
    pub(super) fn stream(
        body: Incoming,
        watch: Option<BodyObserver>,
        connection: Option<(Arc<Upstream>, Sender)>,
    ) -> Self {
        let mut forwarded_body = Self { content: Content::Stream(body), watch, connection };
        if forwarded_body.is_end_stream() {
            forwarded_body.end(true);
        }
        forwarded_body
    }

    /// Creates a body of our own.
    pub(super) fn own(text: impl Into<Bytes>) -> Self {
        Self { content: Content::Own(Some(text.into())), watch: None, connection: None }
    }

    /// Reads a body that is not forwarded, within limits, so that it is reported.
    pub(super) async fn read_out(mut self) {
        let reading = async {
            let mut read = 0;
            while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut self).poll_frame(cx)).await {
                read += frame.data_ref().map_or(0, Bytes::len);
                if read > READ_OUT_BYTES {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(READ_OUT_TIME, reading).await;
    }

    /// Reports the end once, as soon as it is known: a body of known length is not polled again after its last byte.
    fn end(&mut self, complete: bool) {
        if let Some(watch) = self.watch.take() {
            watch.tell(HttpStep::BodyEnd { side: watch.side, complete });
        }
        if let Some((upstream, sender)) = self.connection.take()
            && complete
        {
            upstream.keep(sender);
        }
    }
}

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let body = match &mut this.content {
            Content::Own(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Stream(body) => body,
        };
        let polled = Pin::new(&mut *body).poll_frame(cx);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                let last = body.is_end_stream();
                if let (Some(watch), Some(data)) = (&this.watch, frame.data_ref()) {
                    // Copied, since a slice would keep the connection's whole buffer alive.
                    watch.tell(HttpStep::Body(watch.side, Bytes::copy_from_slice(data)));
                }
                if last {
                    this.end(true);
                }
            }
            Poll::Ready(None) => this.end(true),
            Poll::Ready(Some(Err(_))) => this.end(false),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Stream(body) => body.is_end_stream(),
            Content::Own(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Stream(body) => body.size_hint(),
            Content::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
        }
    }
}

impl Drop for ForwardedBody {
    fn drop(&mut self) {
        self.end(false);
    }
}
