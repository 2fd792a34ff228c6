//! Tapes in forms that other programs read. Every export is written as the entries come; none holds a tape in memory.

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

pub use calls::{Target, is_url};
pub use error::ExportError;

use signalbox_engine::record::{Entry, SessionInfo, StoreError, TapeInfo};

/// A tape that is to be exported: its head, its sessions, and its entries in their order.
pub struct Source<'a> {
    /// Its head.
    pub info: &'a TapeInfo,
    /// Its sessions, by their number.
    pub sessions: &'a [(u64, SessionInfo)],
    /// Its entries.
    pub entries: &'a mut dyn Iterator<Item = Result<Entry, StoreError>>,
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("info", self.info).field("sessions", &self.sessions).finish_non_exhaustive()
    }
}
