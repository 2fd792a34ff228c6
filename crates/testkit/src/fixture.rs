//! The fixture server: an MCP server that speaks both eras of the protocol.
//!
//! It offers every tool, prompt and resource the public conformance runner asks for, and some of our own that make
//! the behaviour of a gateway visible: how often a tool ran, which session it ran in, whether a cancellation arrived.
//! Tools that ask the client something do so in the way of the era in which they were called: as a request to the
//! client before 2026-07-28, as an `input_required` result from then on.

mod ask;
mod asking;
mod call;
mod catalog;
mod changes;
mod content;
mod gate;
pub mod http;
mod jobs;
mod notices;
mod probes;
mod prompts;
mod resources;
mod rounds;
mod server;
mod sessions;
mod state;
pub mod stdio;

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use std::borrow::Cow;

/// How one fixture server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which wires it serves.
    pub era: ServedEra,
    /// What it calls itself in `serverInfo.name`.
    pub name: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { era: ServedEra::Both, name: "signalbox-fixture".to_owned() }
    }
}

/// Which wires the fixture serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ServedEra {
    /// The initialize-based revisions and the stateless one, on the same endpoint.
    Both,
    /// Only the initialize-based revisions, as a server that has never heard of 2026-07-28.
    Old,
    /// Only the stateless revision 2026-07-28.
    New,
}

impl ServedEra {
    /// The revisions a server of this era supports.
    pub(crate) fn versions(self) -> Cow<'static, [ProtocolVersion]> {
        match self {
            Self::Both => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
            Self::Old => Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25)),
            Self::New => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
        }
    }
}

/// Whether a revision, written as on the wire, is of the stateless era: revisions are dates, so they sort as text.
pub(crate) fn is_stateless(version: &str) -> bool {
    version >= ProtocolVersion::V_2026_07_28.as_str()
}

/// Whether this request came over the stateless wire.
pub(crate) fn came_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| is_stateless(version.as_str()))
}
