//! Which side of the gateway a tape is seen from.

use signalbox_engine::fact::Point;
use signalbox_engine::record::MessageEntry;
use std::sync::Arc;

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
