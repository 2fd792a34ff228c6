//! The request that a handler receives.

use super::pattern::Captures;
use super::query_params::{QueryParams, decode};
use super::route_fault::RouteFault;
use crate::http_front::Accepts;
use crate::read_body::{BodyError, read_body};
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use signalbox_engine::Caller;
use signalbox_engine::budget::Share;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A request for a route.
#[derive(Debug)]
pub struct RoutedRequest {
    /// Method; `HEAD` if the route is for `GET` and the client wants only the head.
    pub method: Method,
    /// Path as sent, not decoded.
    pub path: String,
    pub query: QueryParams,
    pub headers: HeaderMap,
    /// Caller of the request.
    pub caller: Caller,
    /// Body, which is not read yet.
    pub body: RoutedBody,
    segments: Vec<(&'static str, String)>,
}

impl RoutedRequest {
    /// Creates a request and decodes its query and its captured path segments.
    pub(super) fn new(
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
        captured: &Captures<'_>,
        caller: Caller,
        body: RoutedBody,
    ) -> Result<Self, RouteFault> {
        let decode = |&(name, text): &(&'static str, &str)| decode(text).map(|text| (name, text));
        Ok(Self {
            method,
            path: uri.path().to_owned(),
            query: QueryParams::read(uri.query().unwrap_or_default()).map_err(RouteFault::Query)?,
            segments: captured.iter().map(decode).collect::<Result<_, _>>().map_err(RouteFault::Path)?,
            headers,
            caller,
            body,
        })
    }

    /// Returns the decoded path segment with this name, or an empty string if the route has no such name.
    #[must_use]
    pub fn segment(&self, name: &str) -> &str {
        self.segments.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
    }

    /// Returns `true` if the client prefers server-sent events.
    #[must_use]
    pub fn wants_events(&self) -> bool {
        Accepts::read(&self.headers).rather_sse
    }
}

/// Body of a request, with a size limit. Unread bytes are discarded.
#[derive(Debug)]
pub struct RoutedBody {
    incoming: Incoming,
    limit: usize,
    read: usize,
    within: Duration,
}

impl RoutedBody {
    /// Creates a body with a maximum size and a time limit per read.
    pub(super) fn new(incoming: Incoming, limit: usize, within: Duration) -> Result<Self, BodyError> {
        if incoming.size_hint().lower() > limit as u64 {
            return Err(BodyError::TooLarge(limit));
        }
        Ok(Self { incoming, limit, read: 0, within })
    }

    /// Reads the whole body, or the rest after [`Self::piece`].
    ///
    /// # Errors
    /// Returns an error if the body is too large, too slow, or incomplete.
    pub async fn bytes(self) -> Result<Bytes, BodyError> {
        self.charged(None).await
    }

    /// Reads the whole body and charges it to a share from its first byte until its last copy is dropped. A body for
    /// which there is no room is refused before it is read.
    ///
    /// # Errors
    /// Like [`Self::bytes`]; also returns an error if there is no room for a while.
    pub async fn charged(self, share: Option<Arc<Share>>) -> Result<Bytes, BodyError> {
        let rest = read_body(self.incoming, self.limit.saturating_sub(self.read), self.within, || share).await;
        rest.map_err(
            |error| if matches!(error, BodyError::TooLarge(_)) { BodyError::TooLarge(self.limit) } else { error },
        )
    }

    /// Reads the next piece of the body; `None` at its end. Each piece has the time limit that [`Self::bytes`] has for
    /// the whole body.
    ///
    /// # Errors
    /// Returns an error if the body is too large, too slow, or incomplete.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            let frame = timeout(self.within, self.incoming.frame()).await.map_err(|_| BodyError::TooSlow)?;
            let Some(frame) = frame else { return Ok(None) };
            let Ok(piece) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
            self.read = self.read.saturating_add(piece.len());
            if self.read > self.limit {
                return Err(BodyError::TooLarge(self.limit));
            }
            return Ok(Some(piece));
        }
    }
}
