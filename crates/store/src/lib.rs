//! Where tapes are kept: a SQLite file behind the port of the engine.

mod content;
mod limits;
mod lookup;
mod pack;
mod percentiles;
mod splice;
mod sqlite;
mod squeeze;
mod tally;
mod text;

pub use limits::{MAX_LIMIT, MAX_PAGE_BYTES, MAX_TEXT_BYTES};
pub use sqlite::SqliteStore;
