//! What the tests of this workspace stand on, and nothing that ships.
//!
//! - [`chaos`]: a storm of faults over the real gateway, and the server that misbehaves in it.
//! - [`fixture`]: a real MCP server on the public `rmcp` crate, the backend behind the gateway.
//! - [`clients`]: real clients and servers from npm and PyPI.
//! - [`conformance`]: runs the public conformance runner and compares two of its verdicts check by check.
//! - [`frail_server`]: an HTTP backend that fails where it is told to, and counts what it has really done.
//! - [`gateway`] and [`http_client`]: the real binary, and a client that sees everything it answers.
//! - [`pipe_client`]: a client with a session for itself, over WebSocket or a bare TCP socket.
//! - [`scene`] and [`events`]: backends as config, what is seen of a running gateway, and streams read while open.
//! - [`sse_client`] and [`sse_server`]: both ends of HTTP+SSE as 2024-11-05 has it.
//! - [`revision`], [`revision_server`] and [`revision_client`]: a server and a client that speak exactly one revision
//!   and are strict about it, written without any of our crates and without an MCP library, so that they are
//!   independent witnesses.
//! - [`matrix`]: every revision meets every other through the gateway, over every transport.
//! - [`openssl`]: certificates made by the program of that name, and its client.
//! - [`wire_log`] and [`wire_tape`]: what the strict parts sent and received, and the tape held against it.
//! - [`terminal`]: a pseudo terminal, and what a person sees on it.
//! - [`notes_tape`]: a recorded conversation with the server of `notes-server`, which makes up ids.
//! - [`protected_server`]: an MCP server that wants a credential, with its authorization server.
//! - [`process`] and [`ports`]: child processes that never outlive a test, and free ports.

pub mod browser;
pub mod chaos;
pub mod clients;
pub mod conformance;
pub mod events;
pub mod fixture;
pub mod frail_server;
pub mod gateway;
pub mod http_client;
pub mod matrix;
pub mod notes_tape;
pub mod openssl;
pub mod pipe_client;
pub mod ports;
pub mod process;
pub mod protected_server;
pub mod revision;
pub mod revision_client;
pub mod revision_server;
pub mod scene;
pub mod served_tape;
pub mod sse_client;
pub mod sse_server;
pub mod terminal;
pub mod used_secrets;
pub mod wire_log;
pub mod wire_tape;
