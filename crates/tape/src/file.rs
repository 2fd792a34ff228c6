//! Files that carry tapes between machines and stores. `docs/tape-format.md` describes them.

mod around;
mod error;
pub(crate) mod frame;
mod reader;
pub(crate) mod record;
mod select;
#[cfg(test)]
mod tests;
mod upgrade;
mod weight;
mod writer;

pub use error::TapeFileError;
pub use frame::VERSION;
pub(crate) use reader::MAX_SESSIONS;
pub use reader::{Entries, MAX_SMALL_FILE, TapeFile};
pub use select::Select;
pub use writer::TapeFileWriter;

/// Records that prost generates from `tape.proto`.
#[allow(missing_docs, clippy::all, reason = "generated from proto/tape.proto, which documents the records")]
pub(crate) mod proto {
    include!(concat!(env!("OUT_DIR"), "/signalbox.tape.v1.rs"));
}
