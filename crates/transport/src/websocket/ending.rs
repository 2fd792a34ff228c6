//! Why a WebSocket ended, and what the other side is told about it.

use super::CloseCode;
use std::fmt;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// Most characters of another side's reason that are repeated.
const SHOWN: usize = 200;

/// Why it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The other side closed it, with this code and this reason.
    Closed(u16, String),
    /// The connection broke.
    Broken(String),
    /// A message is too large.
    TooLarge,
    /// A text message is no text.
    NotText,
    /// What came is not WebSocket.
    Protocol(String),
    /// Nothing was heard for too long.
    Silent,
    /// A message that was begun was not finished in time.
    Slow,
    /// There is no room for a message.
    NoRoom(String),
}

impl Ending {
    /// What to tell the other side, if it should be told anything.
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
    /// Goes on after the name of the other side.
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
