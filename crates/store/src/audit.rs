//! Records of the audit log in SQLite or PostgreSQL.
//!
//! `audit_record` has every record as it was written, so that the log can be verified from the database alone. `audit_log` has a row
//! for each call once its outcome is known, for people who ask with SQL. A record that is given twice is kept once.

mod postgres;
mod sqlite;

use postgres::PostgresAudit;
use signalbox_engine::record::StoreError;
use sqlite::SqliteAudit;
use std::path::PathBuf;

/// A record, with what it is found by.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditRow {
    /// The name of its chain.
    pub chain: String,
    /// Its number there.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// What kind of event it is.
    pub event_type: String,
    /// How much harm it may mean.
    pub risk: String,
    /// On whose behalf.
    pub principal: Option<String>,
    /// At which backend.
    pub backend: Option<String>,
    /// The audit id of its exchange.
    pub correlation_id: Option<String>,
    /// What `audit_log` has of it, if it is the outcome of a call.
    pub call: Option<CallRow>,
    /// The record as it was written.
    pub record: String,
}

/// The outcome of a call.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CallRow {
    /// Id of the request, as a UUID where its audit id is one of a gateway.
    pub request_id: String,
    /// The first role of the caller.
    pub role: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments as JSON, where they are kept.
    pub arguments: Option<String>,
    /// How it ended.
    pub status: String,
    /// Why it failed.
    pub error: Option<String>,
    /// How long it took.
    pub latency_ms: u64,
}

/// A row of `audit_record` as it is read back. A writer to the database can change its columns: only the record itself
/// is covered by the chain.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StoredRecord<'a> {
    /// Column `chain`.
    pub chain: &'a str,
    /// Column `seq`; `None` if it holds no number from 0 on.
    pub seq: Option<u64>,
    /// Column `at`; `None` if it holds no number from 0 on.
    pub at: Option<u64>,
    /// Column `event_type`.
    pub event_type: Option<&'a str>,
    /// Column `risk_level`.
    pub risk: Option<&'a str>,
    /// Column `principal`.
    pub principal: Option<&'a str>,
    /// Column `backend`.
    pub backend: Option<&'a str>,
    /// Column `correlation_id`.
    pub correlation_id: Option<&'a str>,
    /// The record as it was written.
    pub record: &'a str,
}

/// A row of `audit_log` as it is read back.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StoredCall<'a> {
    /// Column `id`, which the database gives.
    pub id: i64,
    /// Column `request_id`.
    pub request_id: Option<&'a str>,
    /// Column `timestamp`, in milliseconds since 1970; `None` if it is no whole number of them.
    pub at: Option<u64>,
    /// Column `client_subject`.
    pub subject: Option<&'a str>,
    /// Column `client_role`.
    pub role: Option<&'a str>,
    /// Column `tool_name`.
    pub tool: Option<&'a str>,
    /// Column `backend_name`.
    pub backend: Option<&'a str>,
    /// Column `request_args`.
    pub arguments: Option<&'a str>,
    /// Column `response_status`.
    pub status: Option<&'a str>,
    /// Column `error_message`.
    pub error: Option<&'a str>,
    /// Column `latency_ms`.
    pub latency_ms: Option<u64>,
}

/// Pattern of the event types of checkpoints, which stand for records that were deleted by age.
const CHECKPOINTS: &str = "'pruned%'";

/// The place of a database, by which it is told from others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DatabasePlace {
    /// Path of a SQLite file, as it was given.
    File(PathBuf),
    /// Address of a PostgreSQL database, without user and password.
    Server(String),
}

/// A database for audit records. It is opened when it is first used, and again after a failure.
#[derive(Debug)]
pub struct AuditDatabase(Kind);

#[derive(Debug)]
enum Kind {
    Sqlite(SqliteAudit),
    Postgres(Box<PostgresAudit>),
}

impl AuditDatabase {
    /// The database at this address: `sqlite:PATH`, or an address of PostgreSQL.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn at(url: &str) -> Result<Self, StoreError> {
        match url.strip_prefix("sqlite:") {
            Some(path) => Ok(Self(Kind::Sqlite(SqliteAudit::new(path.strip_prefix("//").unwrap_or(path))))),
            None => PostgresAudit::new(url).map(|database| Self(Kind::Postgres(Box::new(database)))),
        }
    }

    /// The place of the database. Nothing is opened.
    #[must_use]
    pub fn place(&self) -> DatabasePlace {
        match &self.0 {
            Kind::Sqlite(database) => DatabasePlace::File(database.path().to_owned()),
            Kind::Postgres(database) => DatabasePlace::Server(database.database()),
        }
    }

    /// The number of the last record of a chain; 0 if it has none.
    ///
    /// # Errors
    /// If the database fails.
    pub fn last_of(&mut self, chain: &str) -> Result<u64, StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.last_of(chain),
            Kind::Postgres(database) => database.last_of(chain),
        }
    }

    /// Keeps these records, all or none.
    ///
    /// # Errors
    /// If the database fails.
    pub fn append(&mut self, rows: &[AuditRow]) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.append(rows),
            Kind::Postgres(database) => database.append(rows),
        }
    }

    /// Chains with a row from before this time, in milliseconds since 1970. Checkpoints have no age. Columns decide, so
    /// this finds chains that are worth reading, and does not say what may be deleted of them.
    ///
    /// # Errors
    /// If the database fails.
    pub fn chains_before(&mut self, before: u64) -> Result<Vec<String>, StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.chains_before(before),
            Kind::Postgres(database) => database.chains_before(before),
        }
    }

    /// Puts a checkpoint in the place of the records of its chain up to its number.
    ///
    /// # Errors
    /// If the database fails.
    pub fn prune(&mut self, checkpoint: &AuditRow) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.prune(checkpoint),
            Kind::Postgres(database) => database.prune(checkpoint),
        }
    }

    /// Deletes the rows of calls from before this time, in milliseconds since 1970.
    ///
    /// # Errors
    /// If the database fails.
    pub fn prune_calls(&mut self, before: u64) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.prune_calls(before),
            Kind::Postgres(database) => database.prune_calls(before),
        }
    }

    /// Hands the rows of one chain to `each`, in the order of their numbers, until that says false.
    ///
    /// # Errors
    /// If the database fails.
    pub fn chain(&mut self, chain: &str, each: &mut dyn FnMut(&StoredRecord<'_>) -> bool) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.chain(chain, each),
            Kind::Postgres(database) => database.chain(chain, each),
        }
    }

    /// Hands every row to `each`, chain by chain in the order of their numbers, until that says false.
    ///
    /// # Errors
    /// If the database fails.
    pub fn records(&mut self, each: &mut dyn FnMut(&StoredRecord<'_>) -> bool) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.records(each),
            Kind::Postgres(database) => database.records(each),
        }
    }
}

impl AuditDatabase {
    /// Hands every row of a call with a higher id than this one to `each`, in the order of ids, until that says false.
    ///
    /// # Errors
    /// If the database fails.
    pub fn calls(&mut self, after: i64, each: &mut dyn FnMut(&StoredCall<'_>) -> bool) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.calls(after, each),
            Kind::Postgres(database) => database.calls(after, each),
        }
    }
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
