//! A connection for questions, and what it needs to unpack what it reads.

use super::failure::Failure;
use crate::body_codec::BodyCodec;
use rusqlite::Connection;

/// One connection for questions.
pub struct Reader {
    /// The connection.
    pub connection: Connection,
    /// Unpacks bodies.
    pub codec: BodyCodec,
}

impl Reader {
    /// A reader.
    pub fn new(connection: Connection) -> Self {
        Self { connection, codec: BodyCodec::new() }
    }
}

/// Learns the dictionaries that were made since the last time.
pub fn learn(connection: &Connection, codec: &mut BodyCodec) -> Result<(), Failure> {
    let mut select = connection.prepare_cached("SELECT number, bytes FROM dictionaries WHERE number > ?1")?;
    let mut rows = select.query([codec.latest() as i64])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        codec.learn(number as u64, row.get(1)?);
    }
    Ok(())
}
