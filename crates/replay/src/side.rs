//! Which side of the gateway a tape is seen from.

use signalbox_engine::fact::Point;
use signalbox_engine::record::{Content, MessageEntry, StoreError, TapeKind};
use signalbox_tape::TapeSource;
use std::sync::Arc;

/// How many entries of a transparent proxy's tape are looked at for words of the gateway itself.
const LOOKED_AT: usize = 2_000;

/// The side whose conversation is replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Side {
    /// What clients sent and got.
    Client,
    /// The same on a tape of a transparent proxy, which sees answers only as the server sends them.
    Transparent,
    /// What one backend was sent and said.
    Backend(Arc<str>),
}

/// Which way a message went.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Heading {
    /// From the client's side to the server's.
    ToServer,
    /// From the server's side to the client's.
    ToClient,
}

impl Side {
    /// The side of the clients of a tape.
    ///
    /// # Errors
    /// If the tape cannot be read.
    pub fn of(source: &mut TapeSource) -> Result<Self, StoreError> {
        Ok(if is_transparent(source)? { Self::Transparent } else { Self::Client })
    }

    /// Which way a message went on this side; none if it passed elsewhere.
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

/// True for a tape of `wrap` or `proxy` on which nothing was sent by the gateway itself.
fn is_transparent(source: &mut TapeSource) -> Result<bool, StoreError> {
    if !matches!(source.info().kind, TapeKind::Wrap | TapeKind::Proxy) {
        return Ok(false);
    }
    for entry in source.kept_after(0).take(LOOKED_AT) {
        if matches!(&entry?.content, Content::Message(message) if message.point == Point::ClientOut) {
            return Ok(false);
        }
    }
    Ok(true)
}
