//! Transports of the gateway. Each front feeds sessions of the runtime, each backend connection is a `Link`.

pub mod admission;
pub mod auto_back;
mod backend_fault;
mod batch;
pub mod child;
pub mod control_front;
pub mod file_budget;
pub mod first_message;
mod front_clock;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod http1;
pub mod http_back;
pub mod http_front;
pub mod in_process;
mod large_proof;
mod line_writer;
pub mod many_back;
mod observed_events;
pub mod places;
mod protobuf;
pub mod read_body;
pub mod read_charge;
pub mod router;
pub mod send_queue;
mod signer_proof;
pub mod sse_back;
pub mod stdio_front;
pub mod tap;
pub mod tcp_front;
pub mod tls;
pub mod transparent_http;
pub mod transparent_stdio;
pub mod turned_away;
pub mod unknown_caller;
pub mod web_client;
pub mod web_post;
mod websocket;
pub mod workers;
pub mod ws_back;

pub use backend_fault::SpecError;
