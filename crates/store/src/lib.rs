//! Keeps tapes in SQLite ([`SqliteStore`]) or PostgreSQL ([`PostgresStore`]), behind the port `engine::record::TapeStore`.
//!
//! The recorder writes through a `TapeWriter`, which one thread owns; commands read through the store itself, from any thread
//! and from several processes at once. Both databases hold the same things: a head for each tape, its entries in order, its
//! sessions and exchanges, and an index for searches. One suite of tests (`tests/suite`) runs over both.
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
//! What holds at any time:
//!
//! - **A batch is kept whole or not at all.** `append` writes it in one transaction, which is on disk when it returns if the
//!   caller asked for `durable`. A batch that failed may be offered again.
//! - **Places in a tape only rise.** Entries that do not follow the last one are refused (`sums::check_order`), and so is
//!   everything after `end`.
//! - **Nobody sees half an import.** An imported tape is hidden until all of it is kept and indexed. What a failed import or an
//!   interrupted removal leaves behind stays hidden, and the next prune sweeps it away.
//! - **Old entries go in slices**, so that no other process waits long. A tape that is being written may lose its beginning,
//!   with a mark in its place and, where it is sealed, a signed checkpoint in its head. If an entry stays that refers to the body of one that goes, its own body becomes whole first.
//! - **Bounds apply to reading and writing**: a page of results ([`MAX_LIMIT`], [`MAX_PAGE_BYTES`]), how much of a body
//!   is searched for words ([`MAX_TEXT_BYTES`]), and the size of the store, which its writers keep below its limit (`room`).
//! - **Older tables are converted, newer ones are refused.** A database of another program is never changed.
//!
//! A store must never redact or sample (the recorder has done that), never show a password in an error, never guess at damaged
//! rows (it reports them as damaged), and never be called from an async runtime's thread: all its calls block.

mod around;
pub mod audit;
mod body_codec;
mod checkpoint;
mod content;
mod extra;
mod limits;
mod merge;
mod notifications;
mod pack;

mod postgres;
mod retention;
mod room;
mod splice;
mod sqlite;
mod sums;

mod tape_row;
mod text;

pub use limits::{MAX_LIMIT, MAX_PAGE_BYTES, MAX_TEXT_BYTES};
pub use postgres::{BadAddress, PostgresStore};
pub use sqlite::SqliteStore;
