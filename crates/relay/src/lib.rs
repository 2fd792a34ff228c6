//! The relay: lets agents call tools that live in a web page.
//!
//! A page (a *worker*) opens a session and gets a *code*. Clients that have the code call the page's tools: legacy
//! clients over five REST routes and an event stream, MCP clients over an MCP endpoint. Both work on the same sessions.
//!
//! ```text
//!  REST client ─► routes ─► Gateway ─┐                        ┌─► worker stream, long poll ─► page
//!                                    ├─► link ─► RelayStore ──┤                                │
//!  MCP client ─► /api/mcp ─► Gateway ┘      ▲                 └── POST /api/response ◄─────────┘
//!                                           └──────── answered, exactly once
//! ```
//!
//! All state that several gateways share (sessions, requests, answers, the active worker) is in a
//! [`store::RelayStore`]. Everything else belongs to one process.

pub mod assets;
pub mod buckets;
pub mod call;
pub mod code;
pub mod counters;
pub mod entry;
pub mod json_text;
pub mod link;
pub mod mcp_result;
pub mod migrate;
pub mod random;
pub mod refusal;
pub mod relay;
pub mod result_owner;
pub mod routes;
pub mod session;
pub mod settings;
pub mod shares;
pub mod store;
mod stray_codes;
pub mod stream_roles;
pub mod tool_request;
pub mod tools;
pub mod when;
pub mod worker;

pub use code::Code;
pub use entry::RelayEntry;
pub use link::RelayConnector;
pub use relay::{BACKEND, Relay, TRANSPORT};
pub use session::SessionRecord;
pub use settings::{ListedTools, MigrationPhase, RelayLimits, RelaySettings};
pub use store::{RelayEvent, RelayStore, RelayStoreError};
pub use tool_request::{ToolAnswer, ToolRequest, WorkerError};
