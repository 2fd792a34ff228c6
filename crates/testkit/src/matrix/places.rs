//! The transports on both sides of the gateway.

use crate::process::built;
use crate::revision::Revision;
use crate::revision_server::{self, Network, Options, RunningServer};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// How a client reaches the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrontTransport {
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

impl FrontTransport {
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
pub enum BackTransport {
    /// As a child process of the gateway.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
    /// WebSocket.
    Ws,
}

impl BackTransport {
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

/// The config of a backend that is such a server, and the server if it runs here.
///
/// # Errors
/// When the server is not built, or does not start.
pub async fn backend(options: &Options, back: BackTransport) -> anyhow::Result<(String, Option<RunningServer>)> {
    let network = match back {
        BackTransport::Stdio => {
            let program = text(&built("revision-server")?)?;
            let arguments = json!(arguments(options)?);
            return Ok((format!("[backends.only]\ncommand = {program}\nargs = {arguments}\n"), None));
        }
        BackTransport::Http => Network::Http,
        BackTransport::Sse => Network::Sse,
        BackTransport::Ws => Network::Ws,
    };
    let server = revision_server::start(options, network, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    Ok((format!("[backends.only]\nurl = \"{}\"\n", server.url()), Some(server)))
}

fn arguments(options: &Options) -> anyhow::Result<Vec<Value>> {
    let mut all = vec![json!("--stdio"), json!("--revision"), json!(options.revision.name())];
    let files = [("--journal", &options.journal), ("--wire-log", &options.wire_log)];
    for (name, path) in files.into_iter().filter_map(|(name, path)| Some((name, path.as_ref()?))) {
        all.extend([json!(name), text(path)?]);
    }
    if options.odd {
        all.push(json!("--odd"));
    }
    Ok(all)
}

fn text(path: &Path) -> anyhow::Result<Value> {
    Ok(json!(path.to_str().context("a path that is no text")?))
}
