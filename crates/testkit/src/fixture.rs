//! The fixture server: an MCP server that speaks both eras of the protocol.
//!
//! It offers every tool, prompt and resource the public conformance runner asks for, and some of our own that make
//! the behaviour of a gateway visible: how often a tool ran, which session it ran in, whether a cancellation arrived.
//! Tools that ask the client something do so in the way of the era in which they were called: as a request to the
//! client before 2026-07-28, as an `input_required` result from then on.

mod answer;
mod ask;
mod asking;
mod call;
mod catalog;
mod changes;
mod completion;
mod content;
mod era;
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

pub use era::Era;

/// How one fixture server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which wires it serves.
    pub era: Era,
    /// What it calls itself in `serverInfo.name`.
    pub name: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { era: Era::Both, name: "signalbox-fixture".to_owned() }
    }
}
