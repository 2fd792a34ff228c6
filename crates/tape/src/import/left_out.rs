//! Omissions of an import and their reasons.

use std::fmt;
use std::net::SocketAddr;

/// A part of a recording that was not imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeftOut {
    /// A part of a connection.
    Connection {
        /// Number of the connection in the file, counted from 1.
        number: usize,
        /// Address of the client.
        client: SocketAddr,
        /// Address of the server.
        server: SocketAddr,
        /// Omitted part of the connection.
        what: Missing,
    },
    /// Packets of an unsupported link type.
    LinkType {
        /// Number of the link type.
        link: i32,
        /// Number of such packets.
        packets: u64,
    },
    /// IP fragments that carry TCP.
    Fragments {
        /// Number of such fragments.
        packets: u64,
    },
}

/// The part of a connection that was not imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// All of the connection, because it is encrypted.
    Encrypted,
    /// All of the connection, because it is HTTP/2.
    Http2,
    /// The bytes sent before the capture began.
    Beginning,
    /// The bytes that one side sent after a gap in the capture.
    AfterLoss {
        /// Number of the first packet after the gap.
        packet: u64,
    },
    /// The bytes that one side sent from here on, because they cannot be parsed.
    Unreadable {
        /// Number of the packet.
        packet: u64,
        /// Description of the mistake.
        why: &'static str,
    },
    /// A body in an unsupported encoding.
    Encoded {
        /// Number of the packet in which its head ends.
        packet: u64,
        /// Name of the encoding.
        encoding: String,
    },
    /// A body, event or message that exceeds the size limit.
    TooLarge {
        /// Number of the packet in which it ends.
        packet: u64,
    },
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection { number, client, server, what } => {
                write!(f, "connection {number} ({client} to {server}) {what}")
            }
            Self::LinkType { link, packets } => write!(f, "{packets} packets of link type {link} were left out"),
            Self::Fragments { packets } => write!(f, "{packets} fragments of IP packets were left out"),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encrypted => write!(f, "is encrypted and was left out"),
            Self::Http2 => write!(f, "is HTTP/2 and was left out"),
            Self::Beginning => {
                write!(f, "began before the capture; what came before its first whole request was left out")
            }
            Self::AfterLoss { packet } => {
                write!(f, "lacks bytes before packet {packet}; what that side sent after them was left out")
            }
            Self::Unreadable { packet, why } => {
                write!(f, "cannot be read from packet {packet} on and was left out from there: {why}")
            }
            Self::Encoded { packet, encoding } => {
                write!(f, "has a body in the encoding {encoding:?} at packet {packet}, which was left out")
            }
            Self::TooLarge { packet } => {
                write!(f, "has something larger than a message may be, up to packet {packet}, which was left out")
            }
        }
    }
}
