//! MCP on the wire: revisions, transports, bridging, sessions, and real clients and servers.

mod apps;
mod asking;
mod batches;
mod bridge_conformance;
mod bridge_real;
mod claude_code;
mod clients;
mod conformance;
mod first_calls;
mod links;
mod matrix;
mod notices;
mod pending;
mod resumption;
mod rmcp;
mod sessions;
mod sse;
mod tasks;
mod tcp;
mod websocket;
mod websocket_back;
mod wire;
