//! The transport against scripted servers on real sockets.

mod answers;
mod connections;
mod framing;
pub(crate) mod server;
mod sessions;
mod streams;
