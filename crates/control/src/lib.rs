//! What can be seen of a running process and done with it, besides MCP: the routes of its API, its control socket and whoever asks
//! there, `status`, `doctor` and metrics.

pub mod api;
pub mod control_socket;
pub mod doctor;
pub mod metrics;
pub mod open_files;
pub mod pipe;
pub mod remote_call;
pub mod status;
pub mod table;
pub mod terminal;
pub mod tool_list;
