//! The connection of a writer, with its prepared statements.

use super::{copy, notifications};
use ::postgres::{Client, Statement};

/// Writer's connection and its state.
pub struct WriterLink {
    pub client: Client,
    ready: Option<PreparedStatements>,
    durable: Option<bool>,
}

/// Statements of every batch, parsed and planned once.
#[derive(Clone)]
pub struct PreparedStatements {
    /// Locks the head of a tape.
    pub hold: Statement,
    /// Copies rows of entries.
    pub entries: Statement,
    /// Copies the words of runs.
    pub words: Statement,
    /// Inserts or updates exchanges.
    pub exchanges: Statement,
    /// Adds notifications to those of a tape.
    pub notifications: Statement,
    /// Adds totals to the head of a tape.
    pub sums: Statement,
}

const HOLD: &str = "SELECT 1 FROM tapes WHERE number = $1 FOR UPDATE";

const EXCHANGES: &str = "INSERT INTO exchanges
    (tape, exchange, first, last, method, subject, outcome, took, bytes_in, bytes_out)
    SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],
    $8::bigint[], $9::bigint[], $10::bigint[])
    ON CONFLICT (tape, exchange) DO UPDATE SET last = excluded.last,
    method = coalesce(excluded.method, exchanges.method), subject = coalesce(excluded.subject, exchanges.subject),
    outcome = coalesce(excluded.outcome, exchanges.outcome), took = coalesce(excluded.took, exchanges.took),
    bytes_in = coalesce(excluded.bytes_in, exchanges.bytes_in),
    bytes_out = coalesce(excluded.bytes_out, exchanges.bytes_out)";

const SUMS: &str = "UPDATE tapes SET entries = entries + $2,
    disordered = disordered OR $6 OR $3 < coalesce(last_at, $3),
    first_at = least(first_at, $3), last_at = greatest(last_at, $4), last_seq = $5,
    kinds = (SELECT array_agg(a + b ORDER BY n) FROM unnest(kinds, $7::bigint[]) WITH ORDINALITY AS k (a, b, n)),
    gaps = gaps + $8, passed = passed + $9, kept = kept + $10, aside = aside + $11 WHERE number = $1";

impl WriterLink {
    /// Wraps a connection without prepared statements.
    pub fn new(client: Client) -> Self {
        Self { client, ready: None, durable: None }
    }

    /// Prepares the statements. `durable` decides whether a commit waits for the disk.
    pub fn prepare(&mut self, durable: bool) -> Result<PreparedStatements, ::postgres::Error> {
        if self.durable != Some(durable) {
            // Use the server's own setting if durability matters.
            let sql = if durable { "RESET synchronous_commit" } else { "SET synchronous_commit = off" };
            self.client.batch_execute(sql)?;
            self.durable = Some(durable);
        }
        if let Some(ready) = &self.ready {
            return Ok(ready.clone());
        }
        let mut prepare = |sql: &str| self.client.prepare(sql);
        let ready = PreparedStatements {
            hold: prepare(HOLD)?,
            entries: prepare(&copy::entries_sql())?,
            words: prepare(copy::WORDS_SQL)?,
            exchanges: prepare(EXCHANGES)?,
            notifications: prepare(notifications::KEEP)?,
            sums: prepare(SUMS)?,
        };
        Ok(self.ready.insert(ready).clone())
    }
}
