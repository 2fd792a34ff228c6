use super::{AuditRow, CHECKPOINTS, StoredArguments, StoredCall, StoredRecord, number};
use crate::sqlite::{SqliteFailure, SqliteFile, create_if};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Rows, params};
use signalbox_engine::record::StoreError;
use std::path::Path;
use std::time::Duration;

/// Maximum time to wait for another process that has the file locked.
const WAIT: Duration = Duration::from_secs(5);

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS audit_record (
    chain TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event_type TEXT NOT NULL,
    risk_level TEXT NOT NULL,
    principal TEXT,
    backend TEXT,
    correlation_id TEXT,
    record TEXT NOT NULL,
    PRIMARY KEY (chain, seq)
);
CREATE INDEX IF NOT EXISTS audit_record_at ON audit_record (at);
CREATE TABLE IF NOT EXISTS audit_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    client_subject TEXT,
    client_role TEXT,
    tool_name TEXT NOT NULL,
    backend_name TEXT,
    request_args TEXT,
    response_status TEXT NOT NULL,
    error_message TEXT,
    latency_ms INTEGER NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX IF NOT EXISTS audit_log_timestamp ON audit_log (timestamp);
CREATE INDEX IF NOT EXISTS audit_log_client_subject ON audit_log (client_subject);
CREATE INDEX IF NOT EXISTS audit_log_tool_name ON audit_log (tool_name);
CREATE INDEX IF NOT EXISTS audit_log_request_id ON audit_log (request_id);
";

/// SQL expression for milliseconds since 1970 in SQLite's format.
const TIME: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', ?2 / 1000.0, 'unixepoch')";

/// Selects the calls after an id. The time is null if it is not in our format, as no record has such a time.
const CALLS: &str = "
SELECT id, request_id, CASE WHEN strftime('%Y-%m-%dT%H:%M:%fZ', timestamp) = timestamp
        THEN CAST(round((julianday(timestamp) - 2440587.5) * 86400000) AS INTEGER) END,
    client_subject, client_role, tool_name, backend_name, request_args, response_status, error_message, latency_ms
FROM audit_log WHERE id > ?1 ORDER BY id";

/// Audit records in a SQLite file.
#[derive(Debug)]
pub struct SqliteAudit {
    place: SqliteFile,
    open: Option<Connection>,
}

impl SqliteAudit {
    pub fn new(path: &str) -> Self {
        Self { place: SqliteFile::new(Path::new(path), WAIT), open: None }
    }

    /// Runs a query on the connection. A connection that failed is replaced by a new one.
    fn ask<T>(&mut self, question: impl FnOnce(&mut Connection) -> Result<T, SqliteFailure>) -> Result<T, StoreError> {
        let place = self.place.clone();
        let opened = match self.open.take() {
            Some(connection) => Ok(connection),
            None => create_if(&place, |found| refuse_foreign(found, &place)).and_then(|connection| {
                connection.execute_batch(TABLES)?;
                Ok(connection)
            }),
        };
        let mut connection = place.with_place(opened)?;
        let answer = place.with_place(question(&mut connection));
        if answer.is_ok() {
            self.open = Some(connection);
        }
        answer
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    pub fn last_of(&mut self, chain: &str) -> Result<u64, StoreError> {
        self.ask(|connection| {
            let sql = "SELECT coalesce(max(seq), 0) FROM audit_record WHERE chain = ?1";
            let last: i64 = connection.query_row(sql, [chain], |row| row.get(0))?;
            Ok(u64::try_from(last).unwrap_or(0))
        })
    }

    pub fn append(&mut self, rows: &[AuditRow]) -> Result<(), StoreError> {
        self.ask(|connection| {
            let transaction = connection.transaction()?;
            {
                let mut record = transaction.prepare_cached(
                    "INSERT OR IGNORE INTO audit_record
                    (chain, seq, at, event_type, risk_level, principal, backend, correlation_id, record)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                )?;
                let mut call = transaction.prepare_cached(&format!(
                    "INSERT INTO audit_log (request_id, timestamp, client_subject, client_role, tool_name, backend_name,
                    request_args, response_status, error_message, latency_ms)
                    VALUES (?1, {TIME}, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
                ))?;
                for row in rows {
                    let (seq, at) = (number(row.seq), number(row.at));
                    let kept = record.execute(params![
                        row.chain,
                        seq,
                        at,
                        row.event_type,
                        row.risk,
                        row.principal,
                        row.backend,
                        row.correlation_id,
                        row.record
                    ])?;
                    if let (1, Some(one)) = (kept, &row.call) {
                        call.execute(params![
                            one.request_id,
                            at,
                            row.principal,
                            one.role,
                            one.tool,
                            row.backend,
                            one.arguments,
                            one.status,
                            one.error,
                            number(one.latency_ms)
                        ])?;
                    }
                }
            }
            Ok(transaction.commit()?)
        })
    }

    pub fn chains_before(&mut self, before: u64) -> Result<Vec<String>, StoreError> {
        self.ask(|connection| {
            let sql = format!(
                "SELECT DISTINCT chain FROM audit_record WHERE at < ?1 AND event_type NOT LIKE {CHECKPOINTS} ORDER BY chain"
            );
            let mut select = connection.prepare(&sql)?;
            let chains = select.query_map([number(before)], |row| row.get(0))?;
            Ok(chains.collect::<Result<_, _>>()?)
        })
    }

    pub fn prune(&mut self, checkpoint: &AuditRow) -> Result<(), StoreError> {
        self.ask(|connection| {
            let AuditRow { chain, seq, at, event_type, risk, record, .. } = checkpoint;
            let transaction = connection.transaction()?;
            transaction
                .execute("DELETE FROM audit_record WHERE chain = ?1 AND seq <= ?2", params![chain, number(*seq)])?;
            transaction.execute(
                "INSERT INTO audit_record (chain, seq, at, event_type, risk_level, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![chain, number(*seq), number(*at), event_type, risk, record],
            )?;
            Ok(transaction.commit()?)
        })
    }

    pub fn prune_calls(&mut self, before: u64) -> Result<(), StoreError> {
        self.ask(|connection| {
            connection.execute(
                "DELETE FROM audit_log WHERE timestamp < strftime('%Y-%m-%dT%H:%M:%fZ', ?1 / 1000.0, 'unixepoch')",
                [number(before)],
            )?;
            Ok(())
        })
    }

    pub fn chain(&mut self, chain: &str, each: &mut dyn FnMut(&StoredRecord<'_>) -> bool) -> Result<(), StoreError> {
        self.ask(|connection| {
            let sql = "SELECT chain, seq, at, record, event_type, risk_level, principal, backend, correlation_id FROM audit_record WHERE chain = ?1 ORDER BY seq";
            hand_over(connection.prepare(sql)?.query([chain])?, each)
        })
    }

    pub fn calls(&mut self, after: i64, each: &mut dyn FnMut(&StoredCall<'_>) -> bool) -> Result<(), StoreError> {
        self.ask(|connection| hand_calls_over(connection.prepare(CALLS)?.query([after])?, each))
    }

    pub fn records(&mut self, each: &mut dyn FnMut(&StoredRecord<'_>) -> bool) -> Result<(), StoreError> {
        self.ask(|connection| {
            let sql = "SELECT chain, seq, at, record, event_type, risk_level, principal, backend, correlation_id FROM audit_record ORDER BY chain, seq";
            hand_over(connection.prepare(sql)?.query([])?, each)
        })
    }
}

/// Passes rows of records to `each` until it returns false.
fn hand_over(mut rows: Rows<'_>, each: &mut dyn FnMut(&StoredRecord<'_>) -> bool) -> Result<(), SqliteFailure> {
    while let Some(row) = rows.next()? {
        // A column of SQLite can hold a value of any type.
        let number = |column| row.get::<_, i64>(column).ok().and_then(|value| u64::try_from(value).ok());
        let (chain, record): (String, String) = (row.get(0)?, row.get(3)?);
        let texts = [4, 5, 6, 7, 8].map(|column| text(row, column));
        let [event_type, risk, principal, backend, correlation_id] = texts.each_ref().map(Option::as_deref);
        let (chain, record, seq, at) = (&*chain, &*record, number(1), number(2));
        if !each(&StoredRecord { chain, seq, at, event_type, risk, principal, backend, correlation_id, record }) {
            break;
        }
    }
    Ok(())
}

/// Passes rows of calls to `each` until it returns false.
fn hand_calls_over(mut rows: Rows<'_>, each: &mut dyn FnMut(&StoredCall<'_>) -> bool) -> Result<(), SqliteFailure> {
    while let Some(row) = rows.next()? {
        let number = |column| row.get::<_, i64>(column).ok().and_then(|value| u64::try_from(value).ok());
        let texts = [1, 3, 4, 5, 6, 7, 8, 9].map(|column| text(row, column));
        let [request_id, subject, role, tool, backend, arguments, status, error] =
            texts.each_ref().map(Option::as_deref);
        let arguments = arguments.map(StoredArguments::Text);
        let (id, at, latency_ms) = (row.get(0)?, number(2), number(10));
        let call =
            StoredCall { id, request_id, at, subject, role, tool, backend, arguments, status, error, latency_ms };
        if !each(&call) {
            break;
        }
    }
    Ok(())
}

/// Returns a column as text. A value of another type becomes a text that no record has, so that verification reports
/// it.
fn text(row: &Row<'_>, column: usize) -> Option<String> {
    match row.get_ref(column) {
        Ok(ValueRef::Null) => None,
        Ok(ValueRef::Text(bytes)) => Some(match str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(error) => format!("{error}: {bytes:?}"),
        }),
        other => Some(format!("{other:?}")),
    }
}

/// Rejects a file that has tables, but not those of an audit log.
fn refuse_foreign(found: &Connection, place: &SqliteFile) -> Result<(), SqliteFailure> {
    let count = |sql: &str| found.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (all, own) = (
        count("SELECT count(*) FROM sqlite_schema")?,
        count("SELECT count(*) FROM sqlite_schema WHERE name = 'audit_record'")?,
    );
    if all > 0 && own == 0 { Err(place.cannot("it is a database of something else than an audit log")) } else { Ok(()) }
}
