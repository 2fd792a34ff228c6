//! Reasons why a WebSocket ended, and the matching close codes.

use super::CloseCode;
use std::fmt;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// Maximum number of characters kept of the peer's reason.
const SHOWN: usize = 200;

/// Reason why a WebSocket ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The peer closed the connection, with this code and reason.
    Closed(u16, String),
    /// The connection broke without a close frame.
    Broken(String),
    /// A message is too large.
    TooLarge,
    /// A text message is not UTF-8.
    NotText,
    /// The peer violated the WebSocket protocol.
    Protocol(String),
    /// The peer was silent for too long.
    Silent,
    /// A message was not finished in time.
    Slow,
    /// The memory budget has no room for a message.
    NoRoom(String),
}

impl Ending {
    /// Returns the close code to send, if any.
    pub(crate) fn code(&self) -> Option<CloseCode> {
        match self {
            Self::Closed(..) | Self::Broken(_) => None,
            Self::TooLarge => Some(CloseCode::Size),
            Self::NotText => Some(CloseCode::Invalid),
            Self::Protocol(_) => Some(CloseCode::Protocol),
            Self::Silent | Self::Slow => Some(CloseCode::Policy),
            Self::NoRoom(_) => Some(CloseCode::Again),
        }
    }
}

impl fmt::Display for Ending {
    /// Writes a predicate, to follow the name of the peer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(code, reason) if reason.is_empty() => write!(f, "closed the connection with code {code}"),
            Self::Closed(code, reason) => write!(f, "closed the connection with code {code}: {reason}"),
            Self::Broken(why) => write!(f, "broke the connection: {why}"),
            Self::TooLarge => f.write_str("sent a message that is too large"),
            Self::NotText => f.write_str("sent a text message that is not UTF-8"),
            Self::Protocol(why) => write!(f, "sent something else than WebSocket frames: {why}"),
            Self::Silent => f.write_str("gave no sign of life for too long"),
            Self::Slow => f.write_str("took too long to finish a message"),
            Self::NoRoom(why) => write!(f, "sent a message for which there is no room: {why}"),
        }
    }
}

impl From<Option<CloseFrame>> for Ending {
    fn from(frame: Option<CloseFrame>) -> Self {
        match frame {
            Some(frame) => {
                let reason = frame.reason.escape_debug().take(SHOWN).collect();
                Self::Closed(frame.code.into(), reason)
            }
            None => Self::Closed(CloseCode::Status.into(), String::new()),
        }
    }
}

impl From<Error> for Ending {
    fn from(error: Error) -> Self {
        match error {
            Error::ConnectionClosed | Error::AlreadyClosed => None.into(),
            Error::Capacity(_) => Self::TooLarge,
            Error::Utf8(_) => Self::NotText,
            Error::Io(error) if error.kind() == std::io::ErrorKind::QuotaExceeded => Self::NoRoom(error.to_string()),
            Error::Io(error) => Self::Broken(error.to_string()),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                Self::Broken("it ended without a closing".to_owned())
            }
            Error::Protocol(error) => Self::Protocol(error.to_string()),
            other => Self::Broken(other.to_string()),
        }
    }
}
