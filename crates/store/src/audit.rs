//! Records of the audit log in SQLite or PostgreSQL.
//!
//! `audit_record` holds every record as written, so that the log can be verified from the database alone. `audit_log`
//! has a row for each call with a known outcome, for people who query with SQL. A record that is written twice is
//! stored once.

mod postgres;
mod sqlite;

use postgres::PostgresAudit;
use signalbox_engine::record::StoreError;
use sqlite::SqliteAudit;
use std::path::PathBuf;

/// Record to store, with its indexed columns.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditRow {
    /// Name of its chain.
    pub chain: String,
    /// Number in its chain.
    pub seq: u64,
    /// Time of the event, in milliseconds since 1970.
    pub at: u64,
    /// Kind of the event.
    pub event_type: String,
    /// Risk of the event.
    pub risk: String,
    /// Principal of the caller.
    pub principal: Option<String>,
    /// Backend that the event is about.
    pub backend: Option<String>,
    /// Audit id of its exchange.
    pub correlation_id: Option<String>,
    /// Row for `audit_log`, if the record is the outcome of a call.
    pub call: Option<CallRow>,
    /// The record as written.
    pub record: String,
}

/// Outcome of a call, as a row of `audit_log`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CallRow {
    /// Id of the request: a UUID, if the audit id is one of a gateway.
    pub request_id: String,
    /// First role of the caller.
    pub role: Option<String>,
    /// Name of the tool.
    pub tool: String,
    /// Arguments as JSON, if they are recorded.
    pub arguments: Option<String>,
    /// Status of the call, such as `success`.
    pub status: String,
    /// Error message of a failed call.
    pub error: Option<String>,
    /// Duration of the call.
    pub latency_ms: u64,
}

/// Row of `audit_record` as read back. Its columns are not trusted, because only the record itself is covered by the
/// chain.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StoredRecord<'a> {
    pub chain: &'a str,
    /// Column `seq`; `None` if it is not a number of 0 or more.
    pub seq: Option<u64>,
    /// Column `at`; `None` if it is not a number of 0 or more.
    pub at: Option<u64>,
    pub event_type: Option<&'a str>,
    pub risk: Option<&'a str>,
    pub principal: Option<&'a str>,
    pub backend: Option<&'a str>,
    pub correlation_id: Option<&'a str>,
    /// The record as written.
    pub record: &'a str,
}

/// Arguments of a call as read back.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StoredArguments<'a> {
    /// The text as written, byte for byte.
    Text(&'a str),
    /// The value of the text in the form of [`jsonb`], in the database's own spelling.
    Parsed(&'a str),
}

/// Row of `audit_log` as read back.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StoredCall<'a> {
    /// Column `id`, assigned by the database.
    pub id: i64,
    pub request_id: Option<&'a str>,
    /// Column `timestamp`, in milliseconds since 1970; `None` if it is not a whole number of them.
    pub at: Option<u64>,
    /// Column `client_subject`: the principal of the caller.
    pub subject: Option<&'a str>,
    /// Column `client_role`: the first role of the caller.
    pub role: Option<&'a str>,
    pub tool: Option<&'a str>,
    pub backend: Option<&'a str>,
    /// Column `request_args`: the arguments as JSON.
    pub arguments: Option<StoredArguments<'a>>,
    pub status: Option<&'a str>,
    pub error: Option<&'a str>,
    pub latency_ms: Option<u64>,
}

/// Maximum exponent and length of a number that PostgreSQL surely holds. Its scale is at most 16383.
const MAX_EXPONENT: u32 = 4_000;
const MAX_NUMBER: usize = 8_000;

/// Returns the form in which PostgreSQL stores a JSON text: without the character NUL, which it cannot hold, and as a
/// JSON string of the whole text if that has a number that it cannot hold.
#[must_use]
pub fn jsonb(json: &str) -> String {
    let (mut out, mut at, mut in_string) = (String::with_capacity(json.len()), 0, false);
    while let Some(rest) = json.get(at..).filter(|rest| !rest.is_empty()) {
        let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
        let bytes = rest.as_bytes();
        let length = match bytes.first() {
            Some(b'\\') if in_string && rest.starts_with("\\u0000") => {
                out.push_str("\\ufffd");
                at += "\\u0000".len();
                continue;
            }
            Some(b'\\') if in_string => 2,
            Some(b'-' | b'0'..=b'9') if !in_string => {
                let length = bytes.iter().take_while(|byte| is_number(**byte)).count();
                if !rest.get(..length).is_some_and(fits_numeric) {
                    return quoted(json);
                }
                length
            }
            Some(b'"') => {
                in_string = !in_string;
                1
            }
            _ => 1,
        };
        let end = (at + length..=json.len()).find(|end| json.is_char_boundary(*end)).unwrap_or(json.len());
        out.push_str(json.get(at..end).unwrap_or_default());
        at = end;
    }
    out
}

/// Returns a JSON text as a JSON string. Control characters in it are blanks between its parts.
fn quoted(json: &str) -> String {
    let text = json.replace(|char: char| char < ' ', " ").replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

fn fits_numeric(number: &str) -> bool {
    let exponent = number.split_once(['e', 'E']).map_or("0", |(_, exponent)| exponent);
    number.len() <= MAX_NUMBER && exponent.parse::<i32>().is_ok_and(|exponent| exponent.unsigned_abs() <= MAX_EXPONENT)
}

/// Pattern of the event types of checkpoints, which stand for records deleted by age.
const CHECKPOINTS: &str = "'pruned%'";

/// Place of a database, which distinguishes it from others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DatabasePlace {
    /// Path of a SQLite file, as configured.
    File(PathBuf),
    /// Address of a PostgreSQL database, without user and password.
    Server(String),
}

/// Database for audit records. It is opened on first use, and again after a failure.
#[derive(Debug)]
pub struct AuditDatabase(Kind);

#[derive(Debug)]
enum Kind {
    Sqlite(SqliteAudit),
    Postgres(Box<PostgresAudit>),
}

impl AuditDatabase {
    /// Creates the database at this address, `sqlite:PATH` or a PostgreSQL address, without opening it.
    ///
    /// # Errors
    /// If the address is invalid.
    pub fn at(url: &str) -> Result<Self, StoreError> {
        match url.strip_prefix("sqlite:") {
            Some(path) => Ok(Self(Kind::Sqlite(SqliteAudit::new(path.strip_prefix("//").unwrap_or(path))))),
            None => PostgresAudit::new(url).map(|database| Self(Kind::Postgres(Box::new(database)))),
        }
    }

    /// Returns the place of the database without opening it.
    #[must_use]
    pub fn place(&self) -> DatabasePlace {
        match &self.0 {
            Kind::Sqlite(database) => DatabasePlace::File(database.path().to_owned()),
            Kind::Postgres(database) => DatabasePlace::Server(database.database()),
        }
    }

    /// Returns the number of the last record of a chain; 0 if it has none.
    ///
    /// # Errors
    /// If the database fails.
    pub fn last_of(&mut self, chain: &str) -> Result<u64, StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.last_of(chain),
            Kind::Postgres(database) => database.last_of(chain),
        }
    }

    /// Stores these records, all or none.
    ///
    /// # Errors
    /// If the database fails.
    pub fn append(&mut self, rows: &[AuditRow]) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.append(rows),
            Kind::Postgres(database) => database.append(rows),
        }
    }

    /// Returns the chains with a row from before `before`, in milliseconds since 1970. Checkpoints have no age. Only
    /// columns are compared, so the result says which chains to read, and not what may be deleted of them.
    ///
    /// # Errors
    /// If the database fails.
    pub fn chains_before(&mut self, before: u64) -> Result<Vec<String>, StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.chains_before(before),
            Kind::Postgres(database) => database.chains_before(before),
        }
    }

    /// Replaces the records of a chain, up to the number of the checkpoint, with the checkpoint.
    ///
    /// # Errors
    /// If the database fails.
    pub fn prune(&mut self, checkpoint: &AuditRow) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.prune(checkpoint),
            Kind::Postgres(database) => database.prune(checkpoint),
        }
    }

    /// Deletes the rows of calls from before `before`, in milliseconds since 1970.
    ///
    /// # Errors
    /// If the database fails.
    pub fn prune_calls(&mut self, before: u64) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.prune_calls(before),
            Kind::Postgres(database) => database.prune_calls(before),
        }
    }

    /// Passes the rows of one chain to `each` in order, until `each` returns false.
    ///
    /// # Errors
    /// If the database fails.
    pub fn chain(&mut self, chain: &str, each: &mut dyn FnMut(&StoredRecord<'_>) -> bool) -> Result<(), StoreError> {
        match &mut self.0 {
            Kind::Sqlite(database) => database.chain(chain, each),
            Kind::Postgres(database) => database.chain(chain, each),
        }
    }

    /// Passes every row to `each`, chain by chain in order, until `each` returns false.
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
    /// Passes every row of a call with an id above `after` to `each`, ordered by id, until `each` returns false.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgresql_is_given_only_json_that_it_can_hold() {
        for (json, stored) in [
            (
                r#"{"é":"\u0000\\u0000\\\u0000","n":[1e308,-0.5E-7]}"#,
                r#"{"é":"\ufffd\\u0000\\\ufffd","n":[1e308,-0.5E-7]}"#,
            ),
            (r#"{"n":1e-999999}"#, r#""{\"n\":1e-999999}""#),
            (r#"{"n":0e99999999999}"#, r#""{\"n\":0e99999999999}""#),
            (r#"{"t":"1e-999999"}"#, r#"{"t":"1e-999999"}"#),
        ] {
            assert_eq!(jsonb(json), stored);
        }
        let long = format!("[0.{}]", "1".repeat(20_000));
        assert_eq!(jsonb(&long), format!("\"{long}\""));
    }
}
