//! The transport against scripted servers on real sockets.

mod answers;
mod connections;
mod credentials;
mod framing;
pub(crate) mod server;
mod sessions;
mod streams;
