//! Side of the gateway from which a tape is replayed.

use signalbox_engine::fact::Point;
use signalbox_engine::record::{Content, MessageEntry, StoreError, TapeKind};
use signalbox_tape::TapeSource;
use std::sync::Arc;

/// Number of entries of a transparent proxy's tape to check for messages of the gateway itself.
const MAX_ENTRIES: usize = 2_000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordedSide {
    /// Messages that clients sent and received.
    Client,
    /// Client messages on the tape of a transparent proxy, which records answers only as the server sends them.
    Transparent,
    /// Messages to and from one backend.
    Backend(Arc<str>),
}

/// Direction of a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Heading {
    /// From client to server.
    ToServer,
    /// From server to client.
    ToClient,
}

impl RecordedSide {
    /// Returns the client side of a tape.
    ///
    /// # Errors
    /// If the tape cannot be read.
    pub fn of(source: &mut TapeSource) -> Result<Self, StoreError> {
        Ok(if is_transparent(source)? { Self::Transparent } else { Self::Client })
    }

    /// Returns the direction of a message on this side, or `None` if it passed elsewhere.
    #[must_use]
    pub fn heading(&self, message: &MessageEntry) -> Option<Heading> {
        let (to_server, to_client) = match self {
            Self::Client => (Point::ClientIn, Point::ClientOut),
            Self::Transparent => (Point::ClientIn, Point::BackendIn),
            Self::Backend(name) if message.backend.as_ref() != Some(name) => return None,
            Self::Backend(_) => (Point::BackendOut, Point::BackendIn),
        };
        match message.point {
            point if point == to_server => Some(Heading::ToServer),
            point if point == to_client => Some(Heading::ToClient),
            _ => None,
        }
    }
}

/// Returns `true` for a tape of `wrap` or `proxy` without messages from the gateway itself.
fn is_transparent(source: &mut TapeSource) -> Result<bool, StoreError> {
    if !matches!(source.info().kind, TapeKind::Wrap | TapeKind::Proxy) {
        return Ok(false);
    }
    for entry in source.kept_after(0).take(MAX_ENTRIES) {
        if matches!(&entry?.content, Content::Message(message) if message.point == Point::ClientOut) {
            return Ok(false);
        }
    }
    Ok(true)
}
