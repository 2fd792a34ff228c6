//! A connection for questions, and what it needs to unpack what it reads.

use super::failure::Failure;
use crate::squeeze::Squeezer;
use rusqlite::Connection;

/// One connection for questions.
pub struct Reader {
    /// The connection.
    pub connection: Connection,
    /// Unpacks bodies.
    pub squeezer: Squeezer,
}

impl Reader {
    /// A reader.
    pub fn new(connection: Connection) -> Self {
        Self { connection, squeezer: Squeezer::new() }
    }
}

/// Learns the dictionaries that were made since the last time.
pub fn learn(connection: &Connection, squeezer: &mut Squeezer) -> Result<(), Failure> {
    let mut select = connection.prepare_cached("SELECT number, bytes FROM dictionaries WHERE number > ?1")?;
    let mut rows = select.query([squeezer.latest() as i64])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        squeezer.learn(number as u64, row.get(1)?);
    }
    Ok(())
}
