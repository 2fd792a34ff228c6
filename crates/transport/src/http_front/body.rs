//! The body of an answer: there as a whole, or a stream.

use super::client_connection::Held;
use super::routed::Stream;
use super::sse_body::SseBody;
use crate::router::Broken;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Any kind.
pub enum FrontBody {
    /// The whole answer.
    Whole(Option<Bytes>),
    /// Events until the stream ends.
    Events(Box<(SseBody, Held)>),
    /// What the router gives bit by bit.
    Routed(Box<Stream>),
}

impl FrontBody {
    /// A body that is there as a whole.
    pub fn whole(bytes: Bytes) -> Self {
        Self::Whole(if bytes.is_empty() { None } else { Some(bytes) })
    }
}

impl Body for FrontBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events.0.poll_chunk(cx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes)))),
            Self::Routed(stream) => stream.poll_chunk(cx).map(|chunk| chunk.map(|bytes| bytes.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Events(_) | Self::Routed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Events(_) | Self::Routed(_) => SizeHint::default(),
        }
    }
}
