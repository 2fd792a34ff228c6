//! The transports on both sides of the gateway.

use crate::revision::Revision;

/// How a client reaches the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Front {
    /// As a child process of the client.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
    /// WebSocket.
    Ws,
    /// Lines over TCP.
    Tcp,
}

impl Front {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Stdio, Self::Http, Self::Sse, Self::Ws, Self::Tcp];

    /// Whether a client of this revision has it.
    pub fn fits(self, revision: Revision) -> bool {
        match self {
            Self::Http => revision.streams(),
            Self::Sse => !revision.modern(),
            _ => true,
        }
    }

    /// The HTTP transport of a revision.
    pub fn main(revision: Revision) -> Self {
        if revision.streams() { Self::Http } else { Self::Sse }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "Streamable HTTP",
            Self::Sse => "HTTP+SSE",
            Self::Ws => "WebSocket",
            Self::Tcp => "TCP",
        }
    }
}

/// How the gateway reaches a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Back {
    /// As a child process of the gateway.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
    /// WebSocket.
    Ws,
}

impl Back {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Stdio, Self::Http, Self::Sse, Self::Ws];

    /// Whether a server of this revision has it.
    pub fn fits(self, revision: Revision) -> bool {
        match self {
            Self::Http => revision.streams(),
            Self::Sse => !revision.modern(),
            _ => true,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "Streamable HTTP",
            Self::Sse => "HTTP+SSE",
            Self::Ws => "WebSocket",
        }
    }
}
