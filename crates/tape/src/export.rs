//! Exports of tapes to formats that other programs read. Every export is written as the entries arrive; none holds a
//! tape in memory.

#[cfg(test)]
mod call_tests;
mod calls;
pub mod curl;
mod error;
pub mod har;
pub mod html;
pub mod insomnia;
pub mod jsonl;
pub mod k6;
pub mod otlp;
pub mod playwright;
pub mod postman;
pub mod pytest;
mod quoting;
#[cfg(test)]
mod tests;
pub mod vitest;

pub use calls::{ExportTarget, is_url};
pub use error::ExportError;

use signalbox_engine::record::{Entry, SessionInfo, StoreError, TapeInfo};

/// A tape to be exported: its head, its sessions, and its entries in order.
pub struct Source<'a> {
    /// Head of the tape.
    pub info: &'a TapeInfo,
    /// Sessions with their numbers.
    pub sessions: &'a [(u64, SessionInfo)],
    /// Entries in the order of the tape.
    pub entries: &'a mut dyn Iterator<Item = Result<Entry, StoreError>>,
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("info", self.info).field("sessions", &self.sessions).finish_non_exhaustive()
    }
}
