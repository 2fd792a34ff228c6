//! Observation and control of a running process besides MCP: the routes of its API, its control socket and the clients
//! of both, `status`, `doctor` and metrics.

pub mod api;
pub mod control_socket;
pub mod definition_list;
pub mod doctor;
pub mod in_process_session;
pub mod metrics;
pub mod open_files;
pub mod remote_call;
pub mod status;
pub mod table;
pub mod terminal;
pub mod tool_list;
