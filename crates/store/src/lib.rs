//! Storage of tapes in SQLite ([`SqliteStore`]) or PostgreSQL ([`PostgresStore`]), behind the port
//! `engine::record::TapeStore`.
//!
//! The recorder writes through a `TapeWriter`, owned by one thread. Commands read through the store itself, from any
//! thread and from several processes at once. Both databases hold the same data: a head for each tape, its entries in
//! order, its sessions and exchanges, and an index for searches. One test suite (`tests/suite`) covers both.
//!
//! ```text
//!             begin()                        end()
//!   (none) ───────────► being written ─────────────────► ended ──┐
//!      │                  │  ▲  append(): all or nothing         │ prune(), remove(),
//!      │                  └──┘  idle(): wake the index           │ or no room left
//!      │ import()                                                ▼
//!      └──────────► hidden ─────────────────────────────► hidden, entries go in slices ──► (gone)
//!                     │       the import fails                   ▲
//!                     └───────► reveal(): visible and indexed ───┘
//! ```
//!
//! Invariants:
//!
//! - **A batch is stored whole or not at all.** `append` writes it in one transaction, which is on disk when it returns
//!   if the caller asked for `durable`. A batch that failed may be retried.
//! - **Positions in a tape only rise.** Entries that do not follow the last one are rejected (`sums::check_order`), and
//!   so is everything after `end`.
//! - **A partial import is never visible.** An imported tape is hidden until all of it is stored and indexed. The
//!   remains of a failed import or an interrupted removal stay hidden, and the next prune deletes them.
//! - **Old entries are deleted in slices**, so that no other process waits long. A tape that is being written may lose
//!   its beginning. A mark takes its place and, if the tape is sealed, a signed checkpoint in its head. If a remaining
//!   entry refers to the body of a deleted one, its own body is made whole first.
//! - **Reads and writes are bounded**: the size of a page of results ([`MAX_LIMIT`], [`MAX_PAGE_BYTES`]), the
//!   searchable part of a body ([`MAX_TEXT_BYTES`]), and the size of the store, which its writers keep below its limit
//!   (`room`).
//! - **Older tables are converted, newer ones are rejected.** A database of another program is never changed.
//!
//! A store must never redact or sample (the recorder has done that), show a password in an error, or guess at damaged
//! rows (it reports them as damaged). All its calls block, so they must never run on a thread of an async runtime.

mod around;
pub mod audit;
mod body_codec;
mod checkpoint;
mod clock;
mod compression_ahead;
mod content;
mod extra;
mod limits;
mod merge;
mod notifications;
mod pack;

mod postgres;
mod retention;
mod room;
mod short_word;
mod splice;
mod sqlite;
mod sums;

mod tape_row;
mod text;
mod word_set;

pub use limits::{MAX_LIMIT, MAX_PAGE_BYTES, MAX_TEXT_BYTES};
pub use postgres::{PostgresAddressError, PostgresStore};
pub use sqlite::SqliteStore;
