//! Where tapes are kept: SQLite, or PostgreSQL, behind the same port.

mod around;
mod body_codec;
mod content;
mod extra;
mod limits;
mod lookup;
mod merge;
mod notifications;
mod pack;
mod percentiles;
mod postgres;
mod retention;
mod room;
mod seen;
mod splice;
mod sqlite;
mod sums;
mod tally;
mod tape_row;
mod text;

pub use limits::{MAX_LIMIT, MAX_PAGE_BYTES, MAX_TEXT_BYTES};
pub use postgres::{BadAddress, PostgresStore};
pub use sqlite::SqliteStore;
