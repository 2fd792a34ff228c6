//! Reads a request body within its limits.

use crate::read_charge::ReadCharge;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use signalbox_engine::Limit;
use signalbox_engine::budget::{OverBudget, Share, WEIGHED};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Reasons why a body was not read.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BodyError {
    /// The body exceeds the message limit.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body exceeds the limit for callers that are not yet identified.
    #[error(
        "the body is larger than {0} bytes, which is the most that is read of a caller whom only its signature proves; call with a \
         client certificate, or send less"
    )]
    UnknownCaller(usize),
    /// The body did not arrive in time.
    #[error("the body did not arrive in time")]
    TooSlow,
    #[error("the body ended early")]
    Broken,
    /// The memory budget has no room, and had none for a while.
    #[error("the body is not taken: {0}; try again later")]
    NoRoom(OverBudget),
}

impl BodyError {
    /// Returns the status of the refusal.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLarge(_) | Self::UnknownCaller(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::NoRoom(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the limit to count.
    #[must_use]
    pub fn limit(self) -> Option<Limit> {
        match self {
            Self::TooLarge(_) => Some(Limit::MessageSize),
            Self::TooSlow => Some(Limit::MessageTime),
            // Counted where the error arose.
            Self::Broken | Self::UnknownCaller(_) => None,
            Self::NoRoom(_) => Some(Limit::Memory),
        }
    }
}

/// Reads the whole body. Sets a timer only if the body has not arrived yet. Charges a body that is large, or may be, to
/// `share`.
pub(crate) async fn read_body(
    body: Incoming,
    limit: usize,
    within: Duration,
    share: impl FnOnce() -> Option<Arc<Share>>,
) -> Result<Bytes, BodyError> {
    let length = body.size_hint();
    if length.lower() > limit as u64 {
        return Err(BodyError::TooLarge(limit));
    }
    if length.upper().is_none_or(|most| most >= WEIGHED as u64)
        && let Some(share) = share()
    {
        let reading = Box::pin(collect_charged(body, limit, ReadCharge::new(Some(share))));
        return tokio::time::timeout(within, reading).await.unwrap_or(Err(BodyError::TooSlow));
    }
    let mut reading = pin!(collect(body, limit));
    let at_once = std::future::poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await;
    match at_once {
        Poll::Ready(done) => done,
        Poll::Pending => Box::pin(tokio::time::timeout(within, reading)).await.unwrap_or(Err(BodyError::TooSlow)),
    }
}

/// Reads a body and charges it. If its length is known, the room is reserved before any of it is read.
async fn collect_charged(mut body: Incoming, limit: usize, mut charge: ReadCharge) -> Result<Bytes, BodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(limit);
    charge.cover(announced).await.map_err(BodyError::NoRoom)?;
    let mut whole = BytesMut::with_capacity(announced);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let length = whole.len() + data.len();
        if length > limit {
            return Err(BodyError::TooLarge(limit));
        }
        charge.cover(length.max(announced)).await.map_err(BodyError::NoRoom)?;
        whole.extend_from_slice(&data);
    }
    Ok(charge.give(whole.freeze()))
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, BodyError> {
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let have = first.as_ref().map_or(0, Bytes::len).max(rest.len());
        if have + data.len() > limit {
            return Err(BodyError::TooLarge(limit));
        }
        match first.take() {
            // Most bodies are one chunk, which is passed on without a copy.
            None if rest.is_empty() => first = Some(data),
            None => rest.extend_from_slice(&data),
            Some(one) => {
                let expected = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(limit);
                rest.reserve(one.len() + data.len() + expected);
                rest.extend_from_slice(&one);
                rest.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| rest.freeze()))
}
