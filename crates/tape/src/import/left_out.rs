//! What of a recording was not imported, and why.

use std::fmt;
use std::net::SocketAddr;

/// Something that was not imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeftOut {
    /// Something of a connection.
    Connection {
        /// Its number in the file, from 1.
        number: usize,
        /// The address of the client.
        client: SocketAddr,
        /// The address of the server.
        server: SocketAddr,
        /// What is missing of it.
        what: Missing,
    },
    /// Packets of a link type that is not read.
    LinkType {
        /// The number of the link type.
        link: i32,
        /// How many packets.
        packets: u64,
    },
    /// Fragments of IP packets that carry TCP.
    Fragments {
        /// How many.
        packets: u64,
    },
}

/// What of a connection was not imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// All of it: it is encrypted.
    Encrypted,
    /// All of it: it is HTTP/2.
    Http2,
    /// What was sent before the capture began.
    Beginning,
    /// What one side sent after bytes that were not captured.
    AfterLoss {
        /// The first packet after them.
        packet: u64,
    },
    /// What one side sent from here on: it cannot be read.
    Unreadable {
        /// The packet.
        packet: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A body.
    Encoded {
        /// The packet in which its head ends.
        packet: u64,
        /// Its encoding.
        encoding: String,
    },
    /// A body, an event or a message that is larger than is read.
    TooLarge {
        /// The packet in which it ends.
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
