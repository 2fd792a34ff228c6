//! What a handler is given.

use super::pattern::Captured;
use super::problem::Problem;
use super::query::{Query, decoded};
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
    /// The method; `HEAD` where the route says `GET` and only the head is wanted.
    pub method: Method,
    /// The path, as it was sent.
    pub path: String,
    /// What stands behind the `?`, decoded.
    pub query: Query,
    /// All headers.
    pub headers: HeaderMap,
    /// Who asks.
    pub caller: Caller,
    /// What was sent with it.
    pub body: RoutedBody,
    segments: Vec<(&'static str, String)>,
}

impl RoutedRequest {
    /// A request with this head and body, of this caller, for a route whose names stand for what was captured.
    pub(super) fn new(
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
        captured: &Captured<'_>,
        caller: Caller,
        body: RoutedBody,
    ) -> Result<Self, Problem> {
        let decode = |&(name, text): &(&'static str, &str)| decoded(text).map(|text| (name, text));
        Ok(Self {
            method,
            path: uri.path().to_owned(),
            query: Query::read(uri.query().unwrap_or_default()).map_err(Problem::Query)?,
            segments: captured.iter().map(decode).collect::<Result<_, _>>().map_err(Problem::Path)?,
            headers,
            caller,
            body,
        })
    }

    /// What stands in the path at this name, decoded. Nothing where the route has no such name.
    #[must_use]
    pub fn segment(&self, name: &str) -> &str {
        self.segments.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
    }

    /// True where the client would rather have events than anything else.
    #[must_use]
    pub fn wants_events(&self) -> bool {
        Accepts::read(&self.headers).rather_sse
    }
}

/// The body of a request, which has a limit. What is not read of it is thrown away.
#[derive(Debug)]
pub struct RoutedBody {
    incoming: Incoming,
    limit: usize,
    read: usize,
    within: Duration,
}

impl RoutedBody {
    /// A body of which at most so much is taken, and which may take so long.
    pub(super) fn new(incoming: Incoming, limit: usize, within: Duration) -> Result<Self, BodyError> {
        if incoming.size_hint().lower() > limit as u64 {
            return Err(BodyError::TooLarge(limit));
        }
        Ok(Self { incoming, limit, read: 0, within })
    }

    /// The whole of it, or what has not been read by pieces.
    ///
    /// # Errors
    /// If it is too large, too slow, or breaks off.
    pub async fn bytes(self) -> Result<Bytes, BodyError> {
        self.charged(None).await
    }

    /// The whole of it, charged to a share from its first byte until its last copy is dropped. A body for which there is no room
    /// is refused before it is read.
    ///
    /// # Errors
    /// As [`Self::bytes`], and if there is no room for it for a while.
    pub async fn charged(self, share: Option<Arc<Share>>) -> Result<Bytes, BodyError> {
        let rest = read_body(self.incoming, self.limit.saturating_sub(self.read), self.within, || share).await;
        rest.map_err(
            |error| if matches!(error, BodyError::TooLarge(_)) { BodyError::TooLarge(self.limit) } else { error },
        )
    }

    /// The next piece of it; none at its end. Each has the time that a body as a whole has in [`Self::bytes`].
    ///
    /// # Errors
    /// If it is too large, too slow, or breaks off.
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
